package throttle

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// Small rules of what is learned of stated limits.
func TestQuotasAtTheirBounds(t *testing.T) {
	q := heardQuota(0, 10, 30*sec, 20*sec, nil)
	if got := q.ETA(hourIn, 1, 1).Until(hourIn); got != 32*sec {
		t.Errorf("behind one: %v", got)
	}
	q = heardQuota(0, 10, sec, sec, func(q *quota) { q.slides, q.trail = 1, &trail{} })
	if q.roll(at0(sec)); !q.asking {
		t.Error("nothing is left on the trail, and yet nobody may ask")
	}
	q = heardQuota(9, 10, sec, sec, nil)
	if q.trace(at0(0), at0(0), headers.Limit{Remaining: known(9.0)}, 1, true, false); q.trail.shared != at0(aloneAfter*sec) {
		t.Errorf("somebody spent one: shared until %v", q.trail.shared)
	}
	q = heardQuota(5, 10, 30*sec, 0, nil)
	if q.hear(at0(sec), at0(sec), headers.Limit{Remaining: known(6.0)}, 1, false, false); q.left != 5 {
		t.Errorf("%v left: without a reset it is the same window", q.left)
	}
	for window, rises := range map[time.Duration]int{shortWindow: 1, shortWindow + 1: 0} {
		q = heardQuota(5, 10, 30*sec, window, nil)
		if q.window(at0(6*sec), at0(5*sec), 5, 1, false, at0(30*sec), true); q.rises != rises {
			t.Errorf("%v: %d rises", window, q.rises)
		}
	}
	if got := heardQuota(1, 1, 30*sec, 0, nil).wait(at0(0), 5); got != 0 {
		t.Errorf("a cost above a size of one: %v", got)
	}
	q = heardQuota(5, 10, 30*sec, 20*sec, func(q *quota) { q.terms, q.lastSent = &learnTerms{maxPause: 5 * time.Minute, pace: true}, at0(0) })
	if got := q.wait(at0(0), 1); got != 6*sec {
		t.Errorf("five in 30 s: %v apart", got)
	}
	q = heardQuota(0, 10, 0, 9*sec, func(q *quota) { q.size.Known = false })
	if got := q.guess(); got != 9*sec {
		t.Errorf("a window of unknown size: %v", got)
	}
	q = heardQuota(0, 10, 0, 0, func(q *quota) { q.flows, q.refill = true, 0.5 })
	if q.ask(); q.asking {
		t.Error("a bucket goes on by its rate")
	}
	q = heardQuota(0, 10, 0, 0, nil)
	if q.note(headers.Limit{Reset: known(10 * sec), ResetMeans: headers.Full}); q.refill != 0 {
		t.Errorf("nothing was said of what is left: %v/s", q.refill)
	}
	for rigid, want := range map[int]int{3: 2, 1: 0, 0: 0} {
		q.rigid = rigid
		if q.restart(at0(0), 5, at0(sec), true); q.rigid != want {
			t.Errorf("%d windows: %d left", rigid, q.rigid)
		}
	}
}

// Small rules of windows, rates and of who makes room.
func TestLearningAtItsBounds(t *testing.T) {
	w := surely(func(w *windows) { w.spent, w.passed, w.next = 10, 10, at0(12*sec) })
	if d, _ := w.wait(at0(11 * sec)); d != sec {
		t.Errorf("the next window has begun: %v", d)
	}
	f := at10()
	f.rate, f.top, f.low = 1, 1, 1
	if f.start(at0(0)); f.next != at0(sec) {
		t.Errorf("one a second: the next in %v", f.next.Sub(at0(0)))
	}
	l := learning1()
	l.finder = &finder{rate: 0.5, top: 0.5, low: 0.5, k: firstK, next: at0(sec), last: at0(0)}
	if got := l.ETA(hourIn, 1, 1).Until(hourIn); got != 3*sec {
		t.Errorf("behind one: %v", got)
	}
	l.quotas = []*quota{heardQuota(plentiful, 10, 0, 0, nil), heardQuota(1, 10, 30*sec, 0, nil)}
	n := 0
	l.restrictions(at0(0), func(c cause, _ time.Duration) {
		if c.what == causeQuota {
			n++
		}
	})
	if n != 1 {
		t.Errorf("%d quotas restrict, want the one that does", n)
	}
	l.quotas = l.quotas[1:]
	if !l.dropQuota(at0(0)) || len(l.quotas) != 0 {
		t.Error("one with a unit left does not bind")
	}
	l.quotas = []*quota{heardQuota(0.9, 10, 30*sec, 0, nil)}
	if l.dropQuota(at0(0)) {
		t.Error("one that binds is dropped")
	}
}

// Who drew on a quota is none of those from before; a refusal of one too many at
// a time answers who asks, and says nothing of the rate.
func TestEndsThatSayNothingOfTheRate(t *testing.T) {
	l := learning1()
	k := l.kindOf(kindKey{"GET", "x"}, hourIn)
	q := heardQuota(7, 10, time.Minute, 0, nil)
	q.account = &queue.Account{Meter: q}
	l.quotas = append(l.quotas, q)
	l.bind(q, k, 1)
	q.early = 2
	g := under(k, 3, hourIn)
	g.permit.Needs = append(g.permit.Needs, queue.Need{Account: q.account, N: 1})
	if l.finish(at0(sec), g, unsent, 0, headers.Signal{}); q.early != 2 {
		t.Errorf("%v from before", q.early)
	}
	l = learning1()
	k = l.kindOf(kindKey{"GET", "x"}, hourIn)
	l.hold = &hold{since: at0(-sec), until: at0(0), asking: true}
	k.hold = &hold{since: at0(-sec), until: at0(0), asking: true}
	l.finder = at10()
	l.finish(at0(sec), under(k, 3, hourIn), replied, 429, headers.Signal{Throttled: true, Kind: headers.Concurrency})
	if l.hold.asking || k.hold.asking || l.finder.rate != 0 || k.slow.ceiling != 2 {
		t.Errorf("%+v, %+v, %v/s, %v at a time", l.hold, k.hold, l.finder.rate, k.slow.ceiling)
	}
}
