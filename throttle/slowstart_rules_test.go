package throttle

import (
	"math"
	"testing"
	"time"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

// How a limit on requests at a time grows with a good answer.
func TestSlowStartGrows(t *testing.T) {
	lost := func(ceiling float64) *losses {
		return &losses{cut: at0(0), last: at0(0), crowd: at0(0), ceiling: ceiling}
	}
	for _, test := range []struct {
		name  string
		f     slowStart
		at    time.Duration
		limit float64
		free  bool
	}{
		{"the first answer", slowStart{}, sec, 4.2, false},
		{"a slow round trip", slowStart{limit: 10, rtt: sec / 2}, sec, 10.5, false},
		{"a very slow one", slowStart{limit: 10, rtt: 5 * sec}, sec, 11, false},
		{"up to the most", slowStart{limit: 63.9}, sec, 64, false},
		{"the limits are stated", slowStart{limit: 10, stated: true}, sec, 10.2, true},
		{"a thousand", slowStart{limit: 64, good: 999}, sec, 64, true},
		{"one less", slowStart{limit: 64, good: 998}, sec, 64, false},
		{"free already", slowStart{limit: 3, good: 5, free: true}, sec, 3, true},
		{"after a loss, not full", slowStart{limit: 10, ease: 10, losses: lost(0)}, sec, 10, false},
		{"after a loss, full", slowStart{limit: 10, ease: 10, full: true, losses: lost(0)}, sec, 10.4, false},
		{"twice as many again, too soon", slowStart{limit: 20, ease: 10, good: 999, losses: lost(0)}, 10 * sec, 20, false},
		{"and late enough", slowStart{limit: 20, ease: 10, good: 999, losses: lost(0)}, 10*sec + 1, 20, true},
		{"not proved", slowStart{limit: 20, ease: 10, good: 998, losses: lost(0)}, 11 * sec, 20, false},
		{"not twice as many", slowStart{limit: 19.9, ease: 10, good: 999, losses: lost(0)}, 11 * sec, 19.9, false},
		{"far more", slowStart{limit: 90, ease: 10, losses: lost(0)}, 11 * sec, 64, false},
		{"below a ceiling", slowStart{limit: 4, ease: 4, losses: lost(8)}, sec, 4.25, false},
		{"at it", slowStart{limit: 7.95, ease: 4, losses: lost(8)}, sec, 8, false},
	} {
		f := test.f
		if f.well(hourIn.Add(test.at), 0); !near(f.limit, test.limit) || f.free != test.free {
			t.Errorf("%s: %v, free %t", test.name, f.limit, f.free)
		}
	}
}

// A ceiling is tried after sixteen answers at it, or four for each place, and
// forgotten after ten minutes.
func TestCeilingsAreTried(t *testing.T) {
	for _, test := range []struct {
		ceiling float64
		atIt    int
		full    bool
		at      time.Duration
		want    float64
		counted int
	}{
		{2, 14, true, sec, 2, 15}, {2, 15, true, sec, 3, 0}, {2, 15, false, sec, 2, 16}, {8, 30, true, sec, 8, 31}, {8, 31, true, sec, 9, 0},
		{2, 0, true, forgetRate, 2, 1}, {2, 0, true, forgetRate + 1, 0, 1},
	} {
		f := slowStart{limit: 2, ease: 2, full: test.full, losses: &losses{crowd: at0(0), ceiling: test.ceiling, atIt: test.atIt}}
		if f.well(hourIn.Add(test.at), 0); f.ceiling != test.want || f.atIt != test.counted {
			t.Errorf("%+v: %v after %d answers", test, f.ceiling, f.atIt)
		}
	}
}

// A loss leaves seven tenths of what was under way, once per round trip, when
// that has ended.
func TestSlowStartLoses(t *testing.T) {
	for _, test := range []struct {
		name  string
		f     slowStart
		after time.Duration // of the last cut; zero: there was none
		quick bool
		want  float64
	}{
		{"the first", slowStart{limit: 30, underway: underway{now: 10}}, 0, false, 7},
		{"more under way than allowed", slowStart{limit: 20, underway: underway{now: 50}}, 0, false, 14},
		{"no limit", slowStart{free: true, underway: underway{now: 50}}, 0, false, 35},
		{"one", slowStart{limit: 20, underway: underway{now: 1}}, 0, false, 1},
		{"too soon", slowStart{limit: 20, underway: underway{now: 20}}, leastTrip - 1, false, 20},
		{"a fifth of a second later", slowStart{limit: 20, underway: underway{now: 20}}, leastTrip, false, 14},
		{"within a round trip", slowStart{limit: 20, underway: underway{now: 20}, rtt: sec / 2}, sec/2 - 1, false, 20},
		{"after one", slowStart{limit: 20, underway: underway{now: 20}, rtt: sec / 2}, sec / 2, false, 14},
		{"within a second of a long one", slowStart{limit: 20, underway: underway{now: 20}, rtt: 5 * sec}, sec - 1, false, 20},
		{"after it", slowStart{limit: 20, underway: underway{now: 20}, rtt: 5 * sec}, sec, false, 14},
		{"said at once", slowStart{limit: 20, underway: underway{now: 20}}, leastTrip / 10, true, 14},
		{"said at once, too soon", slowStart{limit: 20, underway: underway{now: 20}}, leastTrip/10 - 1, true, 20},
		{"said at once, within a round trip", slowStart{limit: 20, underway: underway{now: 20}, rtt: 5 * sec}, 5*sec - 1, true, 20},
		{"said at once, after one", slowStart{limit: 20, underway: underway{now: 20}, rtt: 5 * sec}, 5 * sec, true, 14},
	} {
		f := test.f
		f.full = true
		said := time.Duration(0)
		if test.quick {
			said = time.Minute
		}
		if test.after > 0 {
			f.losses = &losses{cut: at0(-test.after)}
		}
		f.lost(at0(0), said)
		cut := test.after == 0 || f.cut == at0(0)
		if !near(f.limit-f.drain, test.want) || f.full == cut || cut && (!near(f.ease, test.want) || f.free || f.last != at0(0)) {
			t.Errorf("%s: %+v", test.name, f)
		}
	}
}

// A refusal because of others under way tells how many the host serves.
func TestCrowdedHosts(t *testing.T) {
	for _, test := range []struct {
		name  string
		f     slowStart
		after time.Duration // the cut before, since the request was sent
		want  float64
	}{
		{"itself is one too many", slowStart{limit: 20, underway: underway{now: 5}}, 0, 4},
		{"not more than allowed", slowStart{limit: 3, underway: underway{now: 9}}, 0, 3},
		{"one is allowed", slowStart{limit: 1, underway: underway{now: 9}}, 0, 1},
		{"no limit", slowStart{free: true, underway: underway{now: 9}}, 0, 8},
		{"alone", slowStart{limit: 20, underway: underway{now: 1}}, 0, 1},
		{"cut at that moment", slowStart{limit: 20, underway: underway{now: 5}, losses: &losses{cut: at0(-sec)}}, 0, 4},
		{"cut since", slowStart{limit: 20, underway: underway{now: 5, heard: 1}, losses: &losses{cut: at0(-sec + 1)}}, 0, 0},
	} {
		f := test.f
		f.crowded(at0(0), at0(-sec))
		if test.want == 0 {
			if f.limit != 20 || f.ceiling != 0 {
				t.Errorf("%s: %+v", test.name, f)
			}
			continue
		}
		if f.limit != test.want || f.ceiling != test.want || f.crowd != at0(0) || f.cut != at0(0) || f.ease != test.want {
			t.Errorf("%s: %+v", test.name, f)
		}
		for now, tight := range map[int]bool{int(test.want) - 1: false, int(test.want): true} {
			if f.now = now; f.tight() != tight {
				t.Errorf("%s: %d of them: tight %t", test.name, now, !tight)
			}
		}
	}
	f := slowStart{underway: underway{now: 3}}
	if f.tight() {
		t.Error("nothing was refused")
	}
	if f.losses = new(losses); f.tight() {
		t.Error("no ceiling")
	}
}

// Room, the mean time of an answer, and when a slow start may be forgotten.
func TestSlowStartFigures(t *testing.T) {
	f := slowStart{limit: 2.9, underway: underway{now: 1, since: never / 2}}
	if f.opens(hourIn) != hourIn || f.full {
		t.Error("one of two")
	}
	if f.now = 2; f.roomy(hourIn) || f.full {
		t.Error("two of two, but nobody is held up")
	}
	if f.opens(hourIn) == hourIn || !f.full {
		t.Error("two of two")
	}
	if f.limit = 0.5; f.allowed() != 1 {
		t.Errorf("%d at a time", f.allowed())
	}
	if f.free = true; f.opens(hourIn) != hourIn {
		t.Error("no limit")
	}
	f = slowStart{}
	for i, rtt := range []time.Duration{0, 800, 1600, 0, -5, 100} {
		f.sample(rtt)
		want := []time.Duration{0, 800, 900, 900, 900, 800}[i]
		off := []time.Duration{0, 0, 100, 100, 100, 187}[i]
		if f.rtt != want || f.off != off {
			t.Errorf("sample %d: %d, off %d", i, f.rtt, f.off)
		}
	}
	for name, test := range map[string]struct {
		f    slowStart
		idle bool
	}{
		"fresh":             {slowStart{}, true},
		"under way":         {slowStart{underway: underway{now: 1}}, false},
		"lost a minute ago": {slowStart{losses: &losses{last: at0(-time.Minute)}}, false},
		"lost before":       {slowStart{losses: &losses{last: at0(-time.Minute - 1)}}, true},
		"under way still":   {slowStart{underway: underway{now: 1}, losses: &losses{last: at0(-time.Hour)}}, false},
	} {
		if test.f.idle(at0(0)) != test.idle {
			t.Errorf("%s: idle %t", name, !test.idle)
		}
	}
}
