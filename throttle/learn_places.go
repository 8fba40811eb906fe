package throttle

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// draws appends what requests of kind k draw on.
func (k *kind) draws(buf []draw, q *ask) []draw {
	l := k.learner
	buf = append(buf, draw{a: &l.account, n: 1})
	if l.terms.pausesOnly {
		return buf
	}
	return k.stated(append(buf, draw{a: &l.host.account, n: 1}, draw{a: &k.account, n: 1}), q)
}

// stated is the part of draws that the server stated.
func (k *kind) stated(buf []draw, q *ask) []draw {
	if len(k.quotas) == 0 {
		return buf
	}
	asks := false
	for _, x := range k.quotas {
		n := q.of(x.account)
		if n <= 0 {
			continue
		}
		if !x.sharing.settled() {
			w := k.whereOf(q.r)
			if !x.sharing.binds(w) {
				continue
			}
			if x.mayAsk(q.now.Time(), w, float64(n)) {
				asks = true
				continue
			}
		}
		buf = append(buf, draw{a: x.account, n: n})
	}
	if asks {
		if k.paths.asker == nil {
			k.paths.asker = newAsker(k)
		}
		buf = append(buf, draw{a: &k.paths.asker.account, n: 1})
	}
	return buf
}

// pace tells the slow start of k the rate that is configured for requests like q.
func (k *kind) pace(q *ask) {
	var pace time.Duration
	for _, m := range q.scope.own {
		if m.a.terms.spec != nil && (m.route == 0 || q.on(m.route-1)) {
			if n := q.of(m.a); n > 0 {
				pace = max(pace, m.a.meter.Regain(n))
			}
		}
	}
	if k.slow.pace = pace; pace > 0 {
		k.learner.host.slow.pace = pace
	}
}

// open reports whether a request of k may take its places at now.
func (k *kind) open(now instant) bool {
	l := k.learner
	return l.account.clear(now) && l.At(now, 1) <= now &&
		l.host.account.clear(now) && l.host.At(now, 1) <= now &&
		k.account.clear(now) && k.At(now, 1) <= now
}

// enter takes the places of a request of k.
func (p *permit) enter(now instant, k *kind) {
	l := k.learner
	p.kind, p.marks[0] = k, uint32(l.Take(now, 1, true))
	if !l.terms.pausesOnly {
		p.marks[1] = uint32(l.host.Take(now, 1, true))
		p.marks[2] = uint32(k.Take(now, 1, true))
	}
}

// vacate gives the places back, once. Those who wait for them are to be planned
// anew (passage.again).
func (p *permit) vacate(now instant) {
	k := p.kind
	if k == nil {
		return
	}
	p.kind = nil
	l := k.learner
	l.Return(now, 1, meter.Token(p.marks[0]), p.granted, 0)
	if l.terms.pausesOnly {
		return
	}
	l.host.Return(now, 1, meter.Token(p.marks[1]), p.granted, 0)
	k.Return(now, 1, meter.Token(p.marks[2]), p.granted, 0)
}
