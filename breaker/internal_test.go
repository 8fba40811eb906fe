package breaker

// This file looks inside: how often chance is taken for collapse shows only in
// millions of calls, which take too long through a Door and a Meter, and what a row
// keeps shows nowhere else.

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A host that fails at random keeps its circuit closed: at 100 calls a second
// that make three attempts each, it opens at most so often in a minute.
func TestChanceIsNotTakenForCollapse(t *testing.T) {
	const minutes = 400
	r := rand.New(rand.NewPCG(1, 2))
	for _, x := range []struct{ p, opens float64 }{{.05, .01}, {.1, .03}, {.3, .07}, {.5, .25}, {.7, .8}, {.8, 1.5}} {
		opens := 0
		for range minutes {
			var c chance
			run := 0
			for range int(6000 * (1 + x.p + x.p*x.p)) {
				if r.Float64() > x.p {
					c.succeeded()
					run = 0
					continue
				}
				c.failed()
				if run++; c.hopeless(run, 5) {
					opens++
					run = 0
				}
			}
		}
		if got := float64(opens) / minutes; got > x.opens {
			t.Errorf("a host that fails %g of its calls opens its circuit %.3f times a minute, want at most %g", x.p, got, x.opens)
		}
	}
}

// TestRowIsInTheOrderOfBeginning compares rows with what a look at all attempts shows.
func TestRowIsInTheOrderOfBeginning(t *testing.T) {
	const success = beside + 1
	for seed := range uint64(300) {
		r, now := rand.New(rand.NewPCG(seed, 3)), time.Now()
		var (
			row  row
			all  []ending // of the attempts in the order in which they began
			open []uint64
		)
		row.reset(0, now)
		good := .4 * r.Float64()
		for step := range 300 {
			if len(open) == 0 || len(open) < 1+int(seed%40) && r.IntN(2) == 0 {
				all = append(all, underWay)
				if n := row.begins(now); n != uint64(len(all)) {
					t.Fatalf("seed %d: attempt %d has the number %d", seed, len(all), n)
				}
				open = append(open, uint64(len(all)))
				continue
			}
			i := r.IntN(len(open))
			n := open[i]
			open = append(open[:i], open[i+1:]...)
			row.ends(n)
			switch x := r.Float64(); {
			case x < good:
				all[n-1] = success
				row.succeeded(n, now, now)
			case x < good+.1:
				all[n-1] = ignored
			default:
				all[n-1] = spoken + ending(r.IntN(3))
				row.failed(n, all[n-1], verdict{}, now)
			}
			var best, one run
			for _, e := range all {
				switch e {
				case success:
					best, one = run{}, run{}
				case spoken:
					best.unanswered = 0
				}
				one.add(e)
				best = run{max(best.all, one.all), max(best.unanswered, one.unanswered)}
			}
			if got := row.longest(now); got != best {
				t.Fatalf("seed %d, step %d: runs of %v, want %v", seed, step, got, best)
			}
		}
	}
}

// TestRowForgetsThoseThatAreDue: an attempt that is under way for long interrupts no run,
// nor do more than maxRow.
func TestRowForgetsThoseThatAreDue(t *testing.T) {
	now := time.Now()
	var r row
	r.reset(0, now)
	fail := func() {
		n := r.begins(now)
		r.ends(n)
		r.failed(n, spoken, verdict{}, now)
	}
	fail()
	r.begins(now)
	fail()
	if got := r.longest(now).all; got != 1 {
		t.Errorf("a run of %d beside one that is under way, want 1", got)
	}
	now = now.Add(leastDue)
	if got := r.longest(now).all; got != 2 {
		t.Errorf("a run of %d beside one that is due, want 2", got)
	}
	for range 10 * maxRow {
		r.begins(now)
		if len(r.list) > maxRow {
			t.Fatalf("%d are kept, want %d at most", len(r.list), maxRow)
		}
	}
}
