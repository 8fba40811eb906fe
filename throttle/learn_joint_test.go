package throttle_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// TestStrangersHearWhatOneThatAskedIsTold: where requests with a token each share one
// limit, those that wait learn from the answer to one that asked meanwhile: they wait
// as long as it does, and know what it has spent of a bucket that fills. Else that one
// and they are refused again and again.
func TestStrangersHearWhatOneThatAskedIsTold(t *testing.T) {
	const runs, asked = 12, 4
	for _, s := range []limitedServer{
		{kind: slidingLog, dialect: xOnRefusals, quota: 6, size: 6, window: 9 * time.Second, trip: 120 * time.Millisecond, workers: 197, calls: 30},
		{kind: largerBucket, dialect: ietfAlways, quota: 13, size: 24, window: 4 * time.Second, trip: 306 * time.Millisecond, workers: 132, calls: 76},
	} {
		one, each, call := 0, 0, 0
		for range runs {
			var n atomic.Int64
			one += s.refusals(t, func(int) string { return "one" })
			each += s.refusals(t, func(int) string { return strconv.FormatInt(n.Add(1), 10) })
			call += s.refusals(t, strconv.Itoa)
		}
		if got, most := max(each, call), 2*one+runs*asked; got > most {
			t.Errorf("%v: %d refused in %d runs with many tokens, want at most %d: twice the %d of one token, and %d a run", s, got, runs, most, one, asked)
		}
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
// three dozen where the first looks bad, and then one refusal more in four runs is chance,
// and so are four bursts in all.
func TestATokenPerRequestCostsAtMostTwice(t *testing.T) {
	const four, bursts = 4, 4
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
			if ones, others = ones+one/runs, others+max(each, call)/runs; max(each, call) > 2*one+runs/four+bursts*s.workers {
				t.Errorf("%v: in %d runs %d refused with a token for each attempt and %d with one for each call, want at most twice the %d of one token, one more in %d runs and %d bursts", s, runs, each, call, one, four, bursts)
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
