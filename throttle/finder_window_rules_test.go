package throttle

import (
	"testing"
	"time"
)

// surely are windows of 10 in 10 s, the present one open since at0(0).
func surely(change func(w *windows)) *windows {
	w := &windows{stage: sureWindows, size: 10, period: 10 * sec, opened: at0(0), ends: at0(10 * sec), last: at0(0)}
	if change != nil {
		change(w)
	}
	return w
}

// How long a start has to wait because of windows.
func TestWindowsWait(t *testing.T) {
	trial := func(w *windows) { w.stage = trialWindows }
	for _, test := range []struct {
		name   string
		change func(w *windows)
		want   time.Duration
	}{
		{"nothing started", nil, 0},
		{"the first is under way", func(w *windows) { w.out = 1 }, forever},
		{"and was accepted", func(w *windows) { w.out, w.passed = 1, 1 }, 0},
		{"or refused", func(w *windows) { w.out, w.refused = 1, true }, 0},
		{"the gap", func(w *windows) { w.next = at0(3 * sec) }, 3 * sec},
		{"one is left", func(w *windows) { w.spent = 9 }, 0},
		{"spent", func(w *windows) { w.spent, w.passed = 10, 10 }, 10 * sec},
		{"one more to try", func(w *windows) { w.spent, w.passed, w.extra = 10, 10, 1 }, 0},
		{"not all accepted", func(w *windows) { w.spent, w.passed, w.extra = 10, 9, 1 }, 10 * sec},
		{"that is spent", func(w *windows) { w.spent, w.passed, w.extra = 11, 10, 1 }, 10 * sec},
		{"a trial waits for the window's end", func(w *windows) { trial(w); w.next = at0(3 * sec) }, 10 * sec},
		{"a trial's gap", func(w *windows) { trial(w); w.next, w.ends = at0(3*sec), time.Time{} }, 3 * sec},
		{"a trial without either", func(w *windows) { trial(w); w.ends = time.Time{} }, 0},
		{"a trial beyond its size", func(w *windows) { trial(w); w.spent, w.passed, w.out = 10, 9, 1 }, forever},
		{"below", func(w *windows) { trial(w); w.spent, w.passed, w.out = 9, 9, 1 }, 10 * sec},
		{"alone", func(w *windows) { trial(w); w.spent, w.passed = 10, 9 }, 10 * sec},
		{"refused", func(w *windows) { trial(w); w.spent, w.passed, w.out, w.refused = 10, 9, 1, true }, 10 * sec},
	} {
		if got, ok := surely(test.change).wait(at0(0)); got != test.want || !ok {
			t.Errorf("%s: %v, %t; want %v", test.name, got, ok, test.want)
		}
	}
	if d, ok := surely(func(w *windows) { w.stage = noWindows }).wait(at0(0)); d != 0 || ok {
		t.Error("no windows wait")
	}
	if d, ok := surely(func(w *windows) { w.spent, w.passed = 10, 10 }).wait(at0(10 * sec)); d != 0 || !ok {
		t.Error("the next window has begun")
	}
}

// A window that is over makes room for the next; after four without a refusal
// one more is tried.
func TestWindowsRoll(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(w *windows)
		at      time.Duration
		rolled  bool
		clean   int
		extra   float64
		against int
	}{
		{"not over", func(w *windows) { w.passed, w.extra, w.against = 10, 2, 1 }, 10*sec - 1, false, 0, 2, 1},
		{"no end", func(w *windows) { w.passed, w.ends, w.against = 10, time.Time{}, 1 }, 20 * sec, false, 0, 0, 1},
		{"spent", func(w *windows) { w.passed, w.extra, w.against = 10, 2, 1 }, 10 * sec, true, 1, 0, 0},
		{"not spent", func(w *windows) { w.passed, w.against = 9, 1 }, 10 * sec, true, 0, 0, 1},
		{"refused", func(w *windows) { w.passed, w.refused, w.against = 10, true, 1 }, 10 * sec, true, 0, 0, 1},
		{"the third", func(w *windows) { w.passed, w.clean = 10, 2 }, 10 * sec, true, 3, 0, 0},
		{"the fourth", func(w *windows) { w.passed, w.clean = 10, 3 }, 10 * sec, true, 0, 1, 0},
	} {
		w := surely(test.change)
		w.spent = 10
		w.roll(at0(test.at))
		if rolled := w.spent == 0 && w.passed == 0 && !w.refused && w.opened.IsZero() && w.ends.IsZero(); rolled != test.rolled {
			t.Errorf("%s: rolled %t: %+v", test.name, rolled, w)
		}
		if w.clean != test.clean || w.extra != test.extra || w.against != test.against {
			t.Errorf("%s: %d clean, %v more, %d against", test.name, w.clean, w.extra, w.against)
		}
	}
}

// The first start opens a window; each is counted and keeps the gap.
func TestWindowsStart(t *testing.T) {
	w := surely(func(w *windows) { w.gap, w.margin, w.spent, w.passed = sec, sec/10, 10, 10 })
	w.start(at0(10 * sec))
	if w.opened != at0(10*sec) || w.ends != at0(20*sec+sec/10) || w.spent != 1 || w.out != 1 || w.next != at0(11*sec) || w.clean != 1 {
		t.Errorf("%+v", w)
	}
	w.start(at0(10*sec + sec/2))
	if w.opened != at0(10*sec) || w.spent != 2 || w.out != 2 || w.next != at0(12*sec) {
		t.Errorf("%+v", w)
	}
	w = &windows{ends: at0(0)} // none are known, so none end
	w.start(at0(sec))
	if w.opened != at0(sec) || w.ends != at0(0) {
		t.Errorf("%+v", w)
	}
	for range 2 {
		w.done()
	}
	if w.out != 0 {
		t.Errorf("%d under way", w.out)
	}
}

// What accepted answers say of windows.
func TestWindowsAccepted(t *testing.T) {
	for _, test := range []struct {
		name        string
		change      func(w *windows)
		size, extra float64
		rate        float64
	}{
		{"one of the size", func(w *windows) { w.passed = 9 }, 10, 0, 0},
		{"one more, on its way when the refusal came", func(w *windows) { w.passed, w.refused = 10, true }, 11, 0, 0},
		{"the last of a refused one", func(w *windows) { w.passed, w.refused = 9, true }, 10, 0, 0},
		{"the extra one", func(w *windows) { w.passed, w.extra = 10, 1 }, 11, 2, 0},
		{"the first of two", func(w *windows) { w.passed, w.extra = 10, 2 }, 10, 2, 0},
		{"one more, not tried", func(w *windows) { w.passed = 10 }, 10, 0, 0},
		{"an extra one in a trial", func(w *windows) { w.stage, w.passed, w.extra = trialWindows, 10, 1 }, 10, 1, 0},
		{"nearly more than a trial's", func(w *windows) { w.stage, w.size, w.passed = trialWindows, 8, 11 }, 8, 0, 0},
		{"more than a trial's", func(w *windows) { w.stage, w.size, w.passed = trialWindows, 8, 12 }, 0, 0, 3.25},
		{"more than a refused trial's", func(w *windows) { w.stage, w.size, w.passed, w.refused = trialWindows, 8, 12, true }, 13, 0, 0},
		{"at once", func(w *windows) { w.stage, w.size, w.passed, w.opened = trialWindows, 8, 12, at0(4*sec) }, 0, 0, 1300},
	} {
		w := surely(test.change)
		w.out = 3
		if got := w.good(at0(4 * sec)); got != test.rate || w.size != test.size || w.extra != test.extra || w.out != 3 {
			t.Errorf("%s: %v/s, %+v", test.name, got, w)
		}
		if test.rate > 0 && w.not != at0(4*sec+forgetRate) {
			t.Errorf("%s: tried again at %v", test.name, w.not)
		}
	}
}

// What refusals say of windows.
func TestWindowsRefused(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(w *windows)
		said    hint
		stage   windowStage
		size    float64
		against int
		period  time.Duration
	}{
		{"a first one", func(w *windows) { *w = windows{passed: 8, opened: at0(0)} }, retryIn(2 * sec), trialWindows, 8, 0, 0},
		{"too few", func(w *windows) { *w = windows{passed: 7} }, retryIn(2 * sec), noWindows, 0, 0, 0},
		{"too short", func(w *windows) { *w = windows{passed: 8} }, retryIn(2*sec - 1), noWindows, 0, 0, 0},
		{"no hint", func(w *windows) { *w = windows{passed: 8} }, hint{wait: 2 * sec}, noWindows, 0, 0, 0},
		{"not to be tried yet", func(w *windows) { *w = windows{passed: 8, not: at0(5*sec + 1)} }, retryIn(2 * sec), noWindows, 0, 0, 0},
		{"to be tried again", func(w *windows) { *w = windows{passed: 8, not: at0(5 * sec)} }, retryIn(2 * sec), trialWindows, 8, 0, 0},
		{"the trial held", func(w *windows) { w.stage, w.period, w.passed = trialWindows, 0, 9 }, retryIn(5 * sec), sureWindows, 9, 0, 10 * sec},
		{"by more, since it opened", func(w *windows) {
			w.stage, w.period, w.passed, w.opened, w.last = trialWindows, 0, 12, at0(-5*sec), at0(0)
		}, retryIn(5 * sec), sureWindows, 10, 0, 15 * sec},
		{"the trial did not", func(w *windows) { w.stage, w.period, w.passed = trialWindows, 0, 8 }, retryIn(5 * sec), trialWindows, 8, 1, 0},
		{"nor the third time", func(w *windows) { w.stage, w.period, w.passed, w.against = trialWindows, 0, 8, 2 }, retryIn(5 * sec), noWindows, 0, 0, 0},
		{"as known", func(w *windows) { w.passed, w.against = 12, 1 }, retryIn(5 * sec), sureWindows, 10, 0, 10 * sec},
		{"one less", func(w *windows) { w.passed, w.against = 9, 1 }, retryIn(5 * sec), sureWindows, 9, 0, 10 * sec},
		{"two less", func(w *windows) { w.passed = 8 }, retryIn(5 * sec), sureWindows, 8, 1, 10 * sec},
		{"a little early", func(w *windows) { w.passed = 8 }, retryIn(2 * sec), sureWindows, 10, 1, 10 * sec},
		{"the fourth time", func(w *windows) { w.passed, w.against = 8, 3 }, retryIn(2 * sec), sureWindows, 10, 4, 10 * sec},
		{"the fifth", func(w *windows) { w.passed, w.against = 8, 4 }, retryIn(2 * sec), noWindows, 0, 0, 0},
		{"one less, early", func(w *windows) { w.passed = 9 }, retryIn(2 * sec), sureWindows, 9, 0, 10 * sec},
		{"just as many as nearly all, early", func(w *windows) { w.size, w.passed = 20, 18 }, retryIn(2 * sec), sureWindows, 18, 0, 10 * sec},
		{"few, late", func(w *windows) { w.passed = 7 }, retryIn(5 * sec), sureWindows, 10, 1, 10 * sec},
		{"few, late again", func(w *windows) { w.passed, w.against = 7, 1 }, retryIn(5 * sec), noWindows, 0, 0, 0},
		{"few in a trial", func(w *windows) { w.stage, w.passed = trialWindows, 7 }, retryIn(5 * sec), noWindows, 0, 0, 0},
	} {
		w := surely(test.change)
		w.out = 3
		w.refuse(at0(5*sec), test.said, sec/5)
		if w.stage != test.stage || w.size != test.size || w.against != test.against || w.period != test.period || w.out != 3 {
			t.Errorf("%s: %+v", test.name, w)
		}
	}
}

// Where the next window begins after a refusal, and how far apart its starts are.
func TestWindowsAfterARefusal(t *testing.T) {
	w := surely(func(w *windows) { w.passed, w.clean, w.extra = 10, 2, 1 })
	w.refuse(at0(5*sec), retryIn(6*sec), sec/5)
	if w.gap != 125*time.Millisecond || w.last != at0(11*sec) || w.ends != w.last || w.next != w.last || w.margin != sec/10 || w.clean != 0 || w.extra != 0 || !w.refused {
		t.Errorf("%+v", w)
	}
	w = &windows{passed: 10, opened: at0(0)}
	if w.refuse(at0(5*sec), retryIn(8*sec), 0); w.gap != 100*time.Millisecond {
		t.Errorf("a trial's gap %v", w.gap)
	}
	w = surely(func(w *windows) { w.passed = 3 })
	if w.refuse(at0(5*sec), retryIn(sec), 0); w.next != at0(6*sec) || !w.refused || w.ends != at0(10*sec) || w.opened != at0(0) {
		t.Errorf("a little early: %+v", w)
	}
	w = surely(func(w *windows) { w.passed = 0 })
	if w.refuse(at0(5*sec), retryIn(sec), 0); w.next != at0(6*sec) || w.ends != at0(6*sec) || w.last != w.ends || !w.opened.IsZero() {
		t.Errorf("before the window began: %+v", w)
	}
	w = &windows{passed: 3, not: at0(9 * sec), out: 2}
	if w.refuse(at0(5*sec), hint{}, 0); *w != (windows{not: at0(9 * sec), out: 2}) {
		t.Errorf("no window: %+v", w)
	}
	w = surely(func(w *windows) { w.passed, w.against = 8, 2 })
	if w.refuse(at0(5*sec), retryIn(5*sec), 0); *w != (windows{not: at0(5*sec + forgetRate)}) {
		t.Errorf("contradicted three times: %+v", w)
	}
	for in, want := range map[time.Duration]time.Duration{sec: sec, sec + 1: 2 * sec, 7 * sec: 7 * sec, 7*sec + 1: 8 * sec, 9 * sec: 9 * sec, 11 * sec: 11 * sec, 25 * sec: 25 * sec} {
		if got := roundWindow(in); got != want {
			t.Errorf("%v rounded to %v, want %v", in, got, want)
		}
	}
}

// Who comes when a window is spent waits for the beginning of the next one.
func TestASpentWindowWaitsForTheNext(t *testing.T) {
	w := surely(func(w *windows) { w.spent, w.passed, w.next = 10, 10, at0(12*sec) })
	if d, _ := w.wait(at0(11 * sec)); d != sec {
		t.Errorf("%v, want what is left until it begins", d)
	}
}
