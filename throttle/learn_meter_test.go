package throttle

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/queue"
)

// What a credential's account waits for, and when those behind others may go.
func TestLearnerAsAMeter(t *testing.T) {
	steady := func(next time.Duration) *finder {
		return &finder{rate: 10, top: 10, low: 10, k: firstK, next: at0(next), last: at0(0)}
	}
	windowed := func(stage windowStage, spent float64) *finder {
		return &finder{windows: windows{stage: stage, size: 10, spent: spent, passed: spent, ends: at0(9 * sec), opened: at0(0)}, rate: 10, next: at0(sec)}
	}
	asked := &hold{until: at0(0), asking: true, asked: true}
	for _, test := range []struct {
		name   string
		h      *hold
		f      *finder
		pauses bool
		at     time.Duration
		eta    time.Duration // after 5 others
	}{
		{"nothing learned", nil, nil, false, 0, 0},
		{"a pause", &hold{until: at0(3 * sec)}, nil, false, 3 * sec, 3 * sec},
		{"a rate", nil, steady(2 * sec), false, 2 * sec, 2500 * time.Millisecond},
		{"a longer pause", &hold{until: at0(3 * sec)}, steady(2 * sec), false, 3 * sec, 3500 * time.Millisecond},
		{"a shorter one", &hold{until: at0(sec)}, steady(2 * sec), false, 2 * sec, 2500 * time.Millisecond},
		{"only pauses are learned", &hold{until: at0(sec)}, steady(2 * sec), true, sec, sec},
		{"one asks", asked, steady(2 * sec), false, -1, -1},
		{"no rate yet", nil, &finder{next: at0(2 * sec)}, false, 0, 0},
		{"a window with room", nil, windowed(sureWindows, 9), false, 0, 0},
		{"a window without", nil, windowed(sureWindows, 10), false, 9 * sec, 9 * sec},
		{"one that is tried", nil, windowed(trialWindows, 10), false, 9 * sec, 9 * sec},
	} {
		l := learning1()
		l.hold, l.finder, l.terms.pausesOnly = test.h, test.f, test.pauses
		for what, got := range map[string]instant{"at": l.At(hourIn, 1), "eta": l.ETA(hourIn, 5, 1)} {
			want := test.at
			if what == "eta" {
				want = test.eta
			}
			if want < 0 && got != never || want >= 0 && got.Until(hourIn) != want {
				t.Errorf("%s: %s in %v, want %v", test.name, what, got.Until(hourIn), want)
			}
		}
	}
	l := learning1()
	if l.Words(hourIn) != "others are to go first" {
		t.Error(l.Words(hourIn))
	}
	l.finder = new(finder)
	if l.Words(hourIn) != "others are to go first" || l.Regain(1) != firstGuess {
		t.Error(l.Words(hourIn))
	}
	if l.finder = steady(0); l.Words(hourIn) != "about 10/s, found by its refusals" || l.Regain(1) != 80*time.Millisecond {
		t.Error(l.Words(hourIn), l.Regain(1))
	}
	if l.finder.rate = 0.5; l.Words(hourIn) != "about 0.5/s, found by its refusals" {
		t.Error(l.Words(hourIn))
	}
	host := l.host
	for range firstFlight {
		if host.At(hourIn, 1) != hourIn {
			t.Error("a place is left")
		}
		host.Take(hourIn, 1, true)
	}
	k := &kind{slow: slowStart{underway: underway{now: firstFlight, since: never / 2}}}
	if host.ETA(hourIn, 5, 1) != never || k.ETA(hourIn, 5, 1) != never {
		t.Error("no place is left")
	}
	if host.At(hourIn, 1) != hourIn.Add(freshPatience/spans) || k.At(hourIn, 1) <= hourIn || !host.slow.full || !k.slow.full {
		t.Error("no place is left before those under way do not count any more")
	}
	if host.Regain(1) != sec || new(kind).Regain(1) != sec {
		t.Error("a place takes about a second to come back")
	}
}

// Starts and ends are counted by who has the rate: the credential's flow, its
// finder, or that of a kind apart.
func TestStartsAreCounted(t *testing.T) {
	l := learning1()
	k := l.kindOf(kindKey{"GET", "x"}, hourIn)
	m := l.Take(hourIn, 1, true)
	if m != 0 || l.flow.out != 1 || l.flow.started != 1 || l.flow.began != hourIn {
		t.Errorf("%v, %+v", m, l.flow)
	}
	if l.Return(hourIn, 1, m, hourIn, 0); l.flow.out != 0 || l.flow.started != 1 {
		t.Errorf("%+v", l.flow)
	}
	l.hold, l.finder = &hold{asking: true}, new(finder)
	m = l.Take(hourIn, 1, true)
	if m != markAsks || l.finder.windows.out != 1 || l.flow.started != 1 || !l.hold.asked {
		t.Errorf("%v, %+v", m, l.finder.windows)
	}
	if l.Return(hourIn, 1, m, hourIn, 0); l.finder.windows.out != 0 || l.hold.asked {
		t.Errorf("%+v", l.finder.windows)
	}
	l.terms.pausesOnly = true
	if l.Take(hourIn, 1, true); l.finder.windows.out != 0 {
		t.Error("a rate is learned")
	}
	k.apart, k.finder, k.hold = true, &finder{rate: 10, next: at0(2 * sec)}, &hold{until: at0(sec)}
	if got := k.At(hourIn, 1).Until(hourIn); got != 2*sec {
		t.Errorf("a kind apart waits for %v", got)
	}
	if k.apart = false; k.At(hourIn, 1).Until(hourIn) != sec {
		t.Error("one of the rest waits for its finder")
	}
	k.apart = true
	m = k.Take(hourIn, 1, true)
	if k.finder.windows.out != 1 || k.slow.now != 1 || k.last != hourIn || m != 0 {
		t.Errorf("%v, %+v", m, k.finder.windows)
	}
	if k.Return(hourIn, 1, m, hourIn, 0); k.finder.windows.out != 0 || k.slow.now != 0 {
		t.Errorf("%+v", k.finder.windows)
	}
}

// One starts alone if a round trip has passed since the last start, and others
// are under way still.
func TestWhoStartsAlone(t *testing.T) {
	for _, test := range []struct {
		now   int
		rtt   time.Duration
		after time.Duration
		lone  bool
	}{{1, 0, 50 * time.Millisecond, true}, {1, 0, 50*time.Millisecond - 1, false}, {0, 0, sec, false}, {1, sec, sec, true}, {1, sec, sec - 1, false}} {
		k := kind{slow: slowStart{underway: underway{now: test.now, since: never / 2, heard: 1}, rtt: test.rtt}, last: hourIn}
		if m := k.Take(hourIn.Add(test.after), 1, true); (m == markLone) != test.lone {
			t.Errorf("%+v: mark %d", test, m)
		}
	}
}

// What a finder knows of the time before it was made.
func TestFlowsGoOnInAFinder(t *testing.T) {
	var w flow
	w.out = 3
	if f := w.finder(); f.windows != (windows{out: 3}) || !f.began.IsZero() {
		t.Errorf("nothing started: %+v", f)
	}
	for i := range 5 {
		w.start(hourIn.Add(time.Duration(i) * sec))
	}
	w.done()
	w.accepted = 4
	f := w.finder()
	if f.began != at0(0) || f.last != at0(4*sec) || f.accepted != 4 || f.total != 4 || f.recent != 1 || f.heard != at0(4*sec) || f.rate != 0 {
		t.Errorf("%+v", f)
	}
	if want := (windows{out: 7, opened: at0(0), next: at0(4 * sec), spent: 5, passed: 4}); f.windows != want {
		t.Errorf("%+v, want %+v", f.windows, want)
	}
	if w.start(hourIn.Add(4*sec + forgetRate)); w.started != 6 {
		t.Errorf("%+v", w)
	}
	if w.start(w.last.Add(forgetRate + 1)); w.started != 1 || w.accepted != 0 || w.out != 9 || w.began != w.last {
		t.Errorf("after a long idling: %+v", w)
	}
	w = flow{began: hourIn, last: hourIn, accepted: 4}
	if f := w.finder(); f.recent != 2 {
		t.Errorf("%v/s lately, if all began at once", f.recent)
	}
	if w.done(); w.out != 0 {
		t.Errorf("%d under way", w.out)
	}
}

// A kind without a pause is not held up, and one whose question was answered is
// asked for again.
func TestKindAsAMeter(t *testing.T) {
	l := learning1()
	k := l.kindOf(kindKey{"GET", "x"}, hourIn)
	if k.At(hourIn, 1) != hourIn {
		t.Error("a fresh kind is held up")
	}
	k.hold = &hold{since: at0(-sec), until: at0(sec), asking: true}
	if got := k.At(hourIn, 1).Until(hourIn); got != sec {
		t.Errorf("paused for %v", got)
	}
	later := hourIn.Add(sec)
	m := k.Take(later, 1, true)
	if m&markAsks == 0 || k.At(later, 1) != never {
		t.Error("more than one asks")
	}
	k.Return(later, 1, m&^markAsks, later, 0)
	if k.At(later, 1) != never {
		t.Error("another one's end is no answer to who asks")
	}
	k.Return(later, 1, m, later, 0)
	if k.At(later, 1) != later {
		t.Error("who asked is gone, and the next one may not")
	}
	l.other = newKind(l, kindKey{rest: otherRequests})
	n := 0
	l.each(func(*queue.Account) { n++ })
	if n != 2 {
		t.Errorf("%d accounts of two kinds", n)
	}
	if l.waited() {
		t.Error("nobody waits")
	}
	defer waitFor(&k.account)()
	if !l.waited() {
		t.Error("somebody waits for the first of two")
	}
}

// What is learned of a kind apart, and of all others, begins anew where it
// proved wrong.
func TestRestartedLearning(t *testing.T) {
	l := learning1()
	k := l.kindOf(kindKey{"GET", "a"}, hourIn)
	for range 3 {
		l.Take(hourIn, 1, true)
	}
	l.accept(k, hourIn, hourIn)
	if l.flow.accepted != 1 || l.flow.started != 3 || l.flow.out != 3 {
		t.Errorf("%+v", l.flow)
	}
	l.Return(hourIn, 1, 0, hourIn, 0)
	l.restart(k)
	if l.flow != (flow{out: 2}) {
		t.Errorf("%+v", l.flow)
	}
	own, common := &finder{rate: 3}, &finder{rate: 5}
	k.finder, l.finder = own, common
	l.restart(k)
	if l.finderOf(k) != common || common.rate != 0 || own.rate != 3 {
		t.Errorf("the common rate %v, its own %v", common.rate, own.rate)
	}
	k.apart = true
	l.restart(k)
	if l.finderOf(k) != own || own.rate != 0 {
		t.Errorf("its own %v", own.rate)
	}
}
