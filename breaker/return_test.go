package breaker_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
)

// comesAndGoes is a host that is well and then away, again and again. late counts
// what reaches it when it has been away for a second.
func comesAndGoes(late *atomic.Int64, well, away time.Duration) answer {
	begin := time.Now()
	return func(r *http.Request) (*http.Response, error) {
		at := time.Since(begin) % (well + away)
		if at >= well+time.Second {
			late.Add(1)
		}
		if at >= well {
			return status(500)(r)
		}
		return takes(20 * time.Millisecond)(r)
	}
}

// Of the calls that a host could serve which comes and goes, no more are lost than
// until its first return is found out. It gets no more probes than else, and a
// host that was well for long is not waited for.
func TestAHostThatComesAndGoesIsWaitedFor(t *testing.T) {
	for name, x := range map[string]struct {
		config     breaker.Config
		well, away time.Duration
		waits      bool
	}{
		"away for a third":      {breaker.Config{}, 10 * time.Second, 5 * time.Second, true},
		"away for a sixth":      {breaker.Config{}, 15 * time.Second, 3 * time.Second, true},
		"away for half":         {breaker.Config{}, 6 * time.Second, 6 * time.Second, true},
		"well for long":         {breaker.Config{}, 60 * time.Second, 3 * time.Second, false},
		"away for long":         {breaker.Config{}, 40 * time.Second, 20 * time.Second, false},
		"a classic rule":        {breaker.Config{FailureRate: .5}, 10 * time.Second, 5 * time.Second, false},
		"never wait":            {breaker.Config{Patience: 1}, 10 * time.Second, 5 * time.Second, false},
		"a Fallback answers":    {breaker.Config{Fallback: noFallback}, 10 * time.Second, 5 * time.Second, false},
		"first attempts do not": {breaker.Config{RetriesOnly: true}, 10 * time.Second, 5 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				const perSecond, cycles = 100, 8
				var late, lost, waited atomic.Int64
				cs := circuits(t, x.config)
				rt := cs.Door(cs.Meter(testnet.Func(comesAndGoes(&late, x.well, x.away))))
				begin, cycle := time.Now(), x.well+x.away
				load(t, rt, perSecond, cycles*cycle, func(int) {
					now := time.Now()
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					defer cancel()
					resp, err := rt.RoundTrip(httptest.NewRequest("GET", site, nil).WithContext(ctx))
					if time.Since(now) > time.Second {
						waited.Add(1)
					}
					good := err == nil && resp.StatusCode == 200
					if at := now.Sub(begin); !good && at > cycle+2*time.Second && at%cycle < x.well {
						lost.Add(1)
					}
				})
				if (waited.Load() > 0) != x.waits {
					t.Errorf("%d calls waited, want some: %t", waited.Load(), x.waits)
				}
				if could := int64((cycles - 1) * x.well.Seconds() * perSecond); x.waits && lost.Load() > could/100 {
					t.Errorf("lost %d of %d that could be served", lost.Load(), could)
				}
				if n, of := late.Load(), int64(cycles*(x.away-time.Second).Seconds()*perSecond); n > of/100+cycles && !x.config.RetriesOnly {
					t.Errorf("%d of %d requests reached the host while it was away, want one in a hundred", n, of)
				}
			})
		})
	}
}

func noFallback(*http.Request, error) (*http.Response, error) { return nil, errors.New("nothing here") }

// A host that returned soon once is not waited for longer than twice that: whoever
// comes later is refused at once. One that is silent is never waited for.
func TestWhoDoesNotReturnIsNotWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		beat := func(d time.Duration, a answer) {
			h.set(a)
			load(t, rt, 100, d, func(int) { get(rt, site) })
		}
		beat(5*time.Second, status(200))
		beat(3*time.Second, down)
		beat(10*time.Second, status(200))
		h.set(down)
		var mu sync.Mutex
		longest, refusedAt := time.Duration(0), time.Now()
		load(t, rt, 100, 30*time.Second, func(int) {
			now := time.Now()
			get(rt, site)
			mu.Lock()
			defer mu.Unlock()
			longest = max(longest, time.Since(now))
			if time.Since(now) == 0 {
				refusedAt = now
			}
		})
		if longest < 3*time.Second || longest > 9*time.Second {
			t.Errorf("the longest wait was %v, want what the host was away, to twice that", longest)
		}
		if time.Since(refusedAt) > time.Second {
			t.Errorf("calls still wait at the end")
		}
		want(t, cs, breaker.Open, "at the end")
	})
	for silent, first := range map[bool]answer{true: takes(time.Hour), false: down} {
		bubble(t, func(t *testing.T) {
			cs, h, rt := rig(t, breaker.Config{})
			beat := func(d time.Duration, a answer) {
				h.set(a)
				load(t, rt, 20, d, func(int) { patiently(t, rt, "/") })
			}
			beat(time.Second, status(200))
			beat(4*time.Second, first)
			beat(10*time.Second, status(200))
			want(t, cs, breaker.Closed, "the host has returned")
			h.set(down)
			for cs.State("a.example") == breaker.Closed {
				get(rt, site)
			}
			start := time.Now()
			if get(rt, site); silent != time.Now().Equal(start) {
				t.Errorf("silent before: %v; then a call took %v", silent, time.Since(start))
			}
		})
	}
}

// Of many requests that come at once when a probe is due, one is sent. The others wait
// for its answer: if it is good, all are served, and if not, none is sent and all are
// refused then. They do not wait for a host that is silent.
func TestABurstWaitsForItsProbe(t *testing.T) {
	const calls, trip = 50, 200 * time.Millisecond
	slowly := func(a answer) answer {
		return func(r *http.Request) (*http.Response, error) {
			if err := testnet.Wait(r.Context(), trip); err != nil {
				return nil, err
			}
			return a(r)
		}
	}
	for _, x := range []struct {
		name         string
		config       breaker.Config
		answer       answer
		served, sent int
		longest      time.Duration // until a call ends that is not sent
	}{
		{"the host is back", breaker.Config{}, slowly(status(200)), calls, calls, 5 * trip},
		{"it is down", breaker.Config{}, slowly(down), 0, 1, trip},
		{"it is silent", breaker.Config{}, takes(time.Hour), 0, 1, time.Second},
		{"two probes close it", breaker.Config{Probes: 2}, slowly(status(200)), calls, calls, 4 * trip},
		{"never wait", breaker.Config{Patience: 1}, slowly(status(200)), 1, 1, 0},
		{"a classic rule", breaker.Config{FailureRate: .5}, slowly(status(200)), 1, 1, 0},
		{"a Fallback answers", breaker.Config{Fallback: noFallback}, slowly(status(200)), 1, 1, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cs, h, rt := rig(t, x.config)
				open(t, cs, h, rt)
				time.Sleep(10 * time.Minute)
				h.set(x.answer)
				before, begin := h.calls.Load(), time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				var served, late atomic.Int64
				var all sync.WaitGroup
				for range calls {
					all.Go(func() {
						resp, err := send(ctx, rt)
						if err == nil {
							resp.Body.Close()
							served.Add(1)
						}
						if (err == nil || refused(err)) && time.Since(begin) > x.longest && x.longest > 0 {
							late.Add(1)
						}
					})
				}
				all.Wait()
				if n, sent := served.Load(), h.calls.Load()-before; n != int64(x.served) || sent != int64(x.sent) {
					t.Errorf("%d served of %d sent, want %d of %d", n, sent, x.served, x.sent)
				}
				if n := late.Load(); n > 0 {
					t.Errorf("%d calls took longer than %v", n, x.longest)
				}
			})
		})
	}
}

// Where requests come all the time, none waits for a probe: the next ones find out
// what it found.
func TestSteadyRequestsDoNotWaitForAProbe(t *testing.T) {
	for name, a := range map[string]answer{"it is down": down, "it is back": status(200)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cs, h, rt := rig(t, breaker.Config{})
				open(t, cs, h, rt)
				begin := time.Now()
				load(t, rt, 50, 20*time.Second, func(i int) {
					if i == 100 {
						h.set(func(r *http.Request) (*http.Response, error) {
							testnet.Wait(r.Context(), 200*time.Millisecond)
							return a(r)
						})
					}
					now := time.Now()
					if _, err := get(rt, site); refused(err) && time.Since(now) > 0 && now.Sub(begin) > time.Second {
						t.Errorf("after %v one is refused that has waited for %v", now.Sub(begin), time.Since(now))
					}
				})
			})
		})
	}
}
