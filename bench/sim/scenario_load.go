package sim

import (
	"context"
	"math"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/weirhttp/weir"
)

// sharers is E4: eight clients, unknown to each other, on one bucket.
func sharers() scenario {
	return scenario{
		id: "E4", what: "eight clients on one bucket of 50/s for 120 s, silent",
		strategies: append([]strategy{weirWith(patient()), naiveRetry(0, 0, time.Second), adaptiveRetry()}, libraries(stubborn())...),
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

// metastable is E6: an overload that outlives its cause, because the server
// works on what nobody waits for any more. Callers wait for a second; or else
// the patient do so for half a minute, and the others for a second.
func metastable(patient float64) scenario {
	c, timeout, words := weir.Config{}, time.Second, ""
	if patient == 0 {
		c.Retry.AttemptTimeout = time.Second
		c.Throttle.MaxWait = 2 * time.Second
	} else {
		timeout, words = 30*time.Second, "; one caller in four has a deadline of 30 s, the others of 1 s"
	}
	return scenario{
		id: "E6", what: "280/s offered to a server of 300/s; it stands still from 20 s to 30 s" + words,
		strategies: append([]strategy{weirWith(c), naiveRetry(4, time.Second, 100*time.Millisecond)}, libraries(usual(4, timeout))...),
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
			c, d := st.make(s, seed), newDice(seed+1)
			good, calls := newTally(), newTally()
			offer(t.Context(), newDice(seed), 280, 90*time.Second, func(ctx context.Context) bool {
				if patient == 0 {
					return c.call(ctx)
				}
				wait := time.Second
				if d.float() < patient {
					wait = timeout
				}
				ctx, cancel := context.WithTimeout(ctx, wait)
				defer cancel()
				return c.call(ctx)
			}, func(begin time.Time, ok bool) {
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
		strategies: append([]strategy{weirWith(patient()), naiveRetry(0, 0, time.Second)}, libraries(stubborn())...),
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
		strategies: append([]strategy{weirWith(patient()), naiveRetry(0, 0, time.Second)}, libraries(stubborn())...),
		targets:    []target{most("refusals", 0.1, 0.2), most("drained after (s)", 15.4, 20)},
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

// crowds are a thousand goroutines that begin at the same moment, on a host
// nobody has spoken to, with a quota for half of them.
func crowds() (all []scenario) {
	for _, d := range []dialect{silent, retryAfter, ietf} {
		strategies := []strategy{weirWith(patient())}
		if d != ietf {
			strategies = append(append(strategies, naiveRetry(0, 0, time.Second)), libraries(stubborn())...)
		}
		all = append(all, scenario{
			id: "Crowd", what: "1000 goroutines at once on a fresh host, window of 500 per minute, " + d.String(), quick: true,
			strategies: strategies,
			targets:    []target{most("refusals in all", 64, 80), most("failures", 0, 0)},
			run: func(t *testing.T, st strategy, seed uint64, r *result) {
				s := newServer(seed, &fixed{n: 500, per: time.Minute}, d)
				s.keep = true
				took, failed := jobs(t.Context(), st.make(s, seed), 1000, 1000)
				early := 0.
				for _, m := range s.log {
					if !m.ok && m.at < 10*time.Second {
						early++
					}
				}
				r.add("refusals in the first 10 s", early)
				r.add("refusals in all", float64(s.refused))
				r.add("makespan", took.Seconds()/60.04)
				r.add("failures", float64(failed))
			},
		})
	}
	return all
}
