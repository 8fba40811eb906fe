package throttle

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// under starts n requests to endpoint k and returns the ticket of the last.
func under(k *endpoint, n int, at instant) *ticket {
	var m, host, own meter.Token
	for range n {
		m, host, own = k.Take(at, 1, true), k.learner.host.Take(at, 1, true), k.learner.Take(at, 1, true)
	}
	return &ticket{endpoint: k, sent: at, permit: &placed{Permit: queue.Permit{Needs: []queue.Need{{Account: &k.account, N: 1, Token: m}, {Account: &k.learner.host.account, N: 1, Token: host}, {Account: &k.learner.account, N: 1, Token: own}}}}}
}

// What is learned of a request that brought no answer.
func TestUnansweredRequests(t *testing.T) {
	for name, test := range map[string]struct {
		end  ending
		lost bool
		left float64
	}{
		"not sent":  {unsent, false, 7},
		"cancelled": {cancelled, false, 6},
		"failed":    {failed, true, 6},
	} {
		l := learning1()
		k := l.endpointOf(endpointKey{"GET", "x"}, hourIn)
		q := heardQuota(7, 10, time.Minute)
		l.quotas = append(l.quotas, q)
		l.bind(q, k, 1)
		q.Passed(2, 1)
		g := under(k, 3, hourIn)
		if news := l.finish(at0(sec), g, test.end, 0, headers.Signal{}); news.what != causeNone {
			t.Errorf("%s: news %+v", name, news)
		}
		if lost := k.slow.Cut(); lost != test.lost || q.Facts(hourIn).Left != test.left || q.UnderWay() != 1 || l.good != 0 {
			t.Errorf("%s: lost %t, %v left, %v of before", name, lost, q.Facts(hourIn).Left, q.UnderWay())
		}
		q.Came()
		if l.finish(at0(sec), g, unsent, 0, headers.Signal{}); q.UnderWay() != 0 {
			t.Errorf("%s: %v under way of those from before", name, q.UnderWay())
		}
	}
}

// A good answer ends what earlier refusals began, and proves the host.
func TestGoodAnswers(t *testing.T) {
	l := learning1()
	k := l.endpointOf(endpointKey{"GET", "x"}, hourIn)
	l.cooldown = askedUntil(at0(0))
	k.cooldown = askedUntil(at0(0))
	g := under(k, 1, hourIn.Add(sec))
	l.finish(at0(2*sec), g, replied, 200, headers.Signal{})
	if l.cooldown.Asking() || k.cooldown.Asking() {
		t.Error("the question whether the pause is over is still open")
	}
	if l.good != 1 || k.slow.Good() != 1 || l.host.slow.Good() != 1 || !k.overload.ServedWithin(hourIn.Add(2*sec), 1) {
		t.Errorf("good %d, %d, %d", l.good, k.slow.Good(), l.host.slow.Good())
	}
	if k.slow.Free() || l.host.slow.Free() {
		t.Error("no limit was stated")
	}
	l.finish(at0(3*sec), under(k, 1, hourIn.Add(2*sec)), replied, 200, headers.Signal{Limits: []headers.Limit{stating(5, 10, time.Minute, headers.Boundary)}})
	if !k.slow.Free() || !l.host.slow.Free() || len(k.quotas) != 1 || l.quotas[0].Facts(at0(3*sec)).Left != 5 {
		t.Errorf("%d quotas", len(k.quotas))
	}
}

// Who drew on a quota is none of those from before; a refusal of one too many at
// a time answers who asks, and says nothing of the rate.
func TestEndsThatSayNothingOfTheRate(t *testing.T) {
	l := learning1()
	k := l.endpointOf(endpointKey{"GET", "x"}, hourIn)
	q := heardQuota(7, 10, time.Minute)
	q.account = &queue.Account{Meter: q}
	l.quotas = append(l.quotas, q)
	l.bind(q, k, 1)
	q.Passed(2, 1)
	g := under(k, 3, hourIn)
	g.permit.Needs = append(g.permit.Needs, queue.Need{Account: q.account, N: 1})
	if l.finish(at0(sec), g, unsent, 0, headers.Signal{}); q.UnderWay() != 2 {
		t.Errorf("%v from before", q.UnderWay())
	}
	l = learning1()
	k = l.endpointOf(endpointKey{"GET", "x"}, hourIn)
	l.cooldown = pausedUntil(at0(0))
	k.cooldown = pausedUntil(at0(0))
	l.evidence = believing(10, sec, 1)
	l.finish(at0(sec), under(k, 3, hourIn), replied, 429, headers.Signal{Throttled: true, Kind: headers.Concurrency})
	if l.cooldown.Asking() || k.cooldown.Asking() || l.evidence.believes() || k.slow.Allowed() != 2 {
		t.Errorf("%+v, %+v, %v at a time", l.cooldown, k.cooldown, k.slow.Allowed())
	}
}
