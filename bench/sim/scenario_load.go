package sim

import (
	"context"
	"math"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/throttle"
)

// steps is E3: a quota that changes while the client is saturated.
func steps() scenario {
	return scenario{
		id: "E3", what: "bucket 50/s, 25/s from 60 s, 100/s from 120 s to 240 s, silent",
		strategies: []strategy{weirWith(patient()), adaptiveRetry()},
		targets: []target{most("found down (s)", 3, 8), most("found up (s)", 25, 40),
			most("refusals in phase 1", 30, 60), most("refusals in phase 2", 15, 40), most("refusals in phase 3", 20, 60)},
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			q := newBucket(50, 50)
			s := newServer(seed, q, silent)
			c := st.make(s, seed)
			s.keep = true
			ctx, cancel := context.WithTimeout(t.Context(), 240*time.Second)
			defer cancel()
			change := func(after time.Duration, rate float64) {
				time.AfterFunc(after, func() {
					s.mu.Lock()
					defer s.mu.Unlock()
					q.fill(time.Now())
					q.rate, q.size, q.tokens = rate, rate, min(q.tokens, rate)
				})
			}
			change(60*time.Second, 25)
			change(120*time.Second, 100)
			jobs(ctx, c, 1<<30, 64)
			accepted, refused := make([]float64, 241), make([]float64, 241)
			for _, m := range s.log {
				i := min(240, int(m.at/time.Second))
				if m.ok {
					accepted[i]++
				} else {
					refused[i]++
				}
			}
			r.add("found down (s)", foundAfter(accepted, 60, 120, 25))
			r.add("found up (s)", foundAfter(accepted, 120, 240, 100))
			for i, span := range [][2]int{{0, 60}, {60, 120}, {120, 240}} {
				name := "phase " + string(rune('1'+i))
				r.add("refusals in "+name, sum(refused[span[0]:span[1]]))
				r.add("utilisation in "+name, sum(accepted[span[0]:span[1]])/([]float64{50, 25, 100}[i]*float64(span[1]-span[0])))
			}
		},
	}
}

// foundAfter is how many seconds after from the accepted rate first is within a
// tenth of rate, as a mean of three seconds.
func foundAfter(accepted []float64, from, to int, rate float64) float64 {
	for i := from; i+3 <= to; i++ {
		if mean := sum(accepted[i:i+3]) / 3; math.Abs(mean-rate) <= rate/10 {
			return float64(i - from)
		}
	}
	return float64(to - from)
}

func sum(v []float64) (n float64) {
	for _, x := range v {
		n += x
	}
	return n
}

// sharers is E4: eight clients, unknown to each other, on one bucket.
func sharers() scenario {
	return scenario{
		id: "E4", what: "eight clients on one bucket of 50/s for 120 s, silent",
		strategies: []strategy{weirWith(patient()), naiveRetry(0, 0, time.Second), adaptiveRetry()},
		targets:    []target{least("utilisation", 0.98, 0.90), most("refusals", 0.03, 0.12), least("Jain index", 0.93, 0.70)},
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			s := newServer(seed, newBucket(50, 50), silent)
			ctx, cancel := context.WithTimeout(t.Context(), 120*time.Second)
			defer cancel()
			var wg sync.WaitGroup
			shares := make([]float64, 8)
			for i := range shares {
				c := &counting{client: st.make(s, seed*8+uint64(i))}
				wg.Go(func() {
					jobs(ctx, c, 1<<30, 16)
					shares[i] = float64(c.good)
				})
			}
			wg.Wait()
			r.add("utilisation", float64(s.good)/(50*120+50))
			r.add("refusals", float64(s.refused)/float64(s.good))
			r.add("Jain index", jain(shares))
		},
	}
}

type counting struct {
	client
	mu   sync.Mutex
	good int
}

func (c *counting) call(ctx context.Context) bool {
	ok := c.client.call(ctx)
	if ok {
		c.mu.Lock()
		c.good++
		c.mu.Unlock()
	}
	return ok
}

func jain(v []float64) float64 {
	var s, q float64
	for _, x := range v {
		s += x
		q += x * x
	}
	return s * s / (float64(len(v)) * q)
}

// brownOuts is E5: requests fail at random.
func brownOuts(p float64) scenario {
	return scenario{
		id: "E5", what: "100/s for 60 s, each attempt fails with probability " + number(p), quick: p < 0.5 || p == 1,
		strategies: []strategy{weirWith(weir.Config{}), naiveRetry(3, time.Second, 100*time.Millisecond)},
		targets:    []target{most("attempts per call", 1.25, 1.5)},
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			s := newServer(seed, nil, silent)
			s.work = func(s *server, _ *http.Request) outcome {
				if s.random.Float64() < p {
					return outcome{status: 503}
				}
				return outcome{}
			}
			c := st.make(s, seed)
			var mu sync.Mutex
			calls, good := 0, 0
			offer(t.Context(), newDice(seed), 100, time.Minute, c.call, func(_ time.Time, ok bool) {
				mu.Lock()
				defer mu.Unlock()
				calls++
				if ok {
					good++
				}
			})
			r.add("attempts per call", float64(s.arrivals)/float64(calls))
			r.add("share that succeeds", float64(good)/float64(calls))
		},
	}
}

// metastable is E6: an overload that outlives its cause, because the server
// works on what nobody waits for any more.
func metastable() scenario {
	c := weir.Config{}
	c.Retry.AttemptTimeout = time.Second
	c.Throttle.MaxWait = 2 * time.Second
	return scenario{
		id: "E6", what: "280/s offered to a server of 300/s; it stands still from 20 s to 30 s",
		strategies: []strategy{weirWith(c), naiveRetry(4, time.Second, 100*time.Millisecond)},
		targets:    []target{most("recovered after (s)", 10, 20), most("attempts per call", 1.0, 1.2), least("goodput after", 0.97, 0.85)},
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			s := newServer(seed, nil, silent)
			s.oneWay = [2]time.Duration{5 * time.Millisecond, 5 * time.Millisecond}
			var free time.Time // when the server has done all it has accepted
			stop := time.Now().Add(20 * time.Second)
			s.work = func(s *server, _ *http.Request) outcome {
				now := time.Now()
				if free.Before(now) {
					free = now
				}
				if resume := stop.Add(10 * time.Second); free.After(stop) && free.Before(resume) {
					free = resume
				}
				free = free.Add(seconds(-math.Log(1-s.random.Float64()) / 300))
				return outcome{took: free.Sub(now)}
			}
			c := st.make(s, seed)
			good, calls := newTally(), newTally()
			offer(t.Context(), newDice(seed), 280, 90*time.Second, c.call, func(begin time.Time, ok bool) {
				calls.add(begin)
				if ok {
					good.add(time.Now())
				}
			})
			recovered := 60.0
			for i := 30; i+10 <= 90 && i+10 <= len(good.bins); i++ {
				n := 0
				for _, g := range good.bins[i : i+10] {
					n += g
				}
				if float64(n) >= 0.9*280*10 {
					recovered = float64(i - 30)
					break
				}
			}
			r.add("recovered after (s)", recovered)
			r.add("attempts per call", float64(s.arrivals)/float64(total(calls.bins)))
			r.add("goodput after", float64(total(good.bins[min(30, len(good.bins)):]))/float64(total(calls.bins[min(30, len(calls.bins)):])))
		},
	}
}

func total(v []int) (n int) {
	for _, x := range v {
		n += x
	}
	return n
}

// herds is E7: a thousand processes of one job each, and one process of a
// thousand, against a server that tells everyone five seconds.
func herds() []scenario {
	sc := scenario{
		id: "E7", what: "1000 processes of one job, bucket 100/s, size 100, Retry-After always 5",
		strategies: []strategy{weirWith(patient()), naiveRetry(0, 0, time.Second)},
		targets:    []target{most("refusals", 1.6, 2.5), most("drained after (s)", 20, 35)},
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			s := newServer(seed, newBucket(100, 100), retryAfter)
			s.tell, s.oneWay = "5", [2]time.Duration{0, time.Millisecond}
			d := newDice(seed)
			var wg sync.WaitGroup
			begin := time.Now()
			for i := range 1000 {
				c, after := st.make(s, seed*1000+uint64(i)), seconds(d.float()/10)
				wg.Go(func() {
					time.Sleep(after)
					c.call(t.Context())
				})
			}
			wg.Wait()
			r.add("refusals", float64(s.refused)/float64(max(1, s.good)))
			r.add("drained after (s)", time.Since(begin).Seconds())
		},
	}
	one := scenario{
		id: "E7", what: "one process of 1000 jobs, the same server", quick: true,
		strategies: []strategy{weirWith(patient()), naiveRetry(0, 0, time.Second)},
		targets:    []target{most("refusals", 0.1, 0.2), most("drained after (s)", 15.4, 25)},
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			s := newServer(seed, newBucket(100, 100), retryAfter)
			s.tell = "5"
			took, _ := jobs(t.Context(), st.make(s, seed), 1000, 1000)
			r.add("refusals", float64(s.refused)/float64(max(1, s.good)))
			r.add("drained after (s)", took.Seconds())
		},
	}
	return []scenario{sc, one}
}

// tenants is E10: three lanes share one budget.
func tenants() scenario {
	type laneKey struct{}
	c := weir.Config{}
	c.Throttle.Default = throttle.MustParseBudget("100/s burst 1")
	c.Throttle.MaxWait = time.Second
	c.Throttle.Lane = func(r *http.Request) string { lane, _ := r.Context().Value(laneKey{}).(string); return lane }
	return scenario{
		id: "E10", what: "budget 100/s; lanes offer 400, 20 and 20/s for 30 s", quick: true,
		strategies: []strategy{weirWith(c)},
		targets: []target{least("share of the large lane", 0.58, 0.5), most("share of the large lane ", 0.62, 0.7),
			most("p99 wait of small lanes (s)", 0.03, 0.3)},
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			s := newServer(seed, nil, silent)
			cl := st.make(s, seed)
			var mu sync.Mutex
			good := map[string]float64{}
			var waits []float64
			var wg sync.WaitGroup
			for i, lane := range []string{"large", "small 1", "small 2"} {
				wg.Go(func() {
					ctx := context.WithValue(t.Context(), laneKey{}, lane)
					offer(ctx, newDice(seed*3+uint64(i)), []float64{400, 20, 20}[i], 30*time.Second, cl.call, func(begin time.Time, ok bool) {
						mu.Lock()
						defer mu.Unlock()
						if ok {
							good[lane]++
							if i > 0 {
								waits = append(waits, time.Since(begin).Seconds()-0.04)
							}
						}
					})
				})
			}
			wg.Wait()
			all := good["large"] + good["small 1"] + good["small 2"]
			r.add("share of the large lane", good["large"]/all)
			r.add("share of the large lane ", good["large"]/all)
			r.add("p99 wait of small lanes (s)", quantile(waits, 0.99))
		},
	}
}
