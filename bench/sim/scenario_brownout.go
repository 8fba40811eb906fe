package sim

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/weirhttp/weir"
)

// served counts calls and those that succeeded.
type served struct {
	mu          sync.Mutex
	calls, good int
}

func (c *served) done(_ time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	if ok {
		c.good++
	}
}

func (c *served) share() float64 { return float64(c.good) / float64(max(1, c.calls)) }

// ends are how a host that fails does so.
var ends = []struct {
	words string
	outcome
}{
	{"answers 500", outcome{status: 500}},
	{"answers 503", outcome{status: 503}},
	{"resets connections", outcome{reset: true}},
}

// brownOuts is E5: attempts fail at random. What three attempts can do is
// 1-p^3; they are 1+p+p^2 on average.
func brownOuts() (all []scenario) {
	for _, d := range []time.Duration{time.Minute, 10 * time.Minute} {
		for _, x := range []struct{ p, share float64 }{{.1, .99}, {.3, .99}, {.5, .95}, {.8, .8}} {
			for i := range ends {
				good, load := x.share*(1-x.p*x.p*x.p), 1+x.p+x.p*x.p+.05
				room := .02
				if x.p > .5 {
					room = .1 // chance has a part in whether the allowance lasts
				}
				all = append(all, brownOut(x.p, d, i, least("share that succeeds", good, good-room), most("attempts per call", load, load+.02)))
			}
		}
	}
	for i := range ends {
		all = append(all, brownOut(1, time.Minute, i, most("attempts per call after 1 s", .02, .02)))
	}
	return all
}

func brownOut(p float64, d time.Duration, end int, targets ...target) scenario {
	return scenario{
		id: "E5", what: fmt.Sprintf("100/s for %.0f s; the host %s with probability %g", d.Seconds(), ends[end].words, p),
		quick:      d == time.Minute && (p == .3 || p == 1 || p == .8 && ends[end].status == 503),
		strategies: append([]strategy{weirWith(weir.Config{}), naiveRetry(3, time.Second, 100*time.Millisecond)}, libraries(usual(3, time.Second))...),
		targets:    targets,
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			s := newServer(seed, nil, silent)
			s.keep = true
			s.work = func(s *server, _ *http.Request) outcome {
				if s.random.Float64() < p {
					return ends[end].outcome
				}
				return outcome{}
			}
			c := st.make(s, seed)
			var all served
			offer(t.Context(), newDice(seed), 100, d, c.call, all.done)
			r.add("attempts per call", float64(s.arrivals)/float64(all.calls))
			r.add("attempts per call after 1 s", float64(len(s.since(time.Second)))/(100*(d-time.Second).Seconds()))
			r.add("share that succeeds", all.share())
		},
	}
}

// since are the arrivals from an instant on.
func (s *server) since(from time.Duration) []moment {
	for i, m := range s.log {
		if m.at >= from {
			return s.log[i:]
		}
	}
	return nil
}

// A fault is a host that serves some calls and not others. lost is the share of
// those it would have served, within their deadline of 5 s, that were not.
type fault struct {
	what  string
	state func(r *http.Request, at time.Duration) outcome // status 500: to be lost
}

func faults() (all []scenario) {
	for _, f := range []fault{
		{"good for 10 s, dead for 5 s", func(_ *http.Request, at time.Duration) (o outcome) {
			if at%(15*time.Second) >= 10*time.Second {
				o.status = 500
			}
			return o
		}},
		{"one shard of ten is dead", func(r *http.Request, _ time.Duration) (o outcome) {
			if r.URL.Query().Get("shard") == "7" {
				o.status = 500
			}
			return o
		}},
		{"a path that four calls in ten ask for is always answered 500", func(r *http.Request, _ time.Duration) (o outcome) {
			if r.URL.Query().Get("shard") < "4" {
				o.status = 500
			}
			return o
		}},
		{"answers take 3 s from 10 s to 60 s", func(_ *http.Request, at time.Duration) (o outcome) {
			if at >= 10*time.Second && at < time.Minute {
				o.took = 3 * time.Second
			}
			return o
		}},
	} {
		all = append(all, scenario{
			id: "Fault", what: "100/s for 90 s, deadline 5 s; " + f.what,
			strategies: append([]strategy{weirWith(weir.Config{}), naiveRetry(3, 0, 100*time.Millisecond)}, libraries(usual(3, 5*time.Second))...),
			targets:    []target{most("lost of what could be served", .01, .02)},
			run: func(t *testing.T, st strategy, seed uint64, r *result) {
				s := newServer(seed, nil, silent)
				s.work = func(s *server, r *http.Request) outcome { return f.state(r, time.Since(s.begin)) }
				c, d := st.make(s, seed), newDice(seed)
				var could served
				offer(t.Context(), d, 100, 90*time.Second, func(ctx context.Context) bool {
					begin, shard := time.Since(s.begin), int(10*d.float())
					ctx, cancel := context.WithTimeout(context.WithValue(ctx, shardKey{}, shard), 5*time.Second)
					defer cancel()
					ok := c.call(ctx)
					if f.state(request(ctx), begin+20*time.Millisecond).status == 0 {
						could.done(time.Time{}, ok)
					}
					return ok
				}, func(time.Time, bool) {})
				r.add("lost of what could be served", 1-could.share())
				r.add("attempts per call", float64(s.arrivals)/9000)
			},
		})
	}
	return all
}

// shardKey is under what a call's context says which shard it goes to.
type shardKey struct{}

// recoveries are outages of three lengths, and what follows them.
func recoveries() (all []scenario) {
	for _, lasts := range []time.Duration{3 * time.Second, time.Minute, 10 * time.Minute} {
		for _, rate := range []int{200, 20} {
			for _, how := range []struct {
				words string
				end   outcome
			}{{"answers 503", outcome{status: 503}}, {"resets connections", outcome{reset: true}}, {"never answers", outcome{took: time.Hour}}} {
				back := 1.
				if rate == 20 {
					back = 5.3 // 100 calls, and three good probes
				}
				all = append(all, scenario{
					id: "Recovery", what: fmt.Sprintf("%d/s, deadline 2 s; from 10 s on the host %s for %v", rate, how.words, lasts),
					quick:      lasts == time.Minute && rate == 200 && how.end.reset,
					strategies: append([]strategy{weirWith(weir.Config{})}, libraries(usual(3, 2*time.Second))...),
					targets:    []target{most("upstream by arrivals after 1 s", .01, .015), most("goodput back (s)", back, back), most("peak by arrivals", 1.5, 1.7)},
					run: func(t *testing.T, st strategy, seed uint64, r *result) {
						recovery(t, st, seed, how.end, rate, lasts, r)
					},
				})
			}
		}
	}
	return all
}

// recovery is one outage that begins after 10 s. Calls come at equal distances,
// so that goodput is known to a call.
func recovery(t *testing.T, st strategy, seed uint64, bad outcome, rate int, lasts time.Duration, r *result) {
	const down = 10 * time.Second
	up := down + lasts
	end := up + 20*time.Second
	s := newServer(seed, nil, silent)
	s.keep = true
	s.work = func(s *server, _ *http.Request) outcome {
		if at := time.Since(s.begin); at >= down && at < up {
			return bad
		}
		return outcome{}
	}
	c := st.make(s, seed)
	lost := evenly(s, rate, end, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		return c.call(ctx)
	})
	sent, back := s.sent(), up
	for _, at := range lost {
		back = max(back, at)
	}
	peak := 0
	for w := up; w+time.Second <= end; w += 100 * time.Millisecond {
		peak = max(peak, len(between(sent, w, w+time.Second)))
	}
	r.add("upstream by arrivals after 1 s", float64(len(between(sent, down+time.Second, up)))/(float64(rate)*(lasts-time.Second).Seconds()))
	r.add("goodput back (s)", (back - up).Seconds())
	r.add("peak by arrivals", float64(peak)/float64(rate))
	r.add("lost before", float64(len(between(lost, 0, down-2*time.Second))))
}

// evenly makes calls at equal distances, and returns when those began that failed.
func evenly(s *server, rate int, end time.Duration, call func() bool) (lost []time.Duration) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for at := time.Duration(0); at < end; at += time.Second / time.Duration(rate) {
		time.Sleep(at - time.Since(s.begin))
		all.Go(func() {
			if !call() {
				mu.Lock()
				defer mu.Unlock()
				lost = append(lost, at)
			}
		})
	}
	all.Wait()
	return lost
}

// sent is when each request arrived.
func (s *server) sent() []time.Duration {
	sent := make([]time.Duration, len(s.log))
	for i, m := range s.log {
		sent[i] = m.at
	}
	return sent
}

// hurried is a host whose answers take 3 s, and callers of whom most wait for 2 s.
func hurried() scenario {
	return scenario{
		id: "Hurry", what: "10/s for 60 s; answers take 3 s; three callers of four have a deadline of 2 s, the others of 30 s",
		strategies: append([]strategy{weirWith(weir.Config{})}, libraries(usual(3, 30*time.Second))...),
		targets:    []target{most("patient callers lost", .01, .01)},
		quick:      true,
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			s := newServer(seed, nil, silent)
			s.work = func(*server, *http.Request) outcome { return outcome{took: 3 * time.Second} }
			c, d := st.make(s, seed), newDice(seed)
			var patient served
			offer(t.Context(), newDice(seed+1), 10, time.Minute, func(ctx context.Context) bool {
				wait := 2 * time.Second
				if d.float() >= .75 {
					wait = 30 * time.Second
				}
				ctx, cancel := context.WithTimeout(ctx, wait)
				defer cancel()
				ok := c.call(ctx)
				if wait > 2*time.Second {
					patient.done(time.Time{}, ok)
				}
				return ok
			}, func(time.Time, bool) {})
			r.add("patient callers lost", 1-patient.share())
		},
	}
}

// processes are many small clients of one host that is dead for a minute.
func processes() scenario {
	return scenario{
		id: "Processes", what: "50 processes of 5/s each; the host resets every connection from 10 s to 70 s",
		strategies: append([]strategy{weirWith(weir.Config{})}, libraries(usual(3, 2*time.Second))...),
		targets:    []target{most("upstream by arrivals after 2 s", .01, .015)},
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			s := newServer(seed, nil, silent)
			s.keep = true
			s.work = func(s *server, _ *http.Request) outcome {
				at := time.Since(s.begin)
				return outcome{reset: at >= 10*time.Second && at < 70*time.Second}
			}
			var wg sync.WaitGroup
			for i := range uint64(50) {
				c := st.make(s, seed*50+i)
				wg.Go(func() {
					offer(t.Context(), newDice(seed*50+i), 5, 80*time.Second, c.call, func(time.Time, bool) {})
				})
			}
			wg.Wait()
			n := 0
			for _, m := range s.since(12 * time.Second) {
				if m.at < 70*time.Second {
					n++
				}
			}
			r.add("upstream by arrivals after 2 s", float64(n)/(250*58))
		},
	}
}

// patients are callers who rather wait, through outages of three lengths. What waited is
// sent within the rest of their patience, beside what comes anew: if that is shorter than
// twice the outage, the peak is 1 + outage / Patience at the least.
func patients() (all []scenario) {
	for _, x := range []struct {
		lasts    time.Duration
		rate     int
		patience time.Duration
		words    string
	}{
		{3 * time.Second, 100, time.Minute + 3*time.Second, "a minute longer than"}, {time.Minute, 100, 2 * time.Minute, "a minute longer than"},
		{10 * time.Minute, 10, 11 * time.Minute, "a minute longer than"},
		{time.Minute, 100, 3 * time.Minute, "three times as long as"}, {time.Minute, 20, 3 * time.Minute, "three times as long as"},
	} {
		for _, end := range []outcome{{status: 503}, {reset: true}, {took: time.Hour}} {
			words := fmt.Sprintf("answers %d", end.status)
			if end.reset {
				words = "resets connections"
			} else if end.took > 0 {
				words = "never answers"
			}
			var c weir.Config
			c.Breaker.Patience = x.patience
			c.Retry.AttemptTimeout = 2 * time.Second
			all = append(all, scenario{
				id: "Patience", what: fmt.Sprintf("%d/s, Patience %s the outage; from 10 s on the host %s for %v", x.rate, x.words, words, x.lasts),
				strategies: []strategy{weirWith(c)},
				targets:    []target{most("calls that fail", 0, 0), most("upstream by arrivals after 1 s", .01, .03), most("peak by arrivals", 1.5, 1.7)},
				run: func(t *testing.T, st strategy, seed uint64, r *result) {
					patience(t, st, seed, end, x.rate, x.lasts, r)
				},
			})
		}
	}
	return all
}

func patience(t *testing.T, st strategy, seed uint64, bad outcome, rate int, lasts time.Duration, r *result) {
	const down = 10 * time.Second
	up := down + lasts
	s := newServer(seed, nil, silent)
	s.keep = true
	s.work = func(s *server, _ *http.Request) outcome {
		if at := time.Since(s.begin); at >= down && at < up {
			return bad
		}
		return outcome{}
	}
	c := st.make(s, seed)
	lost := evenly(s, rate, up+30*time.Second, func() bool { return c.call(t.Context()) })
	sent, peak := s.sent(), 0
	for w := up; w < sent[len(sent)-1]; w += time.Second {
		peak = max(peak, len(between(sent, w, w+time.Second)))
	}
	r.add("calls that fail", float64(len(lost)))
	r.add("upstream by arrivals after 1 s", float64(len(between(sent, down+time.Second, up)))/(float64(rate)*(lasts-time.Second).Seconds()))
	r.add("peak by arrivals", float64(peak)/float64(rate))
}

// thousands are as many small clients, none of which asks often enough to know soon
// that the host is dead.
func thousands() scenario {
	return scenario{
		id: "Processes", what: "2000 processes of a call each 10 s; the host answers 503 from 10 s to 70 s",
		strategies: append([]strategy{weirWith(weir.Config{})}, libraries(usual(3, 2*time.Second))...),
		targets:    []target{most("attempts per call while it is down", 3, 3)},
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			s := newServer(seed, nil, silent)
			s.keep = true
			s.work = func(s *server, _ *http.Request) (o outcome) {
				if at := time.Since(s.begin); at >= 10*time.Second && at < 70*time.Second {
					o.status = 503
				}
				return o
			}
			var wg sync.WaitGroup
			for i := range uint64(2000) {
				c := st.make(s, seed*2000+i)
				wg.Go(func() {
					offer(t.Context(), newDice(seed*2000+i), .1, 90*time.Second, c.call, func(time.Time, bool) {})
				})
			}
			wg.Wait()
			r.add("attempts per call while it is down", float64(len(between(s.sent(), 10*time.Second, 70*time.Second)))/(200*60))
		},
	}
}
