package learntest

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/learn"
)

var (
	number = flag.Uint64("learn.n", 0, "cases of the table; zero: no table")
	seed   = flag.Uint64("learn.seed", 1, "the first of them")
	test   = flag.Bool("learn.test", false, "draw them from the test set")
	worst  = flag.Int("learn.worst", 0, "so many of the worst cases are named")
	trace  = flag.Bool("learn.trace", false, "the case -learn.seed step by step")
	top    = flag.Int("learn.top", 3, "so many candidates are traced")
	rivals = flag.Bool("learn.rivals", false, "beside the rivals")
)

// TestTable prints how clients fare in a population.
func TestTable(t *testing.T) {
	if *number == 0 {
		t.Skip("no -learn.n")
	}
	set := Train()
	if *test {
		set = Test()
	}
	clients := []Client{Learner()}
	if *rivals {
		clients = append(clients, Plain(), AIMD())
	}
	for _, k := range clients {
		scores := k.Run(set, *seed, *number)
		Table(os.Stdout, k.Name, scores, Kind, Dialect, Demand)
		slices.SortFunc(scores, func(a, b Score) int { return cmp.Compare(b.Badness(), a.Badness()) })
		for _, s := range scores[:min(*worst, len(scores))] {
			fmt.Printf("%6.2f: lost %d, refusals %.2f, time %.1f: %s\n", s.Badness(), s.Lost, s.Refusals, s.Time, s.Case)
		}
	}
}

// TestTrace prints one case step by step.
func TestTrace(t *testing.T) {
	if !*trace {
		t.Skip("no -learn.trace")
	}
	set := Train()
	if *test {
		set = Test()
	}
	c := set.Draw(*seed)
	fmt.Println(c)
	last := ""
	r := c.Trace(func(at time.Duration, what string, l *learn.Learner) {
		fmt.Printf("%10.4f %s\n", at.Seconds(), what)
		if cs := l.Candidates(); len(cs) > 0 {
			s := ""
			for _, c := range cs[:min(*top, len(cs))] {
				s += fmt.Sprintf("   %.2f %s (-%.1f)", c.Weight, c.Limit, c.Against)
			}
			if s != last {
				fmt.Println(s)
				last = s
			}
		}
	})
	fmt.Printf("%+v\nideal %+v\n", Scored(r, c.Ideal()), c.Ideal())
}

// TestOracleIsNeverRefused: what the oracle sends, sent by somebody who knows
// nothing, is accepted.
func TestOracleIsNeverRefused(t *testing.T) {
	for _, set := range []Set{Train(), Test()} {
		served := 0
		for seed := range uint64(400) {
			c := set.Draw(seed)
			r, sends := c.ideal()
			if r.Refusals > 0 || r.Lost > 0 || r.Unsettled > 0 {
				t.Errorf("case %d (%s): %+v", seed, c.Kind, r)
			}
			served += r.Served
			if c.Kind == "at once" {
				continue // what is under way is not in the schedule
			}
			run := newRun(c)
			for i, s := range sends {
				if ok, _ := run.server.arrive(s.at); !ok {
					t.Errorf("case %d (%s): call %d is refused", seed, c.Kind, i)
					break
				}
			}
		}
		if served < 10000 {
			t.Errorf("served %d", served)
		}
	}
}

// TestPopulation plays a fixed share of the train set: nothing is lost, few are
// refused, and neither a plain loop nor AIMD fares better.
func TestPopulation(t *testing.T) {
	const n = 60
	got := Learner().Run(Train(), 1, n)
	var lost, calls int
	var refusals, times []float64
	for _, s := range got {
		lost, calls = lost+s.Lost, calls+s.Calls
		refusals, times = append(refusals, s.Refusals), append(times, s.Time)
	}
	if float64(lost) > .005*float64(calls) || quantile(refusals, .5) > .06 || quantile(times, .5) > 1.3 {
		Table(os.Stderr, "learn", got, Kind, Dialect, Demand)
		t.Errorf("lost %d of %d, refusals %.3f, time %.2f", lost, calls, quantile(refusals, .5), quantile(times, .5))
	}
	for _, k := range []Client{Plain(), AIMD()} {
		if rival := k.Run(Train(), 1, n); badness(rival) < badness(got) {
			t.Errorf("%s: badness %.2f, learn %.2f", k.Name, badness(rival), badness(got))
		}
	}
}

func badness(scores []Score) (sum float64) {
	for _, s := range scores {
		sum += s.Badness() / float64(len(scores))
	}
	return sum
}

// TestWhatAFamilyExplainsIsFound: at a server whose limiter is in the bank,
// refusals come to an end but for what is sent to find out more.
func TestWhatAFamilyExplainsIsFound(t *testing.T) {
	for name, l := range map[string]limiter{
		"bucket":       &bucket{rate: 20, size: 10, at: began},
		"sliding log":  &slide{limit: 20, per: 2e9},
		"first window": &window{limit: 20, per: 2e9, first: true},
	} {
		c := &Case{Kind: name, MaxWait: 10 * time.Minute, server: &server{limits: []limiter{l}}, dialect: &dialect{}, trip: 2e7, jitter: 1e6, unix: 1.7e18, calls: 1500, workers: 20}
		served, late := 0, 0
		r := c.Trace(func(_ time.Duration, what string, _ *learn.Learner) {
			switch {
			case what == "ok":
				served++
			case what == "REFUSED" && served > c.calls/2:
				late++
			}
		})
		if s := Scored(r, c.Ideal()); s.Lost > 0 || s.Time > 1.3 || late > c.calls/20 {
			t.Errorf("%s: %+v, %d refusals in the second half", name, s, late)
		}
	}
}
