package learntest

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// A Score is how a client fared in one case, beside an all-knowing one.
type Score struct {
	Case     *Case
	Calls    int
	Lost     int
	Refusals float64 // per call served
	Time     float64 // over the ideal
	Stall    float64 // in seconds, beyond the ideal's
}

// Scored compares a result with the ideal. For calls that come when they come
// the time is the sum of what each of them took; for a batch it is that of the
// whole.
func Scored(got, ideal Result) Score {
	s := Score{Case: got.Case, Calls: got.Case.calls, Lost: got.Lost + got.Unsettled}
	s.Refusals = float64(got.Refusals) / float64(max(1, got.Served))
	s.Time = float64(got.Makespan) / float64(max(1, ideal.Makespan))
	if got.Case.arrivals != nil {
		s.Time = got.Sojourn / max(1e-9, ideal.Sojourn)
	}
	s.Stall = max(0, float64(got.Stall-ideal.Stall)/1e9)
	return s
}

// Badness is one figure for a score: ten times the share lost, and the time
// and the refusals as logarithms.
func (s *Score) Badness() float64 {
	return 10*float64(s.Lost)/float64(s.Calls) + math.Log2(max(.5, s.Time)) + math.Log2(1+s.Refusals)
}

// Run plays cases from to from+n of a set. Cases that an all-knowing client
// loses are no cases.
func (k Client) Run(set Set, from, n uint64) []Score {
	var out []Score
	for i := range n {
		c := set.Draw(from + i)
		ideal := c.Ideal()
		if ideal.Unsettled > 0 || c.calls < 20 {
			continue
		}
		out = append(out, Scored(k.Play(c), ideal))
	}
	return out
}

func quantile(xs []float64, q float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	slices.Sort(xs)
	return xs[min(len(xs)-1, int(q*float64(len(xs))))]
}

// Table writes one row for the scores, and one for each value of each of by.
func Table(w io.Writer, title string, scores []Score, by ...func(*Case) string) {
	fmt.Fprintf(w, "%-26s %5s %6s %7s | %-20s | %-20s | %-6s | %s\n", title, "cases", "losing", "lost %", "refusals 50 90 99", "time 50 90 99", "stall90", "badness")
	row(w, "all", scores)
	for _, f := range by {
		groups := map[string][]Score{}
		for _, s := range scores {
			groups[f(s.Case)] = append(groups[f(s.Case)], s)
		}
		var names []string
		for n := range groups {
			names = append(names, n)
		}
		slices.Sort(names)
		for _, n := range names {
			row(w, n, groups[n])
		}
	}
}

func row(w io.Writer, name string, scores []Score) {
	var lost, calls, losing int
	var refusals, times, stalls []float64
	bad := 0.0
	for _, s := range scores {
		lost, calls = lost+s.Lost, calls+s.Calls
		if s.Lost > 0 {
			losing++
		}
		refusals, times, stalls = append(refusals, s.Refusals), append(times, s.Time), append(stalls, s.Stall)
		bad += s.Badness()
	}
	three := func(xs []float64) string {
		return fmt.Sprintf("%6.3g %6.3g %6.3g", quantile(xs, .5), quantile(xs, .9), quantile(xs, .99))
	}
	fmt.Fprintf(w, "%-26s %5d %6d %7.3f | %s | %s | %6.3g | %.3f\n", strings.ToLower(name), len(scores), losing,
		100*float64(lost)/float64(max(1, calls)), three(refusals), three(times), quantile(stalls, .9), bad/float64(max(1, len(scores))))
}

// Kind, Dialect and Demand group scores.
func Kind(c *Case) string    { return c.Kind }
func Dialect(c *Case) string { return "- " + c.Dialect }
func Demand(c *Case) string  { return "= " + c.Demand }
