package throttle_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
)

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
