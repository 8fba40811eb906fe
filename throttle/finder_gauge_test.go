package throttle

import (
	"math"
	"testing"
	"time"
)

// The points of a gauge are thinned out: at most 32 of equal distance, the first
// among them.
func TestGaugeKeepsFewPoints(t *testing.T) {
	g := &gauge{every: 1}
	for i := 1; i <= 1000; i++ {
		g.start(at0(time.Duration(i)))
		if len(g.points) >= mostPoints || len(g.points) != (i-1)/g.every+1 || g.starts != i || g.last != at0(time.Duration(i)) {
			t.Fatalf("%d points of %d starts, %d apart", len(g.points), i, g.every)
		}
		for j, p := range g.points {
			if p.n != j*g.every+1 || p.at != at0(time.Duration(p.n)) {
				t.Fatalf("point %d of %d: %+v", j, i, p)
			}
		}
		for _, n := range []int{1, 2, i / 2, i - 1, i} {
			if got := g.before(at0(time.Duration(n))); n > 0 && n <= i && !near(got, float64(max(0, n-1))) {
				t.Fatalf("%v of %d starts before number %d", got, i, n)
			}
		}
	}
	if g.every != 64 {
		t.Errorf("%d apart", g.every)
	}
	if got := g.before(at0(2000)); got != 999 {
		t.Errorf("%v starts before one that does not count", got)
	}
	if g.emptied(at0(sec)); g.every != 1 || g.starts != 0 || len(g.points) != 0 || g.empty != at0(sec) || g.before(at0(2*sec)) != 0 {
		t.Errorf("%+v", g)
	}
	var none *gauge
	none.start(at0(0))
	none.good(at0(0))
	if none.reset(); none.size(1) != 0 {
		t.Error("none knows nothing")
	}
}

// To the burst belongs what was sent before the first refusal, and what overtook
// it as far as it did not flow in; to the bucket's size, what did not flow in
// meanwhile.
func TestGaugeOfABurst(t *testing.T) {
	g := newGauge(at0(sec), at0(sec/4), at0(sec/2), sec/4, 20)
	for _, at := range []time.Duration{sec / 4, sec/2 - 1, sec / 2, sec - 1, sec} {
		g.good(at0(at))
	}
	if g.burst != 22 || g.span != sec/2 || g.late != 2 || g.flight != sec/2 || g.empty != at0(sec) {
		t.Errorf("%+v", g)
	}
	g.rtt = 0
	for rate, want := range map[float64]float64{0: 24, 2: 22, 4: 20, 10: 17, 40: 2, 44: 1, 100: 1} {
		if got := g.size(rate); got != want {
			t.Errorf("%v/s: a size of %v, want %v", rate, got, want)
		}
	}
	if g = newGauge(at0(sec), time.Time{}, at0(sec/2), sec, 0); g.span != 0 || g.size(0) != 1 {
		t.Errorf("%+v", g)
	}
	if g = newGauge(at0(3*sec), at0(3*sec), at0(sec), sec, 1); g.span != 0 {
		t.Errorf("%+v: the first was longer under way than usual", g)
	}
}

// What a slow start from four at a time leaves unused: nothing if it is quicker
// than the bucket from the first.
func TestGaugeKnowsSlowStarts(t *testing.T) {
	for _, test := range []struct {
		rate float64
		rtt  time.Duration
		want float64
	}{{400, 10 * time.Millisecond, 0}, {1000, 0, 0}, {1000, 10 * time.Millisecond, 50*math.Log(2.5) - 30}} {
		if got := unused(test.rate, test.rtt); !near(got, test.want) {
			t.Errorf("%v/s, %v: %v, want %v", test.rate, test.rtt, got, test.want)
		}
	}
	g := &gauge{burst: 100, span: sec / 20, rtt: 10 * time.Millisecond}
	if got := g.size(1000); !near(got, 20+50*math.Log(2.5)) {
		t.Errorf("a size of %v", got)
	}
	// As a slow start, a unit at a time, does it.
	const rate, size, rtt = 1000, 200, 0.01
	level, n, at := float64(size), 0.0, 0.0
	for ; level >= 1; n++ {
		gap := rtt / (firstFlight + n/goodPerStep)
		level, at = min(size, level-1+rate*gap), at+gap
	}
	g = &gauge{burst: n, span: time.Duration(at * float64(sec)), rtt: 10 * time.Millisecond}
	if got := g.size(rate); math.Abs(got-size) > size/20 {
		t.Errorf("a size of %v, want about %v", got, size)
	}
}

// What a gauge finds: the starts before the refused one, and what the bucket
// held.
func TestGaugeFinds(t *testing.T) {
	even := func(n int, apart time.Duration) *gauge { // starts evenly apart
		g := &gauge{every: 1}
		for i := range n {
			g.start(at0(time.Duration(i) * apart))
		}
		return g
	}
	for _, test := range []struct {
		name        string
		g           *gauge
		burst       float64
		span, empty time.Duration
		sent, rtt   time.Duration
		part        float64
		rate, units float64
	}{
		{"none passed", even(1, 0), 10, 0, -2 * sec, 0, 0, .5, .25, .001},
		{"at once", even(1, 0), 10, 0, 0, 0, 0, .5, 500, .001},
		{"it had not filled", even(10, sec/10), 20, 0, -sec, 9 * sec / 10, 0, .5, 9.5 / 1.9, 9},
		{"it may have", even(10, sec/10), 9, 0, -sec, 9 * sec / 10, 0, .5, 9.5 / 1.9, 0.5},
		{"it had", even(21, sec/10), 5, 0, -10 * sec, 2 * sec, 0, .5, 15.5 / 2, 15.5},
		{"holding nothing", even(21, sec/10), 5, 0, -10 * sec, 2 * sec, 0, 0, 15 / 2., 15},
		{"holding nearly one", even(21, sec/10), 5, 0, -10 * sec, 2 * sec, 0, 1, 16 / 2., 16},
		{"what started later does not count", even(41, sec/10), 5, 0, -10 * sec, 2 * sec, 0, .5, 15.5 / 2, 15.5},
		{"something flowed in before", even(21, sec/10), 5, sec / 4, -10 * sec, 2 * sec, 0, .5, 15.5 / 1.75, 15.5},
		{"it holds one at least", even(21, sec/10), 5, sec, -10 * sec, 2 * sec, 0, .5, 19.5 / 2, 15.5},
		{"too near", even(21, sec/10), 5, 4*sec/3 + sec, -10 * sec, 2 * sec, 0, .5, 20.5 / 12, 15.5},
		{"just far enough", even(21, sec/10), 5, 4 * sec / 3, -10 * sec, 2 * sec, 0, .5, 19.5 / 2, 15.5},
		{"two round trips", even(21, sec/10), 5, 0, -10 * sec, 2 * sec, sec, .5, 15.5 / 2, 15.5},
		{"longer round trips", even(21, sec/10), 5, 0, -10 * sec, 2 * sec, sec + 1, .5, 20.5 / 12, 15.5},
	} {
		test.g.burst, test.g.span, test.g.empty = test.burst, test.span, at0(test.empty)
		rate, within := test.g.found(at0(test.sent), test.rtt, test.part)
		if math.Abs(rate-test.rate) > 1e-6 || math.Abs(within*test.units/(.5+test.rate*(test.g.span+test.rtt).Seconds()/8)-1) > 1e-6 {
			t.Errorf("%s: %v within %v, want %v by %v units", test.name, rate, within, test.rate, test.units)
		}
	}
}

// A ramp over a bucket of any rate tells it to within the unit that nobody sees.
func TestGaugeTellsTheRate(t *testing.T) {
	for _, want := range []float64{5, 20, 50, 300, 2000} {
		const burst = 20
		now := at0(0)
		r, g := newRamp(burst, retryIn(sec), time.Millisecond), newGauge(now, now, now, 0, burst)
		g.reset()
		now = now.Add(time.Second)
		level := min(burst, want)
		for g.start(now); level >= 1; g.start(now) {
			gap := 1 / r.rate(g.starts, 1e6)
			now = now.Add(time.Duration(gap * float64(time.Second)))
			level = min(burst, level-1+want*gap)
		}
		least, _ := g.found(now, 0, 0)
		most, _ := g.found(now, 0, 1)
		if got, _ := g.found(now, 0, meanPart); got < 0.9*want || got > 1.1*want || least > 1.001*want || most < 0.999*want {
			t.Errorf("found %.1f/s, %.1f to %.1f, want %v/s within a tenth", got, least, most, want)
		}
	}
}
