package sim

import (
	"fmt"
	"testing"
	"time"
)

// A scenario is one experiment, run once per strategy and seed.
type scenario struct {
	id         string
	what       string
	strategies []strategy
	run        func(t *testing.T, st strategy, seed uint64, r *result)
	targets    []target
	quick      bool // cheap enough for every test run
}

// A target is what weir is to reach, and the bound that tests hold it to, which
// leaves room for the order in which goroutines happen to run.
type target struct {
	figure string
	atMost bool // else at least
	want   float64
	test   float64
}

func most(figure string, want, test float64) target  { return target{figure, true, want, test} }
func least(figure string, want, test float64) target { return target{figure, false, want, test} }

// scenarios are all experiments.
func scenarios() []scenario {
	var all []scenario
	all = append(all, buckets()...)
	all = append(all, windows()...)
	all = append(all, steps(silent), steps(ietf), sharers())
	all = append(all, brownOuts()...)
	all = append(all, faults()...)
	all = append(all, recoveries()...)
	all = append(all, patients()...)
	all = append(all, hurried(), processes(), thousands())
	all = append(all, metastable(0), metastable(.25))
	all = append(all, herds()...)
	all = append(all, crowds()...)
	all = append(all, replicas(), overload())
	all = append(all, tenants()...)
	all = append(all, outages()...)
	return append(all, dead(), bans(), absurd(), absurdDates())
}

// makespan runs jobs and adds how long they took, as a multiple of ideal, and
// the refusals per success.
func makespan(t *testing.T, st strategy, r *result, s *server, n int, ideal time.Duration) {
	c := st.make(s, r.seed)
	took, failed := jobs(t.Context(), c, n, 64)
	r.add("makespan", took.Seconds()/ideal.Seconds())
	r.add("refusals", float64(s.refused)/float64(max(1, s.good)))
	r.add("failures", float64(failed))
}

// rivals are weir and, where the server is silent, the plain strategies: they
// read no headers, so that their figures are the same in every dialect. The
// libraries read Retry-After, which stands in all dialects but the silent one.
func rivals(d dialect, right strategy) []strategy {
	all := []strategy{weirWith(patient())}
	if d == silent {
		all = append(all, naiveRetry(0, 0, time.Second), right, adaptiveRetry())
	}
	if d == silent || d == retryAfter {
		all = append(all, libraries(stubborn())...)
	}
	return all
}

// buckets is E1: how long n jobs take against a token bucket nobody told of.
func buckets() (all []scenario) {
	for _, b := range []struct {
		rate, size float64
		quick      bool
	}{{1, 1, true}, {5, 5, true}, {50, 50, true}, {500, 100, false}} {
		for _, d := range []dialect{silent, retryAfter, ietf, untilFull, named, stamped} {
			if d >= named && b.rate != 50 {
				continue
			}
			n := int(59*b.rate + b.size)
			ideal := seconds((float64(n)-b.size)/b.rate + 0.04)
			sc := scenario{
				id: "E1", what: fmt.Sprintf("bucket %g/s, size %g, %s", b.rate, b.size, d), quick: b.quick && d < untilFull,
				strategies: rivals(d, rightRate(b.rate, int(b.size))),
				targets:    []target{most("makespan", 1.10, 1.25), most("refusals", 0.05, 0.10), most("failures", 0, 0)},
			}
			switch {
			case b.rate == 1:
				sc.targets = []target{most("makespan", 1.30, 1.80), most("refusals", 0.40, 0.70), most("failures", 0, 0)}
			case d >= ietf:
				sc.targets = []target{most("makespan", 1.02, 1.10), most("refusals", 0, 0.02), most("failures", 0, 0)}
			}
			sc.run = func(t *testing.T, st strategy, seed uint64, r *result) {
				s := newServer(seed, newBucket(b.rate, b.size), d)
				makespan(t, st, r, s, n, ideal)
			}
			all = append(all, sc)
		}
	}
	for _, d := range []dialect{silent, retryAfter} { // nobody who has such a bucket says more
		all = append(all, scenario{
			id: "E1", what: "leaky bucket 10/s, burst 20, " + d.String(), quick: d == silent,
			strategies: rivals(d, rightRate(10, 1)),
			targets:    []target{most("makespan", 1.10, 1.25), most("refusals", 0.05, 0.15), most("failures", 0, 0)},
			run: func(t *testing.T, st strategy, seed uint64, r *result) {
				s := newServer(seed, &leaky{rate: 10, burst: 20}, d)
				makespan(t, st, r, s, 611, seconds(59+0.04))
			},
		})
	}
	return all
}

// windows is E2: the same against fixed and sliding windows.
func windows() (all []scenario) {
	for _, d := range []dialect{silent, retryAfter, ietf, legacy, trio, named, stamped} {
		targets := []target{most("makespan", 1.10, 1.25), most("refusals", 0.03, 0.06), most("failures", 0, 0)}
		switch d {
		default:
			targets = []target{most("makespan", 1.03, 1.10), most("refusals", 0, 0.02), most("failures", 0, 0)}
		case silent:
			targets = []target{most("failures", 0, 0)}
		case retryAfter:
		}
		all = append(all, scenario{
			id: "E2", what: "fixed window 100 per 10 s, " + d.String(), targets: targets, quick: d <= legacy,
			strategies: rivals(d, rightRate(10, 1)),
			run: func(t *testing.T, st strategy, seed uint64, r *result) {
				s := newServer(seed, nil, d)
				phase := seconds(10 * newDice(seed).float())
				s.quota = &fixed{n: 100, per: 10 * time.Second, phase: phase}
				makespan(t, st, r, s, 1000, 90*time.Second-phase+40*time.Millisecond)
			},
		}, scenario{
			id: "E2", what: "sliding window 600 per 60 s, " + d.String(), targets: targets,
			strategies: rivals(d, rightRate(10, 1)),
			run: func(t *testing.T, st strategy, seed uint64, r *result) {
				s := newServer(seed, &sliding{n: 600, per: time.Minute}, d)
				makespan(t, st, r, s, 3000, 240*time.Second+40*time.Millisecond)
			},
		})
	}
	return all
}
