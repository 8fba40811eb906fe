package throttle_test

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// TestSignedRequestsLearnTogether: what a server told one signed request holds
// for the next of the same key, and not for another's. So it is with tokens that are
// made anew.
func TestSignedRequestsLearnTogether(t *testing.T) {
	for name, authorization := range map[string]func(key, serial string) string{
		"signed": func(key, serial string) string {
			return "AWS4-HMAC-SHA256 Credential=" + key + "/20260115/x/s3/aws4_request, Signature=" + serial
		},
		"JWT": func(key, serial string) string { return bearer(`{"sub": "` + key + `", "jti": "` + serial + `"}`) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, n := time.Now(), 0
				b := newBase(func(r *http.Request) (*http.Response, error) {
					if n++; n == 1 {
						return testnet.Answer(r, 429, http.Header{"Retry-After": {"30"}}, nil), nil
					}
					return testnet.Answer(r, 200, nil, nil), nil
				})
				tr := newTransport(t, b, throttle.Config{})
				ask := func(key, serial string) time.Duration {
					r, err := http.NewRequestWithContext(t.Context(), "GET", "http://s3/", nil)
					if err != nil {
						t.Fatal(err)
					}
					r.Header.Set("Authorization", authorization(key, serial))
					resp, err := tr.RoundTrip(r)
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
					return time.Since(start)
				}
				ask("A", "1")
				if at := ask("B", "2"); at >= 30*time.Second {
					t.Errorf("another key waited until %v", at)
				}
				if at := ask("A", "3"); at < 30*time.Second {
					t.Errorf("the same key went at %v, the server said 30s", at)
				}
			})
		})
	}
}

// bearing sends calls through a transport from that many goroutines, each with the
// token that it is given for that call and each until it is answered well.
func bearing(t *testing.T, rt http.RoundTripper, workers, calls int, token func(call int) string) (took []time.Duration) {
	t.Helper()
	var mu sync.Mutex
	together(workers, calls, func(n int) (goOn bool) {
		begun := time.Now()
		for {
			r, err := http.NewRequestWithContext(t.Context(), "GET", "http://h/v1", nil)
			if err != nil {
				t.Error(err)
				return false
			}
			r.Header.Set("Authorization", "Bearer "+token(n))
			resp, err := rt.RoundTrip(r)
			if err != nil {
				t.Error(err)
				return false
			}
			resp.Body.Close()
			if resp.StatusCode == 200 {
				break
			}
		}
		mu.Lock()
		defer mu.Unlock()
		took = append(took, time.Since(begun))
		return true
	})
	return took
}

// together makes calls, numbered from 0, on that many goroutines. One whose call
// says so makes no more of them.
func together(workers, calls int, call func(n int) (goOn bool)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for n := int(next.Add(1)) - 1; n < calls && call(n); n = int(next.Add(1)) - 1 {
			}
		})
	}
	wg.Wait()
}

// TestATokenPerRequestIsOneCredential: where each request has a token of its own
// and all share one limit, it costs at most twice the refusals that one token for
// all does, and hardly more time.
func TestATokenPerRequestIsOneCredential(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer func() func(*http.Request, time.Time) *http.Response
	}{
		{name: "bare", answer: func() func(*http.Request, time.Time) *http.Response { return limiting(10, 10, "") }},
		{name: "Retry-After", answer: func() func(*http.Request, time.Time) *http.Response { return limiting(10, 10, "1") }},
		{name: "50/s", answer: func() func(*http.Request, time.Time) *http.Response { return limiting(50, 20, "") }},
		{name: "stated", answer: func() func(*http.Request, time.Time) *http.Response { return bucketStating(10, 10) }},
		{name: "40 stated", answer: func() func(*http.Request, time.Time) *http.Response { return bucketStating(40, 100) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := func(token func(int) string) (refused int, took time.Duration) {
				for range 5 {
					synctest.Test(t, func(t *testing.T) {
						s := &server{trip: 40 * time.Millisecond, answer: test.answer()}
						start := time.Now()
						bearing(t, newTransport(t, s, throttle.Config{}), 20, 300, token)
						refused, took = refused+s.refused, took+time.Since(start)
					})
				}
				return
			}
			one, ideal := run(func(int) string { return "one" })
			var mu sync.Mutex
			n := 0
			each, took := run(func(int) string { mu.Lock(); defer mu.Unlock(); n++; return strconv.Itoa(n) })
			call, also := run(func(n int) string { return strconv.Itoa(n) })
			t.Logf("refused %d with one token in %v, %d with one for each attempt in %v, %d with one for each call in %v", one, ideal, each, took, call, also)
			for _, got := range []int{each, call} {
				if got > 2*max(1, one) {
					t.Errorf("%d refused, want at most twice the %d of one token", got, one)
				}
			}
			if max(took, also) > 3*ideal/2 {
				t.Errorf("took %v and %v, want about the %v of one token", took, also, ideal)
			}
		})
	}
}

// TestATokenPerRequestCostsAtMostTwice: whatever counts a server's requests, however
// it says so and however far it is, where each request has a token of its own there
// are at most twice the refusals that one token for all has. What chance decides, as
// jitter does, is judged by the mean: a run has a whole burst more or none, so it takes
// three dozen where the first looks bad, and then one refusal more in four runs is chance.
func TestATokenPerRequestCostsAtMostTwice(t *testing.T) {
	const four = 4
	for _, jitter := range []float64{0, .6} {
		ones, others := 0, 0
		for _, s := range append(limitedServers(1), limitedServers(63)...) {
			s.jitter = jitter
			one, each, call, runs := 0, 0, 0, 0
			for runs == 0 || runs < 36 && max(each, call) > 2*one+runs/four {
				var n atomic.Int64
				one += s.refusals(t, func(int) string { return "one" })
				each += s.refusals(t, func(int) string { return strconv.FormatInt(n.Add(1), 10) })
				call += s.refusals(t, strconv.Itoa)
				runs++
			}
			if ones, others = ones+one/runs, others+max(each, call)/runs; max(each, call) > 2*one+runs/four {
				t.Errorf("%v: in %d runs %d refused with a token for each attempt and %d with one for each call, want at most twice the %d of one token, and one more in %d runs", s, runs, each, call, one, four)
			}
		}
		if t.Logf("%d refused with one token, %d with many", ones, others); others > 3*ones/2 {
			t.Errorf("%d refused in all, want at most half as many again as the %d of one token", others, ones)
		}
	}
}

// refusals is how many of the calls to s are refused, with the tokens that they are
// given.
func (s limitedServer) refusals(t *testing.T, token func(call int) string) (refused int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &limiter{limitedServer: s}
		b := &server{trip: s.trip, jitter: s.jitter, answer: l.answer}
		bearing(t, newTransport(t, b, throttle.Config{MaxWait: time.Hour}), s.workers, s.calls, token)
		refused = b.refused
	})
	return refused
}

// limiting is a token bucket that says nothing but when to come back, if that.
func limiting(rate, size float64, retryAfter string) func(*http.Request, time.Time) *http.Response {
	b := &policed{rate: rate, size: size}
	return func(*http.Request, time.Time) *http.Response {
		status := b.decide()
		if status == 200 || retryAfter == "" {
			return reply(status)
		}
		return reply(status, "Retry-After", retryAfter)
	}
}

// TestTenantsStayApart: of many credentials with limits of their own nobody waits
// because another was refused, whether its token is seen often or once.
func TestTenantsStayApart(t *testing.T) {
	for _, tenants := range []int{2, 10, 60, 300} {
		for _, spent := range []int{2, 5} { // one in so many has nothing left
			for _, pause := range []string{"30", "60"} {
				t.Run(fmt.Sprintf("%d tenants, one in %d spent, for %ss", tenants, spent, pause), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := &server{trip: 40 * time.Millisecond, answer: func(r *http.Request, _ time.Time) *http.Response {
							var n int
							fmt.Sscanf(r.Header.Get("Authorization"), "Bearer %d", &n)
							if n%spent == 0 {
								return reply(429, "Retry-After", pause)
							}
							return reply(200)
						}}
						tr := newTransport(t, s, throttle.Config{})
						for n := range 300 {
							r, err := http.NewRequestWithContext(throttle.WithMaxWait(t.Context(), time.Second), "GET", "http://h/v1", nil)
							if err != nil {
								t.Fatal(err)
							}
							tenant := n % tenants
							r.Header.Set("Authorization", fmt.Sprint("Bearer ", tenant))
							begun := time.Now()
							resp, err := tr.RoundTrip(r)
							if err == nil {
								resp.Body.Close()
							}
							if took := time.Since(begun); tenant%spent != 0 && (err != nil || took > time.Second/2) {
								t.Errorf("request %d of tenant %d: %v after %v, want an answer at once", n, tenant, err, took)
							}
						}
					})
				})
			}
		}
	}
}

// TestOneThatHangsKeepsNobodyFromAsking: a tenant waits neither for another that was told
// to come back later nor for the answer to a third.
func TestOneThatHangsKeepsNobodyFromAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		s := &server{trip: 40 * time.Millisecond, answer: func(r *http.Request, _ time.Time) *http.Response {
			if r.Header.Get("Authorization") == "Bearer spent" {
				return reply(429, "Retry-After", "300")
			}
			return reply(200)
		}}
		tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
			if r.Header.Get("Authorization") == "Bearer hangs" {
				<-hang
			}
			return s.RoundTrip(r)
		}), throttle.Config{MaxWait: time.Hour})
		var wg sync.WaitGroup
		send := func(who string) time.Duration {
			took := bearing(t, tr, 1, 1, func(int) string { return who })
			return took[0]
		}
		wg.Go(func() { send("hangs") })
		time.Sleep(time.Second)
		send("first")
		r, _ := http.NewRequest("GET", "http://h/v1", nil)
		r.Header.Set("Authorization", "Bearer spent")
		if resp, err := tr.RoundTrip(r); err != nil || resp.StatusCode != 429 {
			t.Fatal(resp, err)
		}
		for i := range 5 {
			if took := send(fmt.Sprint("other", i)); took > 5*time.Second {
				t.Errorf("a tenant with a limit of its own took %v", took)
			}
		}
		close(hang)
		wg.Wait()
	})
}

// TestOneThatFailsKeepsNobodyFromAsking: those that wait for another tenant's limit ask
// once the last request that was under way has failed, though none arrives meanwhile.
func TestOneThatFailsKeepsNobodyFromAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
			switch time.Sleep(40 * time.Millisecond); r.Header.Get("Authorization") {
			case "Bearer first", "Bearer other":
				return testnet.Answer(r, 200, nil, nil), nil
			case "Bearer spent":
				return testnet.Answer(r, 429, http.Header{"Retry-After": {"300"}}, nil), nil
			}
			time.Sleep(400 * time.Millisecond)
			return nil, io.ErrUnexpectedEOF
		}), throttle.Config{MaxWait: time.Hour})
		send := func(who string) {
			r, err := http.NewRequestWithContext(t.Context(), "GET", "http://h/v1", nil)
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Authorization", "Bearer "+who)
			if resp, err := tr.RoundTrip(r); err == nil {
				resp.Body.Close()
			}
		}
		send("first")
		var wg sync.WaitGroup
		wg.Go(func() { send("fails") })
		wg.Go(func() { send("spent") })
		time.Sleep(100 * time.Millisecond)
		begun := time.Now()
		send("other")
		if took := time.Since(begun); took > 5*time.Second {
			t.Errorf("a tenant with a limit of its own took %v", took)
		}
		wg.Wait()
	})
}

// TestTenantsAreNotJoinedByChance: of credentials that were used once or a few times
// and have limits of their own, some of which are spent, drawn by lot, hardly ever
// does one wait for another's: at one host in 20, where all who ask happen to be
// spent, or what is left for one happens to go on where it was for the one before.
func TestTenantsAreNotJoinedByChance(t *testing.T) {
	hosts, joined := 0, 0
	for _, test := range []struct {
		spent, workers, uses int // one in so many is spent
		stated               int // its quota; 0: it says nothing
	}{
		{2, 1, 1, 0}, {2, 10, 1, 0}, {2, 10, 3, 0}, {2, 10, 1, 100}, {2, 10, 1, 12}, {2, 1, 1, 12}, {3, 40, 2, 30},
		{5, 1, 1, 0}, {5, 10, 1, 0}, {5, 10, 3, 0}, {5, 1, 1, 100}, {5, 10, 1, 100}, {5, 40, 3, 100}, {5, 10, 1, 12}, {5, 40, 1, 12},
	} {
		for seed := range uint64(32) {
			held := 0
			synctest.Test(t, func(t *testing.T) {
				held = tenantsHeld(t, seed, test.spent, test.workers, test.uses, test.stated)
			})
			if hosts++; held > 0 {
				joined++
				t.Logf("%+v: %d held up", test, held)
			}
		}
	}
	if joined > hosts/15 { // some 18 of 480, and in one run of ten more than 24
		t.Errorf("tenants were held up by others at %d hosts of %d", joined, hosts)
	}
}

// tenantsHeld is how many of 150 calls of tenants that have something left, of those
// at one host, were refused or took more than a second.
func tenantsHeld(t *testing.T, seed uint64, spent, workers, uses, stated int) (held int) {
	draw := rand.New(rand.NewPCG(seed, uint64(spent)))
	left := make([]int, 150/uses)
	for i := range left {
		if draw.IntN(spent) > 0 {
			left[i] = uses + draw.IntN(cmp.Or(stated, 100)-uses)
		}
	}
	base := &server{trip: 40 * time.Millisecond, answer: func(r *http.Request, _ time.Time) *http.Response {
		n, err := strconv.Atoi(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		if err != nil {
			t.Error(err)
		}
		left[n]--
		resp := reply(200)
		if left[n] < 0 {
			resp = reply(429, "Retry-After", "30")
		}
		if stated > 0 {
			resp.Header.Set("RateLimit-Policy", fmt.Sprintf(`"default";q=%d;w=60`, stated))
			resp.Header.Set("RateLimit", fmt.Sprintf(`"default";r=%d;t=30`, max(0, left[n])))
		}
		return resp
	}}
	tr := newTransport(t, base, throttle.Config{})
	whole := slices.Clone(left)
	var mu sync.Mutex
	together(workers, len(whole)*uses, func(n int) (goOn bool) {
		tenant := n % len(whole)
		r, err := http.NewRequestWithContext(throttle.WithMaxWait(t.Context(), time.Second), "GET", "http://h/v1", nil)
		if err != nil {
			t.Error(err)
			return false
		}
		r.Header.Set("Authorization", fmt.Sprint("Bearer ", tenant))
		resp, err := tr.RoundTrip(r)
		if err == nil {
			resp.Body.Close()
		}
		mu.Lock()
		defer mu.Unlock()
		if err != nil && whole[tenant] > 0 {
			held++
		}
		return true
	})
	return held
}

// TestTwoRefusedTogetherJoinNobody: two tenants that are refused at the same time,
// until the same instant, hold up no third, and both wait for what they were told.
func TestTwoRefusedTogetherJoinNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		tr := newTransport(t, &server{trip: 40 * time.Millisecond, answer: func(r *http.Request, now time.Time) *http.Response {
			if who := r.Header.Get("Authorization"); who < "c" && now.Sub(start) < 30*time.Second {
				return reply(429, "Retry-After", "30")
			}
			return reply(200)
		}}, throttle.Config{})
		send := func(who string) (int, time.Duration) {
			begun := time.Now()
			status, _ := one(t, tr, "http://h/v1", "Authorization", who)
			return status, time.Since(begun)
		}
		var wg sync.WaitGroup
		for _, who := range []string{"a", "b"} {
			wg.Go(func() {
				if status, _ := send(who); status != 429 {
					t.Errorf("%s got %d", who, status)
				}
			})
		}
		wg.Wait()
		for _, who := range []string{"c", "d", "c", "e"} {
			if status, took := send(who); status != 200 || took > time.Second {
				t.Errorf("%s got %d after %v, want 200 at once", who, status, took)
			}
		}
		for _, who := range []string{"a", "b"} {
			if status, _ := send(who); status != 200 || time.Since(start) < 30*time.Second {
				t.Errorf("%s got %d at %v, want 200 after 30s", who, status, time.Since(start))
			}
		}
	})
}

// TestCredentialSaysWhatIsApart: Config.Credential decides whose limits requests
// draw on, whatever their Authorization; what it returns is shown nowhere.
func TestCredentialSaysWhatIsApart(t *testing.T) {
	const secret = "tenant-secret-7f"
	synctest.Test(t, func(t *testing.T) {
		n := 0
		var told []string
		tr := newTransport(t, newBase(func(r *http.Request) (*http.Response, error) {
			if n++; n == 1 {
				return testnet.Answer(r, 429, http.Header{"Retry-After": {"20"}}, nil), nil
			}
			return testnet.Answer(r, 200, nil, nil), nil
		}), throttle.Config{
			Credential: func(r *http.Request) string { return r.Header.Get("X-Key") },
			OnLearn:    func(l throttle.Learned) { told = append(told, fmt.Sprintf("%+v", l)) },
			OnWait:     func(w throttle.Wait) { told = append(told, fmt.Sprintf("%+v", w)) },
		})
		send := func(key, token string, most time.Duration) (time.Duration, error) {
			r, err := http.NewRequestWithContext(throttle.WithMaxWait(t.Context(), most), "GET", "http://h/", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("X-Key", key)
			r.Header.Set("Authorization", token)
			begun := time.Now()
			resp, err := tr.RoundTrip(r)
			if err == nil {
				resp.Body.Close()
			}
			return time.Since(begun), err
		}
		send(secret, "Bearer a", time.Minute)
		if _, err := send(secret, "Bearer b", time.Second); err == nil {
			t.Error("the same credential went in its pause")
		} else {
			told = append(told, err.Error(), fmt.Sprintf("%+v", err))
		}
		if took, err := send("other", "Bearer a", time.Minute); err != nil || took > time.Second {
			t.Errorf("another credential took %v, %v", took, err)
		}
		if took, err := send(secret, "Bearer b", time.Minute); err != nil || took < 15*time.Second {
			t.Errorf("the same credential took %v, %v, want its pause waited for", took, err)
		}
		told = append(told, fmt.Sprintf("%+v", tr.Stats()))
		for _, s := range told {
			if strings.Contains(s, secret) || strings.Contains(s, "Bearer") {
				t.Errorf("it shows a secret: %s", s)
			}
		}
	})
}

// TestTenantsPartAgain: if the first of many happen to have nothing left, those
// after them are not held up by that.
func TestTenantsPartAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{trip: 40 * time.Millisecond, answer: func(r *http.Request, _ time.Time) *http.Response {
			if r.Header.Get("Authorization") < "Bearer 1005" {
				return reply(429, "Retry-After", "30")
			}
			return reply(200)
		}}
		tr := newTransport(t, s, throttle.Config{})
		for n := 1000; n < 1100; n++ {
			r, err := http.NewRequestWithContext(throttle.WithMaxWait(t.Context(), time.Second), "GET", "http://h/v1", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", fmt.Sprint("Bearer ", n))
			resp, err := tr.RoundTrip(r)
			if err == nil {
				resp.Body.Close()
			}
			if n >= 1005 && err != nil {
				t.Errorf("tenant %d: %v, want an answer", n, err)
			}
		}
	})
}

// TestAJWTPerRequestIsOneCaller: where each request has a JWT made for it, no more is
// refused than with one token, and nothing takes longer.
func TestAJWTPerRequestIsOneCaller(t *testing.T) {
	refused := func(token func(n int) string) (n int, took time.Duration) {
		for range 5 {
			synctest.Test(t, func(t *testing.T) {
				s := &server{trip: 40 * time.Millisecond, answer: limiting(10, 10, "")}
				start := time.Now()
				bearing(t, newTransport(t, s, throttle.Config{}), 20, 300, token)
				n, took = n+s.refused, took+time.Since(start)
			})
		}
		return n, took
	}
	one, ideal := refused(func(int) string { return "one" })
	many, took := refused(func(n int) string {
		return strings.TrimPrefix(bearer(fmt.Sprintf(`{"iss":"app","iat":%d}`, n)), "Bearer ")
	})
	t.Logf("refused %d in %v with one token, %d in %v with one for each call", one, ideal, many, took)
	if many > one+one/2+5 || took > ideal+ideal/10 {
		t.Errorf("%d refused in %v, want about the %d in %v of one token", many, took, one, ideal)
	}
}
