package throttle

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

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
