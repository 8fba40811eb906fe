package throttle

import (
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/stated"
)

// The token that Take returns holds these bits. It comes back when the request ends.
const (
	markAsks = stated.Asks   // it was let through to ask
	markLone = markAsks << 1 // of an endpoint: it started alone while others were under way
	markTold = markAsks << 1 // of a learner: the evidence was told of it, as learning was not switched off then
	loadAt   = 2             // above these stands the load that it met,
	markBits = loadAt + 4    // and above that the generation in which it started
)

// generation is that in which the request of m started.
func generation(m meter.Token) uint32 { return uint32(m >> markBits) }

func (l *learner) Take(now instant, n int64, held bool) meter.Token {
	m := l.foundLimit.Take(now, n, held)
	if !l.terms.pausesOnly {
		l.sent(now)
		m |= markTold
	}
	return m
}

// sent notes a request of l.
func (l *learner) sent(now instant) {
	if l.evidence == nil {
		if l.begun == 0 && !l.terms.Fleet {
			l.begun, l.out = now, true
			return
		}
		l.evidenceOf(nil)
	}
	l.evidence.sent(now)
}

func (l *learner) Return(now instant, n int64, m meter.Token, granted, answered instant) {
	l.foundLimit.Return(now, n, m, granted, answered)
	switch {
	case m&markTold == 0:
	case l.evidence != nil:
		l.evidence.over(granted)
	default:
		l.out = false
	}
}

func (k *endpoint) At(now instant, _ int64) instant {
	at := k.pauser.At(now, 1)
	if at == now {
		at = k.slow.Opens(now)
	}
	if at == now {
		at = k.others(now)
	}
	if k.barred {
		if opens := k.learner.cooldown.Opens(); opens != 0 {
			at = max(at, opens.Add(askStep))
		}
	}
	return at
}

func (k *endpoint) Take(now instant, n int64, held bool) meter.Token {
	m := k.pauser.Take(now, n, held)
	m |= meter.Token(k.slow.Start(now)) << markBits
	m |= meter.Token(attribution.LoadOf(k.slow.UnderWay()+int(k.bodies))) << loadAt
	if k.slow.Alone(now, k.last) {
		m |= markLone
	}
	k.last = now
	if k.group != nil {
		k.group.evidence.sent(now)
	}
	return m
}

func (k *endpoint) Return(now instant, n int64, m meter.Token, granted, answered instant) {
	k.slow.End(generation(m))
	k.pauser.Return(now, n, m, granted, answered)
	if k.group != nil {
		k.group.evidence.over(granted)
	}
}

func (k *endpoint) Spares(now instant) bool {
	return !k.learner.terms.Fleet && !k.barred && !k.slow.Cut() && !k.rests(now)
}

func (k *endpoint) Words(now instant) string {
	switch {
	case k.rests(now):
		return cause{what: causeCooldown, endpoint: k}.in(now, k.learner.terms.zero)
	case k.barred && k.learner.cooldown.Opens() != 0:
		return othersAsk
	}
	return cause{what: causeFlight, endpoint: k}.in(now, k.learner.terms.zero)
}

func (q *quota) Words(now instant) string {
	return q.Limit.Words(now, q.terms.zero)
}

func (k *endpoint) ETA(now instant, ahead, _ int64) instant {
	at := k.cooldown.At(now)
	if at == now && !k.slow.Roomy(now) {
		return never
	}
	return at
}

func (k *endpoint) Regain(int64) time.Duration { return k.slow.Place() }

// idle reports that forgetting all of l would lose nothing that still binds.
func (l *learner) idle(now instant) bool {
	idle := !slices.ContainsFunc(l.quotas, func(q *quota) bool { return !q.Idle(now) })
	l.everyFound(func(f *foundLimit) { idle = idle && !f.rests(now) && !f.evidence.binds(now) })
	l.everyEndpoint(func(k *endpoint) { idle = idle && k.slow.Idle(now) && !k.rests(now) })
	return idle
}
