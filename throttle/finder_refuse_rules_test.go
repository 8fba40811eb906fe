package throttle

import (
	"math"
	"testing"
	"time"
)

// A finder reacts once per burst; when it has been asked in vain for the third
// time, the pause was too short rather than the rate too high, so it returns to
// the rate before the pause.
func TestFinderBlamesThePause(t *testing.T) {
	f := at10()
	f.anchor, f.accepted = at0(0), 20
	if !f.refuse(at0(2*sec), at0(sec), hint{}, 0, 0) || f.reacted != at0(2*sec) || f.top != 10 || f.before != 10 || f.rate != 8.5 {
		t.Fatalf("%+v", f)
	}
	if f.refuse(at0(3*sec), at0(2*sec), hint{}, 0, 1) {
		t.Error("what was sent before is news")
	}
	for strikes := 1; strikes <= 5; strikes++ {
		rate, now := f.rate, at0(2*sec+time.Duration(strikes)*sec)
		if !f.refuse(now, now.Add(-1), hint{}, 0, strikes) || f.reacted != now || f.before != 10 {
			t.Fatalf("strike %d: %+v", strikes, f)
		}
		switch {
		case strikes < 3 && f.rate >= rate:
			t.Errorf("strike %d: %v/s after %v", strikes, f.rate, rate)
		case strikes == 3 && (f.top != 10 || f.rate != 8.5 || f.low != 8.5):
			t.Errorf("strike %d: %v/s of %v", strikes, f.rate, f.top)
		case strikes == 4:
			f.rate, f.top = 3, 4
		case strikes == 5 && (f.rate != 3 || f.top != 4):
			t.Errorf("strike %d: %v/s of %v", strikes, f.rate, f.top)
		}
	}
	f = at10()
	f.anchor = at0(0)
	f.refuse(at0(sec), at0(sec/2), retryIn(3*sec), 0, 0)
	f.refuse(at0(5*sec), at0(4500*time.Millisecond), retryIn(4*sec), 0, 1)
	if f.held != 7*sec {
		t.Errorf("%v in pauses", f.held)
	}
	f = &finder{windows: windows{stage: sureWindows, size: 10, passed: 10, period: 10 * sec, opened: at0(0), last: at0(0)}}
	if !f.refuse(at0(sec), at0(sec/2), retryIn(9*sec), 0, 0) || f.top != 0 || f.reacted != at0(sec) || f.began != at0(sec) {
		t.Errorf("windows have no rate: %+v", f)
	}
}

// A ramp begins when a burst was let pass within half of the wait and within a
// second and then refused with a hint; the refusal that ends it tells the
// bucket's rate and its size.
func TestFinderBeginsARamp(t *testing.T) {
	for name, test := range map[string]struct {
		change func(f *finder)
		said   hint
		at     time.Duration
		ramp   bool
	}{
		"a burst":                {func(*finder) {}, retryIn(sec), sec / 4, true},
		"nearly half the wait":   {func(*finder) {}, retryIn(sec), sec/2 - 1, true},
		"half the wait":          {func(*finder) {}, retryIn(sec), sec / 2, false},
		"half a second at least": {func(*finder) {}, retryIn(sec / 2), sec/2 - 1, true},
		"nearly a second":        {func(*finder) {}, retryIn(4 * sec), sec - 1, true},
		"a second":               {func(*finder) {}, retryIn(4 * sec), sec, false},
		"no hint":                {func(*finder) {}, hint{}, sec / 4, false},
		"too few":                {func(f *finder) { f.total = 7 }, retryIn(sec), sec / 4, false},
		"not the first":          {func(f *finder) { f.anchor, f.rate = at0(0), 20 }, retryIn(sec), sec / 4, false},
		"sent before it began":   {func(f *finder) { f.began = at0(sec / 4) }, retryIn(sec), sec / 4, true},
	} {
		f := &finder{began: at0(0), total: 8}
		test.change(f)
		f.passed(at0(test.at), at0(sec/5), test.said, 0)
		if (f.ramp != nil) != test.ramp {
			t.Errorf("%s: %+v", name, f.ramp)
		}
		if want := max(0, at0(sec/5).Sub(f.began)); f.ramp != nil && (f.ramp.burst != 8 || f.ramp.span != want || f.ramp.empty != at0(test.at)) {
			t.Errorf("%s: %+v", name, f.ramp)
		}
	}
	f := &finder{began: at0(0), top: 100, rate: 50, anchor: at0(0), accepted: 10,
		ramp: &ramp{burst: 20, span: sec / 2, empty: at0(0), starts: 10}}
	if got := f.passed(at0(3*sec), at0(2*sec), retryIn(sec), 0); got != 5.25 || f.ramp != nil || f.size != 20-5.25/2 {
		t.Errorf("%v/s, a size of %v", got, f.size)
	}
	f.top, f.ramp = 3, &ramp{burst: 1, span: sec, empty: at0(0), starts: 10}
	if got := f.passed(at0(3*sec), at0(2*sec), retryIn(sec), 0); got != 3 || f.size != 0 {
		t.Errorf("%v/s, a size of %v", got, f.size)
	}
}

// A ramp begins at twice what fills the bucket in the pause, and grows threefold
// per second, or by one per round trip if that is longer.
func TestRampGrows(t *testing.T) {
	for _, test := range []struct {
		wait, rtt     time.Duration
		first, growth float64
	}{{sec, 0, 40, 3}, {4 * sec, 0, 10, 3}, {sec / 2, 0, 40, 3}, {sec, sec / 4, 40, 3}, {sec, sec / 2, 40, 2}} {
		r := newRamp(at0(0), 20, sec, retryIn(test.wait), test.rtt)
		if r.first != test.first || r.growth != test.growth || r.every != 1 || r.empty != at0(0) || r.burst != 20 || r.span != sec {
			t.Errorf("%+v: %+v", test, r)
		}
	}
	r := &ramp{first: 10, growth: 3, starts: 5}
	if r.rate(100) != 25 || r.rate(20) != 20 {
		t.Errorf("%v, %v", r.rate(100), r.rate(20))
	}
	for starts, over := range map[int]bool{63: false, 64: true} { // 10 + 3*(64-60) > 20
		if r.starts = starts; r.over(20) != over {
			t.Errorf("over after %d starts: %t", starts, !over)
		}
	}
	f := &finder{top: 20, low: 5, k: firstK, ramp: r}
	r.starts = 63
	if f.grow(at0(0)); f.rate != 20 || f.ramp == nil || f.low != 5 {
		t.Errorf("%+v", f)
	}
	r.starts = 64
	if f.grow(at0(0)); f.rate != 20 || f.ramp != nil || f.low != 20 || f.from != at0(-firstK) {
		t.Errorf("nothing was found up to top: %+v", f)
	}
	f = at10()
	f.ramp = &ramp{first: 4, growth: 3, every: 1}
	if f.start(at0(0)); f.ramp.starts != 1 || f.next != at0(250*time.Millisecond) {
		t.Errorf("%d starts, the next at %v", f.ramp.starts, f.next.Sub(at0(0)))
	}
	var none *ramp
	none.reset()
	if f.resume(at0(sec)); f.ramp.starts != 0 || f.ramp.points != nil {
		t.Error("the starts before a pause count")
	}
}

// The points of a ramp are thinned out: at most 64 of equal distance.
func TestRampKeepsFewPoints(t *testing.T) {
	r := &ramp{every: 1}
	for i := 1; i <= 1000; i++ {
		r.start(at0(time.Duration(i)))
		if len(r.points) >= mostPoints || len(r.points) != i/r.every {
			t.Fatalf("%d points of %d starts, %d apart", len(r.points), i, r.every)
		}
		for j, p := range r.points {
			if p.n != (j+1)*r.every || p.at != at0(time.Duration(p.n)) {
				t.Fatalf("point %d of %d: %+v", j, i, p)
			}
		}
	}
	if r.every != 16 {
		t.Errorf("%d apart", r.every)
	}
	if r.reset(); r.every != 1 || r.starts != 0 || r.points != nil {
		t.Errorf("%+v", r)
	}
}

// What a ramp has found: the starts before the refused one, and what the bucket
// held.
func TestRampFinds(t *testing.T) {
	even := func(n int, apart time.Duration) []point { // starts evenly apart
		var p []point
		for i := 1; i <= n; i++ {
			p = append(p, point{at0(time.Duration(i) * apart), i})
		}
		return p
	}
	for _, test := range []struct {
		name string
		r    ramp
		sent time.Duration
		want float64
	}{
		{"it had not filled", ramp{burst: 40, empty: at0(0), starts: 20}, 2 * sec, 10.25},
		{"just so", ramp{burst: 40, empty: at0(0), starts: 29}, 2 * sec, 14.75},
		{"it had", ramp{burst: 40, empty: at0(0), starts: 30}, 2 * sec, 15},
		{"at once", ramp{burst: 40, empty: at0(0), starts: 30}, 0, 30000},
		{"at once, not filled", ramp{burst: 40, empty: at0(0), starts: 3}, 0, 3500},
		{"what started later does not count", ramp{burst: 10, span: time.Hour, empty: at0(0), starts: 40, points: even(40, sec/10)}, 3 * sec, 29.0 / 3},
		{"from the first start", ramp{burst: 10, span: sec / 2, empty: at0(-10 * sec), starts: 40, points: even(40, sec/10)[:1]}, 4 * sec, 29.5 / 3.4},
		{"too little beyond the burst", ramp{burst: 10, empty: at0(-10 * sec), starts: 14, points: even(1, sec)}, 4 * sec, 1},
		{"enough", ramp{burst: 10, empty: at0(-10 * sec), starts: 15, points: even(1, sec)}, 4 * sec, 4.5 / 3},
		{"an eighth of a large burst", ramp{burst: 80, empty: at0(-96 * sec), starts: 90, points: even(1, sec)}, 4 * sec, 0.9},
		{"more than that", ramp{burst: 80, empty: at0(-96 * sec), starts: 91, points: even(1, sec)}, 4 * sec, 3.5},
		{"too soon", ramp{burst: 10, span: 2*sec + 1, empty: at0(-10 * sec), starts: 28, points: even(1, sec)}, 4 * sec, 2},
		{"late enough", ramp{burst: 10, span: 2 * sec, empty: at0(-10 * sec), starts: 28, points: even(1, sec)}, 4 * sec, 17.5},
	} {
		if got := test.r.found(at0(test.sent)); math.Abs(got-test.want) > 1e-6 {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}
