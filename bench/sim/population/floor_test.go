package population

import "testing"

// TestFloor plays a fixed share of train with weir and holds what it reaches
// today, with some room: goroutines run in no fixed order. It is no target. It
// is there so that a change of how weir learns does not make it worse unseen on
// servers that nobody looked at; who makes it better moves these figures.
func TestFloor(t *testing.T) {
	var runs []Run
	for i := range 60 {
		c := Draw(Train, 1, i)
		r, _ := playAlone(t, c, Weir())
		if r.Panics != "" {
			t.Errorf("%s: %v: panic: %s", c.Replay(), c, r.Panics)
		}
		runs = append(runs, Run{c, r})
	}
	heard := by(runs, func(r Run) bool { return r.Case.Dialect.name != "bare 503" })
	var times, refusals, stalls []float64
	for _, r := range heard {
		if r.Lost > 0 {
			t.Errorf("%s: %v: lost %d of %d: %v", r.Case.Replay(), r.Case, r.Lost, r.Calls, r.Why)
		}
		times, refusals, stalls = append(times, r.Time), append(refusals, r.refusals()), append(stalls, r.Stall)
	}
	var bad float64
	for _, r := range runs {
		bad += r.Badness() / float64(len(runs))
	}
	for _, x := range []struct {
		figure    string
		got, most float64
	}{
		{"time p50", quantile(times, .5), 1.35},
		{"time p90", quantile(times, .9), 6},
		{"refusals p50", quantile(refusals, .5), .02},
		{"refusals p90", quantile(refusals, .9), .25}, // .216 was seen in one of some fifty runs
		{"stall p90", quantile(stalls, .9), 3},
		{"mean badness, bare 503 too", bad, 1.5},
	} {
		if x.got > x.most {
			t.Errorf("%s: got %.3f, the floor is %.3f", x.figure, x.got, x.most)
		}
	}
}
