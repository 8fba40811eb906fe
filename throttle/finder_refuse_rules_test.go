package throttle

import (
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

// A ramp begins when what was let pass within half of the wait and within a
// second was then refused with a hint; the refusal that ends it tells the
// bucket's rate.
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
		"not the first":          {func(f *finder) { f.anchor, f.rate = at0(0), 20 }, retryIn(sec), sec / 4, false},
		"sent before it began":   {func(f *finder) { f.began = at0(sec / 4) }, retryIn(sec), sec / 4, true},
	} {
		f := &finder{began: at0(0), first: at0(sec / 10), total: 8}
		test.change(f)
		f.passed(at0(test.at), at0(sec/5), test.said, 0)
		if (f.ramp != nil) != test.ramp || (f.gauge != nil) != test.ramp {
			t.Errorf("%s: %+v, %+v", name, f.ramp, f.gauge)
		}
		if f.ramp != nil && (f.gauge.burst != 8 || f.gauge.span != sec/10 || f.gauge.flight != test.at-sec/5 || f.gauge.empty != at0(test.at)) {
			t.Errorf("%s: %+v", name, f.gauge)
		}
	}
	f := &finder{began: at0(0), top: 100, rate: 50, anchor: at0(0), accepted: 10, ramp: &ramp{first: 40, growth: 3},
		gauge: &gauge{burst: 20, span: sec / 2, empty: at0(0), starts: 11, last: at0(2 * sec), points: []point{{at0(sec), 1}}, every: 16}}
	if got := f.passed(at0(3*sec), at0(2*sec), retryIn(sec), 0); got != 5.25 || f.ramp != nil || !near(f.within, 0.5/10+(5.25*0.5/8)/10) || !f.gauge.rough || f.gauge.starts != 0 || f.gauge.empty != at0(3*sec) {
		t.Errorf("%v/s within %v, %+v", got, f.within, f.gauge)
	}
	f.top, f.ramp, f.gauge.starts, f.gauge.empty = 0.1, &ramp{}, 1, at0(0)
	if got := f.passed(at0(3*sec), at0(2*sec), retryIn(sec), 0); got != 0.1 {
		t.Errorf("%v/s, more than was ever used", got)
	}
}

// A ramp begins at twice what fills the bucket in the pause, and grows threefold
// per second, by one per round trip if that is longer, and by half per start at
// most.
func TestRampGrows(t *testing.T) {
	for _, test := range []struct {
		burst         float64
		wait, rtt     time.Duration
		first, growth float64
	}{{20, sec, 0, 40, 3}, {20, 4 * sec, 0, 10, 3}, {20, sec / 2, 0, 40, 3}, {20, sec, sec / 4, 40, 3}, {20, sec, sec / 2, 40, 2}, {2, sec, 0, 4, 2}, {0, sec, 0, 2, 1}, {1, 4 * sec, 0, 0.5, 0.25}, {10, time.Hour, 0, 4, 2}} {
		r := newRamp(test.burst, retryIn(test.wait), test.rtt)
		if r.first != test.first || r.growth != test.growth {
			t.Errorf("%+v: %+v", test, r)
		}
	}
	r := &ramp{first: 10, growth: 3}
	if r.rate(5, 100) != 25 || r.rate(5, 20) != 20 {
		t.Errorf("%v, %v", r.rate(5, 100), r.rate(5, 20))
	}
	if r.over(70, 22) { // 10 + 3*(70-66)
		t.Error("over at top")
	}
	for starts, over := range map[int]bool{63: false, 64: true} { // 10 + 3*(64-60) > 20
		if r.over(starts, 20) != over {
			t.Errorf("over after %d starts: %t", starts, !over)
		}
	}
	f := &finder{top: 20, low: 5, k: firstK, ramp: r, gauge: &gauge{starts: 63}}
	if f.grow(at0(0)); f.rate != 20 || f.ramp == nil || f.low != 5 {
		t.Errorf("%+v", f)
	}
	f.gauge.starts = 64
	if f.grow(at0(0)); f.rate != 20 || f.ramp != nil || f.low != 20 || f.from != at0(-firstK) {
		t.Errorf("nothing was found up to top: %+v", f)
	}
	f = at10()
	f.ramp, f.gauge = &ramp{first: 4, growth: 3}, &gauge{every: 1}
	if f.start(at0(0)); f.gauge.starts != 1 || f.next != at0(250*time.Millisecond) {
		t.Errorf("%d starts, the next at %v", f.gauge.starts, f.next.Sub(at0(0)))
	}
	if f.resume(at0(sec)); f.gauge.starts != 0 || len(f.gauge.points) != 0 {
		t.Error("the starts before a pause count")
	}
}

// What was thought of the rate stands as long as it explains a refusal. What is
// far from it makes it unsure, unless a short ramp had told it.
func TestFinderGauges(t *testing.T) {
	for _, test := range []struct {
		name      string
		top, rate float64
		rough     bool
		want      float64
		within    float64
	}{ // ten passed in a second, of a bucket of one: 9 to 10 flowed in
		{"explained", 9.8, 20, false, 9.8, .02},
		{"least", 9, 20, false, 9, .02},
		{"most", 10, 20, false, 10, .02},
		{"near", 8.9, 20, false, 9.5, .5 / 9.5},
		{"far", 8.6, 20, false, 9.5, .5},
		{"far, after a ramp", 8.6, 20, true, 9.5, .5 / 9.5},
		{"no more than was used", 9.8, 9, false, 9, .02},
		{"not less than half", 30, 25, false, 12.5, .5},
		{"not less than half of top", 20, 30, false, 10, .5},
	} {
		g := &gauge{burst: 1, empty: at0(-sec), every: 1, rough: test.rough}
		for i := range 11 {
			g.start(at0(time.Duration(i) * sec / 10))
		}
		f := &finder{top: test.top, rate: test.rate, within: .02, gauge: g}
		if got := f.gauged(at0(sec), 0, false); !near(got, test.want) || !near(f.within, test.within) || g.rough {
			t.Errorf("%s: %v/s within %v; want %v, %v", test.name, got, f.within, test.want, test.within)
		}
	}
}
