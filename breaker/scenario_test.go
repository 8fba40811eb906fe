package breaker_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
)

// TestADeadHostGetsAHundredth: 100 calls a second to a host that is dead for a minute, in
// four ways, cost it a hundredth of them and the 20 failures that it takes to
// notice, and it is seen to be back when another hundred have come, or when the
// time is over that its last failure asked for.
func TestADeadHostGetsAHundredth(t *testing.T) {
	for name, dead := range map[string]answer{
		"refused": down,
		"500":     status(500),
		"slow 503": func(r *http.Request) (*http.Response, error) {
			time.Sleep(20 * time.Millisecond)
			return status(503)(r)
		},
		"500 with Retry-After": answerWith(500, "Retry-After", "1"),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cs, h, rt := rig(t, breaker.Config{})
				load(t, rt, 100, 60*time.Second, func(int) { get(rt, site) }) // healthy
				before := h.calls.Load()
				h.set(dead)
				load(t, rt, 100, 60*time.Second, func(int) { get(rt, site) })
				if n := h.calls.Load() - before; n > 82 || n < 10 {
					t.Errorf("%d calls while dead", n)
				} else {
					t.Logf("%d calls while dead", n)
				}
				back := time.Now()
				h.set(status(200))
				for cs.State("a.example") != breaker.Closed {
					get(rt, site)
					time.Sleep(10 * time.Millisecond)
				}
				most := 1100 * time.Millisecond
				if name == "500 with Retry-After" {
					most += 200 * time.Millisecond // its second is lengthened by up to a fifth
				}
				if d := time.Since(back); d > most {
					t.Errorf("seen to be back after %v", d)
				}
			})
		})
	}
}

// TestShortOutageIsNoticedFast: within the first 5 s of an outage the host is
// seen to be back within 300 ms and three answers.
func TestShortOutageIsNoticedFast(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		h.set(down)
		load(t, rt, 100, 4*time.Second, func(int) { get(rt, site) })
		back := time.Now()
		h.set(status(200))
		for cs.State("a.example") != breaker.Closed {
			get(rt, site)
			time.Sleep(time.Millisecond)
		}
		if d := time.Since(back); d > 310*time.Millisecond {
			t.Errorf("seen to be back after %v", d)
		}
	})
}

// TestWhatSaysNothingAgainstAHostOpensNothing: what says nothing against the host, for ten minutes.
func TestWhatSaysNothingAgainstAHostOpensNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var shards [6000]int
	for i := range shards {
		shards[i] = random.IntN(10)
	}
	for name, base := range map[string]answer{
		"one shard of ten is bad": func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/shard/7" {
				return status(500)(r)
			}
			return status(200)(r)
		},
		"only 429": status(429),
		"half are cancelled": func(r *http.Request) (*http.Response, error) {
			select {
			case <-time.After(50 * time.Millisecond):
				return status(200)(r)
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		},
		"half have deadlines too short": func(r *http.Request) (*http.Response, error) {
			select {
			case <-time.After(900 * time.Millisecond):
				return status(200)(r)
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				changed := 0
				cs := circuits(t, breaker.Config{OnStateChange: func(breaker.Change) { changed++ }})
				rt := cs.Door(cs.Meter(testnet.Func(base)))
				load(t, rt, 10, 10*time.Minute, func(i int) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					switch {
					case name == "half are cancelled" && i%2 == 0:
						time.AfterFunc(10*time.Millisecond, cancel)
					case name == "half have deadlines too short" && i%2 == 0:
						ctx, cancel = context.WithTimeout(ctx, 500*time.Millisecond)
						defer cancel()
					}
					url := site + "shard/" + strconv.Itoa(shards[i])
					resp, err := rt.RoundTrip(httptest.NewRequest("GET", url, nil).WithContext(ctx))
					if err == nil {
						resp.Body.Close()
					}
				})
				if changed != 0 {
					t.Errorf("%d changes", changed)
				}
			})
		})
	}
}

// TestSlowCallsOpenByTheirOwnRate open by a rate of their own, from the wire to the headers.
func TestSlowCallsOpenByTheirOwnRate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{SlowCall: time.Second, SlowRate: 0.5})
		takes := func(d time.Duration) answer {
			return func(r *http.Request) (*http.Response, error) { time.Sleep(d); return status(200)(r) }
		}
		for i := range 40 { // 1 in 4
			h.set(takes(time.Duration(1+i%4/3*1000) * time.Millisecond))
			get(rt, site)
		}
		want(t, cs, breaker.Closed, "a quarter slow")
		if s := cs.Stats().Circuits[0]; s.Slow < 5 || s.Failures != 0 {
			t.Errorf("stats: %+v", s)
		}
		h.set(takes(time.Second))
		for range 30 {
			get(rt, site)
		}
		want(t, cs, breaker.Open, "half slow")
		if got := cs.Stats().Circuits[0].Reason; got == "" || got[len(got)-len("calls"):] != "calls" {
			t.Errorf("reason %q", got)
		}
		due(t, cs)
		get(rt, site)
		want(t, cs, breaker.HalfOpen, "one slow probe")
		get(rt, site)
		get(rt, site)
		want(t, cs, breaker.Open, "three slow probes")
		due(t, cs)
		h.set(takes(time.Millisecond))
		get(rt, site)
		get(rt, site)
		h.set(takes(time.Second))
		get(rt, site)
		want(t, cs, breaker.Closed, "one slow probe of three")
		h.set(status(500))
		get(rt, site)
		want(t, cs, breaker.Closed, "a failure, no slow call since")
	})
}
