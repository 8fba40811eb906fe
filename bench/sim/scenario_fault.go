package sim

import (
	"context"
	"math"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

func number(p float64) string { return strconv.FormatFloat(p, 'g', -1, 64) }

// replicas is E8: one of ten replicas is slow.
func replicas() scenario {
	hedged := weir.Config{}
	hedged.Retry.Hedge = retry.Hedge{After: 20 * time.Millisecond}
	plain := weirWith(weir.Config{})
	plain.name = "weir without hedging"
	return scenario{
		id: "E8", what: "200/s for 30 s to ten replicas, one 400 ms slower; hedge after 20 ms, replica by chance",
		strategies: []strategy{weirWith(hedged), plain},
		targets:    []target{most("p95 (ms)", 45, 80), most("extra load", 0.12, 0.25)},
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			s := newServer(seed, nil, silent)
			s.oneWay = [2]time.Duration{0, 0}
			s.work = func(s *server, _ *http.Request) outcome {
				took := seconds(0.010 * math.Exp(0.3*s.random.NormFloat64()))
				if s.random.IntN(10) == 0 {
					took += 400 * time.Millisecond
				}
				return outcome{took: took}
			}
			c := st.make(s, seed)
			var mu sync.Mutex
			var took []float64
			offer(t.Context(), newDice(seed), 200, 30*time.Second, c.call, func(begin time.Time, _ bool) {
				mu.Lock()
				defer mu.Unlock()
				took = append(took, time.Since(begin).Seconds()*1000)
			})
			r.add("p50 (ms)", quantile(took, 0.5))
			r.add("p95 (ms)", quantile(took, 0.95))
			r.add("p99 (ms)", quantile(took, 0.99))
			r.add("extra load", float64(s.arrivals)/float64(len(took))-1)
		},
	}
}

// overload is E9: more than the quota is offered, and callers have deadlines.
func overload() scenario {
	c := weir.Config{}
	c.Throttle.Default = throttle.MustParseBudget("100/s burst 1")
	return scenario{
		id: "E9", what: "150/s offered to a budget of 100/s for 60 s, deadline 2 s, service 100 ms", quick: true,
		strategies: []strategy{weirWith(c), rightRate(100, 1)},
		targets:    []target{least("share in time", 0.62, 0.55), most("quota wasted", 0.06, 0.15), most("p99 time to rejection (ms)", 1, 2000)},
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			s := newServer(seed, newBucket(101, 10), silent)
			s.oneWay = [2]time.Duration{0, 0}
			s.work = func(*server, *http.Request) outcome { return outcome{took: 100 * time.Millisecond} }
			cl := st.make(s, seed)
			call := func(ctx context.Context) bool {
				ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
				defer cancel()
				return cl.call(ctx)
			}
			var mu sync.Mutex
			good, calls := 0, 0
			var rejected []float64
			offer(t.Context(), newDice(seed), 150, time.Minute, call, func(begin time.Time, ok bool) {
				mu.Lock()
				defer mu.Unlock()
				calls++
				if ok {
					good++
				} else {
					rejected = append(rejected, time.Since(begin).Seconds()*1000)
				}
			})
			r.add("share in time", float64(good)/float64(calls))
			r.add("quota wasted", float64(s.arrivals-good)/float64(s.arrivals))
			r.add("median time to rejection (ms)", quantile(rejected, 0.5))
			r.add("p99 time to rejection (ms)", quantile(rejected, 0.99))
		},
	}
}

// dead is E11: a host that answers nothing for a minute.
func dead() scenario {
	return scenario{
		id: "E11", what: "100/s; the host resets every connection from 10 s to 70 s", quick: true,
		strategies: []strategy{weirWith(weir.Config{}), naiveRetry(3, time.Second, 100*time.Millisecond)},
		targets:    []target{most("sent while dead", 60, 150), most("noticed after (s)", 25, 75)},
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			s := newServer(seed, nil, silent)
			begin, sent := time.Now(), 0
			s.work = func(*server, *http.Request) outcome {
				if at := time.Since(begin); at >= 10*time.Second && at < 70*time.Second {
					sent++
					return outcome{reset: true}
				}
				return outcome{}
			}
			c := st.make(s, seed)
			noticed := 140.0
			var mu sync.Mutex
			offer(t.Context(), newDice(seed), 100, 150*time.Second, c.call, func(_ time.Time, ok bool) {
				mu.Lock()
				defer mu.Unlock()
				if at := time.Since(begin).Seconds() - 70; ok && at > 0.1 {
					noticed = min(noticed, at)
				}
			})
			r.add("sent while dead", float64(sent))
			r.add("noticed after (s)", noticed)
		},
	}
}

// bans is the rest of E11: what must not open a circuit.
func bans() scenario {
	return scenario{
		id: "E11", what: "a host that answers 429 only for 30 s; half of the callers give up after 10 ms", quick: true,
		strategies: []strategy{weirWith(patient())},
		targets:    []target{most("circuits opened", 0, 0)},
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			s := newServer(seed, nil, silent)
			begin := time.Now()
			s.work = func(*server, *http.Request) outcome {
				if time.Since(begin) < 30*time.Second {
					return outcome{status: 429}
				}
				return outcome{}
			}
			c := st.make(s, seed)
			var n atomic.Int64
			offer(t.Context(), newDice(seed), 20, time.Minute, func(ctx context.Context) bool {
				if n.Add(1)%2 == 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, 10*time.Millisecond)
					defer cancel()
				}
				return c.call(ctx)
			}, func(time.Time, bool) {})
			opened := 0.0
			if w, ok := c.(*weirClient); ok && w.t.Circuits().State("api.example") != 0 {
				opened = 1
			}
			r.add("circuits opened", opened)
		},
	}
}

// absurd is E12: a wait that does not fit the deadline.
func absurd() scenario {
	return scenario{
		id: "E12", what: "Retry-After 120 at a deadline of 5 s", quick: true,
		strategies: []strategy{weirWith(weir.Config{}), naiveRetry(0, 0, time.Second)},
		targets:    []target{most("time to return (ms)", 1, 1), most("sent too early", 0, 0)},
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			s := newServer(seed, &fixed{n: 1, per: 120 * time.Second}, retryAfter)
			s.oneWay = [2]time.Duration{0, 0}
			c := st.make(s, seed)
			c.call(t.Context()) // spends the quota
			begin := time.Now()
			for range 10 {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				c.call(ctx)
				cancel()
			}
			r.add("time to return (ms)", time.Since(begin).Seconds()*1000/10)
			r.add("sent too early", float64(max(0, s.refused-1)))
		},
	}
}

// absurdDates is the rest of E12: waits said as dates by a clock that is wrong,
// and those that are none.
func absurdDates() scenario {
	return scenario{
		id: "E12", what: "Retry-After as a date, the server's clock ten minutes off; then 0, negative, huge and garbage", quick: true,
		strategies: []strategy{weirWith(patient())},
		targets:    []target{most("sent too early", 0, 0), most("longest wait (s)", 302, 620)},
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			early, longest := 0.0, 0.0
			for _, skew := range []time.Duration{-10 * time.Minute, 10 * time.Minute} {
				lie := &skewed{skew: skew, wait: 20 * time.Second}
				begin := time.Now()
				c, err := weir.New(lie, patient())
				if err != nil {
					t.Fatal(err)
				}
				(&weirClient{c}).call(t.Context())
				if took := time.Since(begin); took < 19*time.Second {
					early++
				} else {
					longest = max(longest, took.Seconds())
				}
			}
			for _, text := range []string{"0", "-5", "99999999999999999999", "9007199254741", "soon", ""} {
				s := newServer(seed, nil, silent)
				s.quota, s.tell = &fixed{n: 1, per: time.Second}, text
				c := st.make(s, seed)
				c.call(t.Context())
				begin := time.Now()
				c.call(t.Context())
				longest = max(longest, time.Since(begin).Seconds())
			}
			r.add("sent too early", early)
			r.add("longest wait (s)", longest)
		},
	}
}

// skewed refuses once, with a date by its own clock.
type skewed struct {
	skew, wait time.Duration
	n          int
}

func (s *skewed) RoundTrip(r *http.Request) (*http.Response, error) {
	now := time.Now().Add(s.skew).UTC()
	resp := &http.Response{StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r, Body: http.NoBody,
		Header: http.Header{"Date": {now.Format(http.TimeFormat)}}}
	if s.n++; s.n == 1 {
		resp.StatusCode = 429
		resp.Header.Set("Retry-After", now.Add(s.wait).Format(http.TimeFormat))
	}
	return resp, nil
}
