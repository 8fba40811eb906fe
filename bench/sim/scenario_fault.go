package sim

import (
	"context"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/retry"
)

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

// dead is E11: a host that answers nothing for a minute.
func dead() scenario {
	return scenario{
		id: "E11", what: "100/s; the host resets every connection from 10 s to 70 s", quick: true,
		strategies: append([]strategy{weirWith(weir.Config{}), naiveRetry(3, time.Second, 100*time.Millisecond)}, libraries(usual(3, time.Second))...),
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

// outages are those of 3.5 s that the other half of bench measures on real
// servers, here without what a machine adds.
func outages() (all []scenario) {
	waits := weir.Config{}
	waits.Breaker.Patience = 10 * time.Second
	tolerant := weirWith(waits)
	tolerant.name = "weir, patient"
	for _, how := range []struct {
		words string
		end   outcome
	}{{"answers 503", outcome{status: 503}}, {"resets connections", outcome{reset: true}}} {
		all = append(all, scenario{
			id: "Outage", what: "200/s, deadline 10 s; the host " + how.words + " from 1 s to 4.5 s", quick: true,
			strategies: append([]strategy{weirWith(weir.Config{}), tolerant, naiveRetry(4, 10*time.Second, 100*time.Millisecond)},
				libraries(usual(4, 10*time.Second))...),
			targets: []target{most("upstream by arrivals", 0.1, 0.1), most("goodput back (s)", 0.3, 0.5), most("peak by arrivals", 1.5, 1.7)},
			run: func(t *testing.T, st strategy, seed uint64, r *result) {
				ordeal(t, st, seed, how.end, r)
			},
		})
	}
	return all
}

// ordeal is one outage: calls come every 5 ms from 0 s to 12 s.
func ordeal(t *testing.T, st strategy, seed uint64, bad outcome, r *result) {
	const down, up, end = time.Second, 4500 * time.Millisecond, 12 * time.Second
	s := newServer(seed, nil, silent)
	s.oneWay, s.keep = [2]time.Duration{0, time.Millisecond}, true
	s.work = func(s *server, _ *http.Request) outcome {
		if at := time.Since(s.begin); at >= down && at < up {
			return bad
		}
		return outcome{}
	}
	c := st.make(s, seed)
	var mu sync.Mutex
	var good []time.Duration
	during, after := 0., 0.
	var all sync.WaitGroup
	for at := time.Duration(0); at < end; at += 5 * time.Millisecond {
		time.Sleep(at - time.Since(s.begin))
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			ok := c.call(ctx)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case ok:
				good = append(good, time.Since(s.begin))
			case at < up:
				during++
			default:
				after++
			}
		})
	}
	all.Wait()
	sent := make([]time.Duration, len(s.log))
	for i, m := range s.log {
		sent[i] = m.at
	}
	peak, back := 0, end-up
	for w := up; w+100*time.Millisecond <= end; w += 10 * time.Millisecond {
		peak = max(peak, within(sent, w))
		if back == end-up && within(good, w) >= 18 {
			back = w - up
		}
	}
	r.add("upstream by arrivals", float64(len(between(sent, down, up)))/700)
	r.add("goodput back (s)", back.Seconds())
	r.add("peak by arrivals", float64(peak)/20)
	r.add("errors of calls in it", during)
	r.add("of calls after it", after)
}

func between(at []time.Duration, from, to time.Duration) (list []time.Duration) {
	for _, x := range at {
		if x >= from && x < to {
			list = append(list, x)
		}
	}
	return list
}

// within counts what falls into 100 ms.
func within(at []time.Duration, from time.Duration) int {
	return len(between(at, from, from+100*time.Millisecond))
}
