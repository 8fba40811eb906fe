package throttle

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/concurrency"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
	"github.com/weirhttp/weir/throttle/internal/stated"
)

// The token that Take returns holds these bits. It comes back when the request ends.
const (
	markAsks = stated.Asks   // it was let through to ask
	markLone = markAsks << 1 // it started alone while others were under way
	loadAt   = 2             // above these stands the load that it met,
	markBits = loadAt + 4    // and above that the generation in which it started
)

// generation is that in which the request of m started.
func generation(m meter.Token) uint32 { return uint32(m >> markBits) }

// hostStart is the meter of a host's slow start, shared by all credentials.
type hostStart struct {
	meter.Open
	slow    concurrency.Limit
	heads   int  // requests under way that had a headStart
	fleet   bool // it is one of the starts of a fleet's processes
	account queue.Account
}

func (l *learner) Take(now instant, n int64, held bool) meter.Token {
	if !l.terms.pausesOnly {
		l.sent(now)
	}
	return l.foundLimit.Take(now, n, held)
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
	case l.terms.pausesOnly:
	case l.evidence != nil:
		l.evidence.over(now, granted)
	default:
		l.out = false
	}
}

func (k *endpoint) At(now instant, _ int64) instant {
	at := k.pauser.At(now, 1)
	if at == now {
		at = k.slow.Opens(now)
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
		k.group.evidence.over(now, granted)
	}
}

func (s *hostStart) At(now instant, _ int64) instant { return s.slow.Opens(now) }

// unplaced is the token of a request that took no place in its host's slow start,
// which was over: from then on nobody asks how many are under way there.
const unplaced meter.Token = math.MaxUint32

func (s *hostStart) Take(now instant, _ int64, _ bool) meter.Token {
	if s.slow.Free() {
		return unplaced
	}
	return meter.Token(s.slow.Start(now)) << markBits
}

func (s *hostStart) Return(_ instant, _ int64, m meter.Token, _, _ instant) {
	if m != unplaced {
		s.slow.End(generation(m))
	}
}

// Spares reports whether nothing is known that speaks against one more request at a time. In
// a fleet, what slow starts let through is for all processes together.
func (s *hostStart) Spares(instant) bool { return !s.fleet && !s.slow.Cut() }

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

func (s *hostStart) Words(instant) string {
	return "at most " + strconv.Itoa(s.slow.Allowed()) + " at a time until it has answered more"
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

func (s *hostStart) ETA(now instant, _, _ int64) instant {
	if s.slow.Roomy(now) {
		return now
	}
	return never
}

func (k *endpoint) Regain(int64) time.Duration  { return k.slow.Place() }
func (s *hostStart) Regain(int64) time.Duration { return s.slow.Place() }

// idle reports that forgetting all of l would lose nothing that still binds.
func (l *learner) idle(now instant) bool {
	if l.rests(now) || l.evidence.binds(now) {
		return false
	}
	idle := !slices.ContainsFunc(l.quotas, func(q *quota) bool { return !q.Idle(now) })
	l.everyEndpoint(func(k *endpoint) {
		idle = idle && k.slow.Idle(now) && !k.rests(now) && k.group.idle(now)
	})
	return idle
}
