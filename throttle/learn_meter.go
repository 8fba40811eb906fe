package throttle

import (
	"math"
	"strconv"
	"time"
)

// What a meter of ours returns from take, to be had again when the request
// ended: bits.
const (
	markAsks mark = 1 << iota // it was let through to ask
	markLone                  // it started alone while others were under way

	markBits = iota // above these stands the generation in which it started
)

func (m mark) generation() uint32 { return uint32(m >> markBits) }

// hostStart is the meter of a host's slow start, shared by all credentials.
type hostStart struct {
	slow    slowStart
	account account
}

func in(now instant, d time.Duration) instant {
	if d == forever {
		return never
	}
	return now.Add(d)
}

func (l *learner) at(now instant, _ int64) instant {
	if l.hold == nil && l.finder == nil {
		return now
	}
	t := now.Time()
	d := l.hold.wait(t)
	if !l.terms.pausesOnly {
		d = max(d, l.finder.wait(t))
	}
	return in(now, d)
}

func (l *learner) take(now instant, _ int64, _ bool) (m mark) {
	if l.hold.start() {
		m = markAsks
	}
	if l.hardlyKnown() {
		l.home().joint.flow.start(now)
	}
	switch {
	case l.terms.pausesOnly:
	case l.finder != nil:
		l.finder.start(now.Time())
	default:
		l.flow.start(now)
	}
	return m
}

func (l *learner) back(_ instant, _ int64, m mark, _, _ instant) {
	l.hold.over(m&markAsks != 0)
	if l.finder != nil {
		l.finder.windows.done()
	} else {
		l.flow.done()
	}
}

func (k *kind) at(now instant, _ int64) instant {
	var d time.Duration
	if k.hold != nil {
		t := now.Time()
		if d = k.hold.wait(t); k.apart {
			d = max(d, k.finder.wait(t))
		}
	}
	if d == 0 {
		return k.slow.opens(now)
	}
	return in(now, d)
}

func (k *kind) take(now instant, _ int64, _ bool) (m mark) {
	if k.hold.start() {
		m |= markAsks
	}
	m |= mark(k.slow.start(now)) << markBits
	if trip := max(k.slow.rtt, 50*time.Millisecond); k.slow.others() > 0 && now-k.last >= instant(trip) {
		m |= markLone
	}
	k.last = now
	if k.apart {
		k.finder.start(now.Time())
	}
	return m
}

func (k *kind) back(_ instant, _ int64, m mark, _, _ instant) {
	k.slow.end(m.generation())
	k.hold.over(m&markAsks != 0)
	if k.apart {
		k.finder.windows.done()
	}
}

func (s *hostStart) at(now instant, _ int64) instant { return s.slow.opens(now) }

func (s *hostStart) take(now instant, _ int64, _ bool) mark {
	return mark(s.slow.start(now)) << markBits
}

func (s *hostStart) back(_ instant, _ int64, m mark, _, _ instant) { s.slow.end(m.generation()) }

func (q *quota) at(now instant, n int64) instant {
	return in(now, q.wait(now.Time(), float64(n)))
}

func (q *quota) take(now instant, n int64, held bool) (m mark) {
	q.roll(now.Time())
	if !held {
		q.left -= float64(n) // a settlement
		return 0
	}
	q.lastSent = now.Time()
	if q.counted {
		q.out += float64(n)
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

func (q *quota) answered(now instant, n int64, m mark, _ instant) {
	if !q.counted {
		return
	}
	q.release(n, m)
	if q.trail != nil {
		q.trail.add(now, n)
	}
}

// back gives the place of a request whose units are not counted back, or those
// of one that was never sent. What is given back after the answer came, the
// server counted otherwise.
func (q *quota) back(_ instant, n int64, m mark, _, answered instant) {
	if answered == 0 {
		q.release(n, m)
	}
}

func (q *quota) release(n int64, m mark) {
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

func (l *learner) words(now instant) string {
	t := now.Time()
	switch {
	case l.hold.wait(t) > 0:
		return cause{what: causeHold, hold: l.hold}.in(t, l)
	case l.finder != nil && l.finder.rate > 0:
		return cause{what: causeRate, finder: l.finder}.in(t, l)
	}
	return "others are to go first"
}

func (k *kind) words(now instant) string {
	t := now.Time()
	if k.hold.wait(t) > 0 {
		return cause{what: causeHold, hold: k.hold, kind: k}.in(t, k.learner)
	}
	return cause{what: causeFlight, kind: k}.in(t, k.learner)
}

func (s *hostStart) words(instant) string {
	return "at most " + strconv.Itoa(s.slow.allowed()) + " at a time until it has answered more"
}

func (q *quota) words(now instant) string {
	q.roll(now.Time())
	return q.told(now.Time(), q.terms.zero)
}

// What follows is the same for all meters of ours. Any cost fits some time.
// Places are given back when the headers came.

func (l *learner) fits(int64) bool   { return true }
func (k *kind) fits(int64) bool      { return true }
func (s *hostStart) fits(int64) bool { return true }
func (q *quota) fits(int64) bool     { return true }

func (l *learner) eta(now instant, ahead, _ int64) instant {
	f, d := l.finder, l.hold.wait(now.Time())
	if f != nil && !l.terms.pausesOnly {
		d = max(d, f.outlook(now.Time()))
		if ahead > 0 && d != forever && f.windows.stage == noWindows && f.rate > 0 {
			d += nanos(float64(ahead) / f.rate)
		}
	}
	return in(now, d)
}

func (k *kind) eta(now instant, _, _ int64) instant {
	d := k.hold.wait(now.Time())
	if k.apart {
		d = max(d, k.finder.outlook(now.Time()))
	}
	if d == 0 && !k.slow.roomy(now) {
		return never
	}
	return in(now, d)
}

func (s *hostStart) eta(now instant, _, _ int64) instant {
	if s.slow.roomy(now) {
		return now
	}
	return never
}

func (q *quota) eta(now instant, ahead, n int64) instant {
	t := q.at(now, n)
	if r := q.rate(); r > 0 && t > now && t != never && ahead > 0 {
		t = t.Add(nanos(float64(ahead) / r)) // about: they come with the windows
	}
	return max(t, q.sure(now, now, ahead, n))
}

func (l *learner) regain(int64) time.Duration   { return l.finder.guess() }
func (k *kind) regain(int64) time.Duration      { return time.Second }
func (s *hostStart) regain(int64) time.Duration { return time.Second }
func (q *quota) regain(int64) time.Duration     { return q.guess() }

func (l *learner) room(instant) int64   { return 1 }
func (k *kind) room(instant) int64      { return 1 }
func (s *hostStart) room(instant) int64 { return 1 }
func (q *quota) room(now instant) int64 { return int64(min(plentiful, max(1, q.level(now.Time())))) }

func (l *learner) answered(instant, int64, mark, instant)   {}
func (k *kind) answered(instant, int64, mark, instant)      {}
func (s *hostStart) answered(instant, int64, mark, instant) {}

func unmeasured(now instant) view { return view{math.MaxInt64, math.Inf(1), now, math.Inf(1)} }

func (l *learner) view(now instant) view   { return unmeasured(now) }
func (k *kind) view(now instant) view      { return unmeasured(now) }
func (s *hostStart) view(now instant) view { return unmeasured(now) }

func (q *quota) view(now instant) view {
	q.roll(now.Time())
	v := view{limit: int64(min(plentiful, q.sizeOr(plentiful))), left: max(0, q.level(now.Time())), full: now}
	if q.reset.Known && v.left < float64(v.limit) {
		v.full = in(now, q.reset.Value.Sub(now.Time()))
	}
	return v
}

func (l *learner) full(now instant) bool { return l.idle(now.Time()) }
func (k *kind) full(now instant) bool    { return k.idle(now) }
func (s *hostStart) full(instant) bool   { return s.slow.now+s.slow.old == 0 }

func (q *quota) full(now instant) bool {
	q.roll(now.Time())
	return q.flying() == 0 && (q.left >= q.sizeOr(plentiful) || !q.reset.Known && now.Time().Sub(q.heard) > staleAfter)
}

// idle reports that forgetting all of l would lose nothing that still binds.
func (l *learner) idle(now time.Time) bool {
	if l.hold.wait(now) > 0 || l.finder.binds(now) {
		return false
	}
	idle := true
	l.everyKind(func(k *kind) {
		idle = idle && k.slow.now+k.slow.old == 0 && k.hold.wait(now) == 0 && (k.slow.ease == 0 || now.Sub(k.slow.last) >= time.Minute)
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
