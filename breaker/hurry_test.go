package breaker_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
)

// hurry makes one call in every with a long deadline, the others with a short one,
// and returns how many of the patient were not served.
func hurry(t *testing.T, rt http.RoundTripper, every int, lasts time.Duration) (lost, patient int64) {
	var served, all atomic.Int64
	load(t, rt, 10, lasts, func(i int) {
		d := 2 * time.Second
		if i%every == 0 {
			d = 20 * time.Second
			all.Add(1)
		}
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		resp, err := rt.RoundTrip(httptest.NewRequest("GET", site, nil).WithContext(ctx))
		if err == nil {
			resp.Body.Close()
			if i%every == 0 {
				served.Add(1)
			}
		}
	})
	return all.Load() - served.Load(), all.Load()
}

// Callers who wait for 2 s do not close a host whose answers take 3 s to those
// who wait for longer.
func TestHurriedCallersCloseNobodyOut(t *testing.T) {
	for _, every := range []int{2, 4, 10} {
		bubble(t, func(t *testing.T) {
			cs := circuits(t, breaker.Config{})
			lost, of := hurry(t, cs.Door(cs.Meter(testnet.Func(takes(3*time.Second)))), every, 5*time.Minute)
			if t.Logf("one in %d is patient: %d of %d lost", every, lost, of); lost*100 > of {
				t.Errorf("one in %d is patient: %d of %d lost", every, lost, of)
			}
		})
	}
}

// crowded is a host and those who call it for a minute, drawn at random: some wait
// for less than an answer takes, the others for at least twice as long as that.
type crowded struct {
	takes, short, long time.Duration
	share, rate        float64 // of the patient among the callers; calls a second
	random             *rand.Rand
}

func newCrowded(seed uint64) crowded {
	d := rand.New(rand.NewPCG(seed, 7))
	c := crowded{takes: time.Duration((1.2 + 6*d.Float64()) * float64(time.Second)), random: d}
	c.short = max(time.Second, time.Duration((.3+.6*d.Float64())*float64(c.takes)))
	c.long = time.Duration((2 + 4*d.Float64()) * float64(c.takes))
	c.share, c.rate = .1+.8*d.Float64(), 4+46*d.Float64()
	return c
}

// calls makes the calls, and returns how many patient callers were not served.
func (c crowded) calls(t *testing.T, rt http.RoundTripper) (lost, patient int) {
	var all sync.WaitGroup
	var served, of atomic.Int64
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Duration(c.random.ExpFloat64() / c.rate * float64(time.Second))) {
		wait := c.short
		if c.random.Float64() < c.share {
			wait = c.long
			of.Add(1)
		}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			resp, err := rt.RoundTrip(httptest.NewRequest("GET", site, nil).WithContext(ctx))
			if err == nil {
				resp.Body.Close()
				served.Add(1)
			}
		})
	}
	all.Wait()
	return int(of.Load() - served.Load()), int(of.Load()) // nobody else is served
}

// Whatever answers take, however many of the callers are patient and whenever
// these come, one in a thousand of them is lost at most if answers take less than
// twice as long as the others wait, else one in fifty.
func TestNobodyIsClosedOutBeforeTheFirstAnswer(t *testing.T) {
	var lost, all [2]int
	for seed := range uint64(60) {
		bubble(t, func(t *testing.T) {
			c, cs := newCrowded(seed), circuits(t, breaker.Config{})
			l, n := c.calls(t, cs.Door(cs.Meter(testnet.Func(takes(c.takes)))))
			i := 0
			if c.takes > 2*c.short {
				i = 1
			}
			lost[i], all[i] = lost[i]+l, all[i]+n
		})
	}
	for i, share := range [...]int{1000, 50} {
		if t.Logf("%d of %d lost", lost[i], all[i]); lost[i]*share > all[i] {
			t.Errorf("%d of %d lost, want at most one in %d", lost[i], all[i], share)
		}
	}
}

// A dead host gets one probe more because somebody waits longer than others, and
// those who come when it has been silent for twice as long as the others waited
// are refused at once. Callers who are all alike are not held.
func TestPatientCallersAreHeldForAWhile(t *testing.T) {
	for _, x := range []struct {
		name  string
		long  time.Duration
		c     breaker.Config
		held  bool
		sends int64
	}{
		{"patient", 20 * time.Second, breaker.Config{}, true, 1},
		{"alike", 2200 * time.Millisecond, breaker.Config{}, false, 0},
		{"classic", 20 * time.Second, breaker.Config{FailureRate: .5}, false, 0},
		{"fallback", 20 * time.Second, breaker.Config{Fallback: func(_ *http.Request, err error) (*http.Response, error) { return nil, err }}, false, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cs, h, rt := rig(t, x.c)
				h.set(takes(time.Hour))
				call := func(d time.Duration) time.Duration {
					ctx, cancel := context.WithTimeout(t.Context(), d)
					defer cancel()
					begin := time.Now()
					rt.RoundTrip(httptest.NewRequest("GET", site, nil).WithContext(ctx))
					return time.Since(begin)
				}
				for range 5 {
					go call(2 * time.Second)
				}
				time.Sleep(2*time.Second + time.Millisecond)
				want(t, cs, breaker.Open, "five have waited in vain")
				before := h.calls.Load()
				var took [10]time.Duration
				var all sync.WaitGroup
				for i := range took {
					all.Go(func() { took[i] = call(x.long) })
				}
				time.Sleep(2 * time.Second)
				if late := call(x.long); late > 0 {
					t.Errorf("one who came late waited %v", late)
				}
				all.Wait()
				for _, d := range took {
					if held := d > 0; held != x.held {
						t.Errorf("waited %v", d)
					}
				}
				if n := h.calls.Load() - before; n != x.sends {
					t.Errorf("%d calls were sent, want %d", n, x.sends)
				}
			})
		})
	}
}

// A host that answers nobody any more is found out by hurried callers, too.
func TestHurriedCallersNoticeADeadHost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		h.set(takes(3 * time.Second))
		hurry(t, rt, 4, 30*time.Second)
		h.set(takes(time.Hour))
		start := time.Now()
		go hurry(t, rt, 1000, 20*time.Second)
		for cs.State("a.example") != breaker.Open && time.Since(start) < time.Minute {
			time.Sleep(100 * time.Millisecond)
		}
		if d := time.Since(start); d > 8*time.Second {
			t.Errorf("noticed after %v", d)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
	})
}
