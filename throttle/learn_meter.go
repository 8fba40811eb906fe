package throttle

import (
	"strconv"
	"time"

	"github.com/weirhttp/weir/throttle/internal/concurrency"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// The token that Take returns holds these bits. It comes back when the request ends.
const (
	markAsks meter.Token = 1 << iota // it was let through to ask
	markLone                         // it started alone while others were under way

	markBits = iota // above these stands the generation in which it started
)

// generation is that in which the request of m started.
func generation(m meter.Token) uint32 { return uint32(m >> markBits) }

// hostStart is the meter of a host's slow start, shared by all credentials.
type hostStart struct {
	meter.Open
	slow    concurrency.Limit
	account queue.Account
}

func in(now instant, d time.Duration) instant {
	if d == forever {
		return never
	}
	return now.Add(d)
}

func (l *learner) At(now instant, _ int64) instant {
	if l.cooldown == nil {
		return now
	}
	at := l.cooldown.At(now)
	if at != never && !l.terms.pausesOnly {
		at = max(at, l.evidence.at(now, l.account.Queued()))
	}
	return at
}

func (l *learner) Take(now instant, _ int64, _ bool) (m meter.Token) {
	if l.cooldown.Start() {
		m = markAsks
	}
	if !l.terms.pausesOnly {
		l.sent(now)
	}
	return m
}

func (l *learner) Return(now instant, _ int64, m meter.Token, granted, _ instant) {
	l.cooldown.Done(m&markAsks != 0)
	switch {
	case l.terms.pausesOnly:
	case l.evidence != nil:
		l.evidence.over(now, granted)
	default:
		l.begun.out = false
	}
}

func (k *kind) At(now instant, _ int64) instant {
	at := now
	if k.cooldown != nil {
		if at = k.cooldown.At(now); k.apart && at != never {
			at = max(at, k.evidence.at(now, k.account.Queued()))
		}
	}
	if at == now {
		return k.slow.Opens(now)
	}
	return at
}

func (k *kind) Take(now instant, _ int64, _ bool) (m meter.Token) {
	if k.cooldown.Start() {
		m |= markAsks
	}
	m |= meter.Token(k.slow.Start(now)) << markBits
	if trip := max(k.slow.Trip(), 50*time.Millisecond); k.slow.Others() > 0 && now-k.last >= instant(trip) {
		m |= markLone
	}
	k.last = now
	if k.apart {
		k.evidence.sent(now)
	}
	return m
}

func (k *kind) Return(now instant, _ int64, m meter.Token, granted, _ instant) {
	k.slow.End(generation(m))
	k.cooldown.Done(m&markAsks != 0)
	if k.apart {
		k.evidence.over(now, granted)
	}
}

func (s *hostStart) At(now instant, _ int64) instant { return s.slow.Opens(now) }

func (s *hostStart) Take(now instant, _ int64, _ bool) meter.Token {
	return meter.Token(s.slow.Start(now)) << markBits
}

func (s *hostStart) Return(_ instant, _ int64, m meter.Token, _, _ instant) {
	s.slow.End(generation(m))
}

func (q *quota) At(now instant, n int64) instant {
	return in(now, q.wait(now, float64(n)))
}

func (q *quota) Take(now instant, n int64, held bool) (m meter.Token) {
	q.roll(now)
	if !held {
		q.left -= float64(n) // a settlement
		return 0
	}
	q.lastSent = now
	q.shared.draw(float64(n))
	if q.counted {
		q.out += float64(n)
		q.sentSince, q.statedAt = q.since()+n, q.basis
	}
	if q.trail != nil {
		q.trail.out += n
	}
	if q.asking && !q.asked {
		q.asked = true
		m = markAsks
	}
	return m
}

func (q *quota) Answered(now instant, n int64, m meter.Token, _ instant) (more bool) {
	if q.counted {
		q.release(n, m)
		if q.trail != nil {
			q.trail.add(now, n)
		}
	}
	return false
}

// Return ends what Take began for a request that was not answered. Once it was, the
// server has counted it in its own way, and there is nothing to give back.
func (q *quota) Return(_ instant, n int64, m meter.Token, granted, answered instant) {
	if answered == 0 {
		q.shared.draw(-float64(n))
		if q.counted && granted >= q.statedAt {
			q.sentSince = max(0, q.sentSince-n)
		}
		q.release(n, m)
	}
}

func (q *quota) release(n int64, m meter.Token) {
	if q.counted {
		q.out = max(0, q.out-float64(n))
	}
	if q.trail != nil {
		q.trail.out = max(0, q.trail.out-n)
	}
	if m&markAsks != 0 {
		q.asked = false
	}
}

// The words are those of Wait.Why.

func (l *learner) Words(now instant) string {
	switch {
	case l.cooldown.At(now) > now:
		return cause{what: causeCooldown, cooldown: l.cooldown}.in(now, l)
	case l.evidence.believes():
		return cause{what: causeRate, found: l.evidence}.in(now, l)
	}
	return "others are to go first"
}

func (k *kind) Words(now instant) string {
	if k.cooldown.At(now) > now {
		return cause{what: causeCooldown, cooldown: k.cooldown, kind: k}.in(now, k.learner)
	}
	return cause{what: causeFlight, kind: k}.in(now, k.learner)
}

func (s *hostStart) Words(instant) string {
	return "at most " + strconv.Itoa(s.slow.Allowed()) + " at a time until it has answered more"
}

func (q *quota) Words(now instant) string {
	q.roll(now)
	return q.told(now, q.terms.zero)
}

func (l *learner) ETA(now instant, ahead, _ int64) instant {
	at := l.cooldown.At(now)
	if at != never && !l.terms.pausesOnly {
		at = l.evidence.outlook(now, at, ahead, l.account.Queued())
	}
	return at
}

func (k *kind) ETA(now instant, ahead, _ int64) instant {
	at := k.cooldown.At(now)
	if k.apart && at != never {
		at = k.evidence.outlook(now, at, ahead, k.account.Queued())
	}
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

func (q *quota) ETA(now instant, ahead, n int64) instant {
	t := q.At(now, n)
	if r := q.rate(); r > 0 && t > now && t != never && ahead > 0 {
		t = t.Add(meter.Seconds(float64(ahead) / r)) // about: they come with the windows
	}
	return max(t, q.Sure(now, now, ahead, n))
}

func (l *learner) Regain(int64) time.Duration   { return l.evidence.regain() }
func (k *kind) Regain(int64) time.Duration      { return time.Second }
func (s *hostStart) Regain(int64) time.Duration { return time.Second }
func (q *quota) Regain(int64) time.Duration     { return q.guess() }

// idle reports that forgetting all of l would lose nothing that still binds.
func (l *learner) idle(now instant) bool {
	if l.cooldown.At(now) > now || l.evidence.binds(now) {
		return false
	}
	idle := true
	l.everyKind(func(k *kind) {
		idle = idle && k.slow.Idle(now) && k.cooldown.At(now) == now
	})
	if !idle {
		return false
	}
	for _, q := range l.quotas {
		q.roll(now)
		if q.reset.Known && q.left < q.sizeOr(plentiful) && !q.ignored {
			return false
		}
	}
	return true
}

// Sure is when, by the server's own word, there will be n units more than those of
// ahead. Whoever is refused until then can be told so as a fact. So what was only found
// out brings no later instant: a rate, a sliding log, or resets that came too early. And
// units under way count only if they were sent after the server stated what is left:
// those sent before may be counted in that already.
func (q *quota) Sure(now, _ instant, ahead, n int64) instant {
	q.roll(now)
	cost := float64(n)
	if q.size.Known {
		cost = min(cost, max(1, q.size.Value))
	}
	lack := float64(ahead) + cost - q.level(now) - max(0, q.flying()-max(float64(q.since()), q.shared.booked()))
	if q.sharing.Unsure() {
		lack = cost - q.left // those under way or ahead may draw on others
	}
	if !q.counted {
		lack = 1 - q.left
	}
	switch {
	case q.asking || lack <= 1e-9:
		return now
	case q.trickles:
		most := q.basis.Add(q.terms.maxPause).Sub(now)
		return now.Add(max(0, min(meter.Seconds(lack/q.refill), most)))
	case q.flows() || !q.reset.Known:
		return now
	}
	d := q.until().Sub(now) - q.slack
	if q.counted {
		d = min(d, q.trailed(now, cost))
	}
	return now.Add(max(0, d))
}
