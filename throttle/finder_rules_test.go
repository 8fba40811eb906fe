package throttle

import (
	"math"
	"testing"
	"time"
)

// The single decisions of a finder, as arithmetic on now. What they lead to
// together is in learn_sim_test.go.

// near reports whether two figures are the same but for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

// at10 is a finder at a steady 10/s since at0(0).
func at10() *finder {
	f := &finder{rate: 10, top: 10, low: 10, k: firstK, began: at0(0), last: at0(0)}
	f.resume(at0(0))
	return f
}

// Starts are a gap apart; one that comes late is caught up by 5 ms at most, or
// by a gap; and a bucket that saved something up is served a quarter faster.
func TestFinderSpacesStarts(t *testing.T) {
	f := at10()
	for _, step := range []struct{ at, next time.Duration }{{0, 100}, {103, 200}, {205, 300}, {306, 401}, {401, 501}} {
		if f.start(at0(step.at * time.Millisecond)); f.next != at0(step.next*time.Millisecond) {
			t.Errorf("after a start at %d ms the next is at %v", step.at, f.next.Sub(at0(0)))
		}
	}
	if f.sent != 5 || f.began != at0(0) || f.last != at0(401*time.Millisecond) {
		t.Errorf("%v sent since %v, the last at %v", f.sent, f.began, f.last)
	}
	f = at10()
	f.rate, f.top, f.low = 1000, 1000, 1000
	if f.start(at0(20 * time.Millisecond)); f.next != at0(20*time.Millisecond) {
		t.Errorf("more than one start is caught up: next at %v", f.next.Sub(at0(0)))
	}
	f = at10()
	f.saved = 0.3
	for i, next := range []time.Duration{80, 160, 260} {
		if f.start(f.next); f.next != at0(next*time.Millisecond) || !near(f.saved, 0.3-0.2*float64(min(i+1, 2))) {
			t.Errorf("start %d: next at %v, %v saved", i, f.next.Sub(at0(0)), f.saved)
		}
	}
}

// How long a start waits, and for how long the rate is remembered.
func TestFinderWaitsAndForgets(t *testing.T) {
	var none *finder
	none.forget()
	none.lift(at0(0))
	if none.wait(at0(0)) != 0 || none.binds(at0(0)) {
		t.Error("no finder binds")
	}
	f := at10()
	f.next = at0(2 * sec)
	for at, want := range map[time.Duration]time.Duration{0: 2 * sec, sec: sec, 2 * sec: 0, 3 * sec: 0} {
		if got := f.wait(at0(at)); got != want {
			t.Errorf("at %v: %v", at, got)
		}
	}
	if f.rate = 0.5; !f.binds(at0(0)) {
		t.Error("a slow rate binds")
	}
	f.rate = 0
	if f.wait(at0(0)) != 0 || f.binds(at0(0)) {
		t.Error("one without a rate binds")
	}
	if f.windows.stage = trialWindows; !f.binds(at0(0)) {
		t.Error("windows bind")
	}
	for gone, kept := range map[time.Duration]bool{forgetRate - 1: true, forgetRate: true, forgetRate + 1: false} {
		f := at10()
		f.windows.out, f.windows.passed = 3, 7
		if got := f.binds(at0(gone)); got != (gone < forgetRate) {
			t.Errorf("after %v: binds %t", gone, got)
		}
		f.start(at0(gone))
		if (f.rate > 0) != kept || (f.began == at0(0)) != kept || (f.windows.passed == 7) != kept || f.windows.out != 4 {
			t.Errorf("after %v: %v/s since %v, %d under way", gone, f.rate, f.began, f.windows.out)
		}
	}
	for at, moved := range map[time.Duration]bool{sec: true, 2 * sec: false, 3 * sec: false} {
		f := at10()
		f.next = at0(2 * sec)
		if f.lift(at0(at)); (f.from == at0(at)) != moved || (f.next == at0(at)) != (moved || at == 2*sec) {
			t.Errorf("lifted at %v: from %v, next %v", at, f.from, f.next)
		}
	}
}

// The curve: back to what was refused in k, twice that in 2k, and the limit is
// taken to be gone beyond 9k.
func TestFinderCurve(t *testing.T) {
	for at, want := range map[time.Duration]float64{
		-sec: 85, 0: 85, 1: 85, 3500 * time.Millisecond: 98.125, 7 * sec: 100, 10500 * time.Millisecond: 112.5, 14 * sec: 200, 63 * sec: 51300, 63*sec + 1: 51300, 64 * sec: 0,
	} {
		f := finder{rate: 85, top: 100, low: 85, k: 7 * sec, reacted: at0(0), anchor: at0(0)}
		f.resume(at0(0))
		f.sent = 1e9
		f.grow(at0(at))
		if math.Abs(f.rate-want) > 1e-3 && at != 63*sec+1 {
			t.Errorf("after %v: %v, want %v", at, f.rate, want)
		}
		if gone := f.rate == 0; f.reacted.IsZero() != gone || f.anchor.IsZero() != gone {
			t.Errorf("after %v: reacted %v, measured from %v", at, f.reacted, f.anchor)
		}
	}
}

// Time in which less than half of the rate was used does not count. That is
// judged after half a second and four requests.
func TestFinderGrowsOnlyIfUsed(t *testing.T) {
	for _, test := range []struct {
		rate          float64
		sent          float64
		gone          time.Duration
		judged, still bool
	}{
		{10, 0, 500*time.Millisecond - 1, false, false}, {10, 2, 500 * time.Millisecond, true, true}, {10, 3, 500 * time.Millisecond, true, false},
		{10, 9, 2 * sec, true, true}, {10, 10, 2 * sec, true, false},
		{1, 0, 4*sec - 1, false, false}, {1, 1, 4 * sec, true, true}, {1, 2, 4 * sec, true, false},
	} {
		f := at10()
		f.rate, f.top, f.low, f.sent = test.rate, test.rate, test.rate, test.sent
		f.grow(at0(test.gone))
		want := at0(0)
		if test.still {
			want = at0(test.gone)
		}
		if judged := f.used == at0(test.gone); judged != test.judged || f.from != want || judged && f.sent != 0 {
			t.Errorf("%+v: judged %t, from %v", test, judged, f.from.Sub(at0(0)))
		}
	}
}

// What is accepted counts, and is forgotten to an e-th part in two seconds.
func TestFinderCountsAccepted(t *testing.T) {
	f := finder{accepted: 2, total: 3, recent: 6, heard: at0(0)}
	if got := f.recently(at0(2 * sec)); !near(got, 6/math.E) {
		t.Errorf("%v lately", got)
	}
	f.good(at0(2*sec), at0(sec))
	if f.accepted != 3 || f.total != 4 || !near(f.recent, 6/math.E+0.5) || f.heard != at0(2*sec) || f.rate != 0 {
		t.Errorf("%+v", f)
	}
	f = *at10()
	f.ramp, f.gauge = &ramp{}, &gauge{}
	f.windows = windows{stage: trialWindows, size: 8, passed: 12, opened: at0(0)}
	f.good(at0(2*sec), at0(sec)) // the thirteenth: more than a window lets pass
	if f.rate != 6.5 || f.top != 6.5 || f.low != 6.5 || f.k != guessedK || f.ramp != nil || f.from != at0(2*sec) {
		t.Errorf("no window after all: %+v", f)
	}
}

// The first pause to try without a hint is what a request takes at the rate.
func TestFinderGuesses(t *testing.T) {
	var none *finder
	if got := none.guess(); got != firstGuess {
		t.Errorf("no finder: %v", got)
	}
	for top, want := range map[float64]time.Duration{0: firstGuess, 100: 8 * time.Millisecond, 1: 800 * time.Millisecond, 0.4: 2 * sec, 0.01: 2 * sec} {
		if got := (&finder{top: top}).guess(); got != want {
			t.Errorf("%v/s: %v", top, got)
		}
	}
}

// Where the curve begins after a refusal, and how long it takes to return.
func TestFinderCuts(t *testing.T) {
	for _, test := range []struct {
		was  float64 // top before
		k    time.Duration
		top  float64
		said hint
		want finder
	}{
		{0, 0, 100, hint{}, finder{k: 7 * sec, low: 85}},
		{100, 7 * sec, 105, hint{}, finder{k: 10500 * time.Millisecond, low: 89.25}},
		{100, 7 * sec, 110, hint{}, finder{k: 10500 * time.Millisecond, low: 93.5}},
		{100, 7 * sec, 89, hint{}, finder{k: 7 * sec, low: 75.65}},
		{100, 10 * sec, 100, hint{}, finder{k: 12 * sec, low: 85}},
		{100, 10 * sec, 100, retryIn(sec), finder{k: 15 * sec, low: 95, saved: 29.4}},
		{100, 20 * sec, 100, retryIn(sec), finder{k: 24 * sec, low: 95, saved: 29.4}},
		{0, 0, 100, retryIn(sec / 4), finder{k: 7 * sec, low: 95, saved: 14.4}},
		{0, 0, 1.5, hint{}, finder{k: 7 * sec, low: 1.275}},
		{0, 0, 1.2, hint{}, finder{k: 50 * sec, low: 1.08}},
		{0, 0, 0.5, hint{}, finder{k: 60 * sec, low: 0.45}},
		{0, 0, 1.2, retryIn(sec), finder{k: 7 * sec, low: 1.14, saved: 0.12}},
		{0, 0, 0.5, retryIn(sec), finder{k: 7 * sec, low: 0.475}},
	} {
		f := finder{top: test.was, k: test.k, gauge: &gauge{burst: 50}}
		f.cut(test.top, test.said)
		if w := test.want; (f.k-w.k).Abs() > 1 || !near(f.low, w.low) || f.rate != f.low || !near(f.saved, w.saved) || f.top != test.top {
			t.Errorf("%v/s after %v/s: in %v from %v, %v now, %v saved; want %+v", test.top, test.was, f.k, f.low, f.rate, f.saved, w)
		}
	}
	f := finder{ramp: &ramp{first: 7}, gauge: &gauge{burst: 50}}
	if f.cut(100, retryIn(sec)); f.rate != 7 || f.saved != 0 {
		t.Errorf("a ramp begins at %v with %v saved, want 7 and nothing", f.rate, f.saved)
	}
	f = finder{}
	if f.cut(100, retryIn(sec)); f.saved != 0 {
		t.Errorf("%v saved by a bucket nobody knows", f.saved)
	}
}

// A rate that was gauged is used nearly whole. Looking for more waits until as
// much may be lost without as a pause costs: twice the pause at least, 24 times
// at most, and of pauses only a second to a minute counts.
func TestFinderWeighsWhatARefusalCosts(t *testing.T) {
	for _, test := range []struct {
		name   string
		burst  float64
		within float64
		said   hint
		k      time.Duration
		low    float64
	}{
		{"half a pause is saved up", 51, 0.125, retryIn(sec), 8 * sec, 95},
		{"half of it counts at least", 500, 0.125, retryIn(sec), 8 * sec, 95},
		{"less is", 26, 0.125, retryIn(sec), 12 * sec, 95},
		{"hardly known", 26, 1, retryIn(sec), 2 * sec, 95},
		{"not known", 26, math.Inf(1), retryIn(sec), 2 * sec, 95},
		{"well known", 26, 0.005, retryIn(sec), 24 * sec, 99.5},
		{"a long pause", 26, 0.5, retryIn(5 * sec), 19 * sec, 95},
		{"not for ever", 26, 0.005, retryIn(time.Hour), 24 * time.Minute, 99.5},
		{"a short pause", 26, 0.005, retryIn(sec / 10), 24 * sec, 99.5},
		{"no hint", 26, 0.125, hint{}, firstK, 85},
	} {
		f := finder{within: test.within, gauge: &gauge{burst: test.burst}}
		if f.cut(100, test.said); (f.k-test.k).Abs() > 1 || !near(f.low, test.low) || f.rate != f.low || f.top != 100 {
			t.Errorf("%s: from %v in %v; want %v, %v", test.name, f.low, f.k, test.low, test.k)
		}
	}
}

// What was accepted between two moments at which the bucket was empty.
func TestFinderMeasures(t *testing.T) {
	from := func(change func(f *finder)) finder {
		f := finder{anchor: at0(0), began: at0(0), rate: 20, accepted: 10}
		change(&f)
		return f
	}
	fresh := func(total float64) finder { return finder{began: at0(0), total: total, accepted: total} }
	for _, test := range []struct {
		name  string
		f     finder
		at    time.Duration
		rtt   time.Duration
		want  float64
		anew  bool
		never bool // held is not looked at
	}{
		{"a burst", fresh(30), 2 * sec, sec, 15, true, true},
		{"a burst in less than a round trip", fresh(30), sec, 3 * sec, 10, true, true},
		{"a burst at once", fresh(30), 0, 0, 3000, true, true},
		{"nothing accepted", fresh(0), 2 * sec, 0, 0.25, true, true},
		{"half of the rate at least", from(func(*finder) {}), 2 * sec, 0, 10, true, false},
		{"the mean", from(func(f *finder) { f.rate = 8 }), 2 * sec, 0, 5, true, false},
		{"the rate at most", from(func(f *finder) { f.rate = 4 }), 2 * sec, 0, 4, true, false},
		{"more lately", from(func(f *finder) { f.rate, f.recent, f.heard = 8, 7, at0(2*sec) }), 2 * sec, 0, 6, true, false},
		{"less lately", from(func(f *finder) { f.rate, f.recent, f.heard = 8, 3, at0(2*sec) }), 2 * sec, 0, 5, true, false},
		{"half of it in pauses", from(func(f *finder) { f.rate, f.held = 12, sec }), 2 * sec, 0, math.Sqrt(50), true, false},
		{"nearly all in pauses", from(func(f *finder) { f.held = 2 * sec }), 2 * sec, 0, math.Sqrt(200), true, false},
		{"few: no more than flowed in", from(func(f *finder) { f.accepted, f.windows.out = 4, 2 }), 2 * sec, 0, 3.5, false, false},
		{"few, in pauses", from(func(f *finder) { f.accepted, f.held = 4, sec }), 2 * sec, 0, 5, false, false},
		{"few, all in pauses", from(func(f *finder) { f.accepted, f.held = 4, 3*sec }), 2 * sec, 0, 20, false, false},
		{"few for a minute", from(func(f *finder) { f.accepted = 4 }), time.Minute, 0, 5.0 / 60, false, false},
		{"few for more", from(func(f *finder) { f.accepted = 4 }), time.Minute + sec, 0, 5.0 / 61, true, false},
		{"just enough", from(func(f *finder) { f.accepted, f.rate = 5, 8 }), sec, 0, 5, true, false},
		{"just enough, too soon", from(func(f *finder) { f.accepted, f.rate = 5, 8 }), sec / 2, 0, 8, false, false},
		{"nine, and no more than flowed in", from(func(f *finder) { f.accepted, f.rate, f.recent, f.heard = 9, 18, 18, at0(sec) }), sec, 0, 10, true, false},
		{"ten count by themselves", from(func(f *finder) { f.rate, f.recent, f.heard = 30, 18, at0(sec) }), sec, 0, 15, true, false},
	} {
		f := test.f
		if got := f.measure(at0(test.at), test.rtt); !near(got, test.want) {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
		if anew := f.accepted == 0 && f.anchor == at0(test.at) && (test.never || f.held == 0); anew != test.anew {
			t.Errorf("%s: measures anew %t: %v accepted, %v held", test.name, anew, f.accepted, f.held)
		}
	}
}
