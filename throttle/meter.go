package throttle

import (
	"math"
	"time"
)

// meter is what an account counts with. All its methods are arithmetic on
// state and now, called under the engine's lock; now never steps back.
type meter interface {
	// fits reports whether n units can ever be granted at once.
	fits(n int64) bool

	// at is the earliest instant at which n units, which fit, may be granted if
	// nothing is taken or given back until then; now if they may be now; never
	// if that depends on an event.
	at(now instant, n int64) instant

	// eta is an estimate of when n units may be granted that come after ahead
	// units of others.
	eta(now instant, ahead, n int64) instant

	// regain is about how long it takes to have n units again once they are spent.
	regain(n int64) time.Duration

	// room is how many units may be granted at once now.
	room(now instant) int64

	// take charges n units, be there room or not. If held, answered or back
	// follows. What it returns goes back with them.
	take(now instant, n int64, held bool) mark

	// answered says that the answer to a held grant's request came.
	answered(now instant, n int64, m mark)

	// back returns n units, all or some, of a grant: a held one, or one that was
	// granted or answered at at.
	back(now instant, n int64, m mark, at instant, held bool)

	// view describes the meter for people.
	view(now instant) view

	// full reports whether nothing would be lost by forgetting the meter.
	full(now instant) bool
}

// mark is what a meter wants to know again when units come back.
type mark instant

// view is a meter in figures.
type view struct {
	limit int64   // units that could be granted at once if all were idle
	left  float64 // units that may be granted now
	full  instant // when everything will be there again; never: when an event says so
}

// rateSpec is a Rate with what follows from it, shared by the keys that have it.
type rateSpec struct {
	Rate
	text      string
	perSecond float64
	size      int // of the bucket
	shaped    bool
	warm      *warmSpec // nil: none
}

func newRateSpec(r Rate) *rateSpec {
	s := &rateSpec{Rate: r, text: r.String(), perSecond: r.perSecond(), size: r.burst()}
	s.shaped = r.WarmUp == 0 && (r.Bucket > 0 || s.size < r.Limit)
	if r.WarmUp > 0 {
		s.warm = newWarmSpec(s.perSecond, r.WarmUp)
	}
	return s
}

// rated is a meter for a Rate: a shape, a bucket or a warm-up, and a promise, a
// window or a calendar. A rate with Burst == Limit needs no bucket, one with
// Bucket has no window.
type rated struct {
	*rateSpec
	bucket   bucket // if shaped
	window   window
	warm     *warm
	calendar *calendar
}

func newRated(now instant, s *rateSpec, clock *wallClock) *rated {
	m := &rated{rateSpec: s}
	if s.shaped {
		m.bucket.fill(now, s.perSecond, s.size, float64(s.size))
	}
	if s.warm != nil {
		m.warm = &warm{stored: s.warm.most, next: now}
	}
	if s.Align != nil {
		m.calendar = &calendar{clock: clock}
	}
	return m
}

func (m *rated) fits(n int64) bool { return m.Bucket > 0 || n <= int64(m.Limit) }

func (m *rated) at(now instant, n int64) instant {
	t := now
	switch {
	case m.calendar != nil:
		t = m.calendar.at(now, m.rateSpec, n)
	case m.Bucket == 0:
		t = m.window.at(now, m.rateSpec, n)
	}
	return max(t, m.shapeAt(now, n))
}

func (m *rated) shapeAt(now instant, n int64) instant {
	switch {
	case m.warm != nil:
		return max(now, m.warm.next)
	case m.shaped:
		return m.bucket.at(now, m.rateSpec, n)
	}
	return now
}

func (m *rated) eta(now instant, ahead, n int64) instant {
	units := float64(ahead) + float64(n)
	shape := now
	switch {
	case m.warm != nil:
		shape = max(now, m.warm.next).add(nanos(float64(ahead) / m.perSecond))
	case m.shaped:
		m.bucket.look(now, m.rateSpec)
		need := float64(ahead) + min(float64(n), float64(m.size)) - m.bucket.tokens
		if need > 0 {
			shape = now.add(nanos(need / m.perSecond))
		}
	}
	if m.Bucket > 0 {
		return shape
	}
	// Whole windows that those ahead fill, then one's own place in the last.
	windows := math.Floor(max(0, units-1) / float64(m.Limit))
	rest := int64(units - windows*float64(m.Limit))
	first := now
	if m.calendar != nil {
		first = m.calendar.at(now, m.rateSpec, rest)
	} else {
		first = m.window.at(now, m.rateSpec, max(1, rest))
	}
	if windows > 0 {
		first = first.add(nanos(windows * m.Per.Seconds()))
	}
	return max(shape, first)
}

func (m *rated) regain(n int64) time.Duration { return nanos(float64(n) / m.perSecond) }

func (m *rated) room(now instant) int64 {
	n := int64(math.MaxInt64)
	switch {
	case m.calendar != nil:
		m.calendar.roll(now, m.rateSpec)
		n = int64(m.Limit) - m.calendar.used
	case m.Bucket == 0:
		m.window.expire(now, m.Per)
		n = int64(m.Limit) - m.window.count - m.window.held
	}
	switch {
	case m.warm != nil && m.warm.next > now:
		n = 0
	case m.warm != nil:
		n = min(n, 1)
	case m.shaped:
		m.bucket.look(now, m.rateSpec)
		n = min(n, int64(m.bucket.tokens+1e-9))
	}
	return max(0, n)
}

func (m *rated) take(now instant, n int64, held bool) mark {
	switch {
	case m.calendar != nil:
		m.calendar.take(now, m.rateSpec, n, held)
	case m.Bucket == 0:
		m.window.take(now, m.rateSpec, n, held)
	}
	switch {
	case m.warm != nil:
		return mark(m.warm.take(now, m.rateSpec.warm, n))
	case m.shaped:
		return mark(m.bucket.take(now, m.rateSpec, n))
	}
	return 0
}

func (m *rated) answered(now instant, n int64, _ mark) {
	switch {
	case m.calendar != nil:
		m.calendar.answered(now, m.rateSpec, n)
	case m.Bucket == 0:
		m.window.answered(now, m.rateSpec, n)
	}
}

func (m *rated) back(now instant, n int64, k mark, at instant, held bool) {
	switch {
	case m.calendar != nil:
		m.calendar.back(now, m.rateSpec, n, at, held)
	case m.Bucket == 0:
		m.window.back(now, m.rateSpec, n, at, held)
	}
	switch {
	case m.warm != nil:
		m.warm.back(now, m.rateSpec.warm, n, instant(k))
	case m.shaped:
		m.bucket.back(now, m.rateSpec, n, instant(k))
	}
}

// respec goes on under other terms: what is in use stays in use.
func (m *rated) respec(now instant, s *rateSpec) {
	used := 0.0
	switch {
	case m.shaped:
		m.bucket.look(now, m.rateSpec)
		used = float64(m.size) - m.bucket.tokens
	case m.warm == nil && m.Bucket == 0 && m.calendar == nil:
		m.window.expire(now, m.Per)
		used = float64(m.window.count + m.window.held)
	}
	if s.warm != nil {
		m.warm.stored *= s.warm.most / m.rateSpec.warm.most
	}
	m.rateSpec = s
	if s.shaped {
		m.bucket.fill(now, s.perSecond, s.size, float64(s.size)-used)
	}
}

// inherit takes over what another meter of the same unit has seen.
func (m *rated) inherit(now instant, o *rated) {
	used := 0.0
	if o.shaped {
		o.bucket.look(now, o.rateSpec)
		used = float64(o.size) - o.bucket.tokens
	}
	if o.Bucket == 0 && o.calendar == nil {
		o.window.expire(now, o.Per)
		if m.Bucket == 0 && m.calendar == nil {
			m.window.log = append([]stamp(nil), o.window.log...)
			m.window.count, m.window.first = o.window.count, -instant(m.Per)
			m.window.add(now, m.rateSpec, o.window.held)
			m.window.expire(now, m.Per)
		}
		used = max(used, float64(o.window.count+o.window.held))
	}
	if m.shaped {
		m.bucket.fill(now, m.perSecond, m.size, max(0, float64(m.size)-used))
	}
}

// quiet sees to it that after a pause until the given instant the flow resumes
// at the shaped rate: no burst has been saved up meanwhile.
func (m *rated) quiet(now, until instant) {
	if m.shaped {
		m.bucket.quiet(now, until, m.rateSpec)
	}
}

func (m *rated) view(now instant) view {
	v := view{limit: int64(m.Limit), full: now}
	if m.Bucket > 0 {
		v.limit = int64(m.Bucket)
	}
	v.left = float64(v.limit)
	switch {
	case m.calendar != nil:
		m.calendar.roll(now, m.rateSpec)
		v.left = float64(int64(m.Limit) - m.calendar.used)
		if m.calendar.used > 0 {
			v.full = instant(m.calendar.end - m.calendar.clock.zero)
		}
	case m.Bucket == 0:
		m.window.expire(now, m.Per)
		v.left = float64(int64(m.Limit) - m.window.count - m.window.held)
		if m.window.held > 0 {
			v.full = now.add(m.Per)
		} else if last := len(m.window.log) - 1; last >= 0 {
			v.full = m.window.log[last].at.add(m.Per)
		}
	}
	if m.shaped {
		m.bucket.look(now, m.rateSpec)
		v.left = min(v.left, m.bucket.tokens)
		if in := float64(m.size) - m.bucket.tokens; in > 1e-9 {
			v.full = max(v.full, now.add(nanos(in/m.perSecond)))
		}
	}
	v.left = max(0, v.left)
	return v
}

func (m *rated) full(now instant) bool {
	switch {
	case m.calendar != nil:
		m.calendar.roll(now, m.rateSpec)
		if m.calendar.used > 0 {
			return false
		}
	case m.Bucket == 0:
		m.window.expire(now, m.Per)
		if m.window.count > 0 || m.window.held > 0 {
			return false
		}
	}
	if m.warm != nil {
		m.warm.now(now, m.rateSpec.warm)
		return m.warm.stored >= m.rateSpec.warm.most && m.warm.next <= now
	}
	if m.shaped {
		m.bucket.look(now, m.rateSpec)
		return m.bucket.tokens >= float64(m.size)-1e-9
	}
	return true
}

// flight is a meter for requests in flight. A place is taken at the grant and
// given back by back alone: its units are always held.
type flight struct {
	limit int64
	out   int64
}

func (m *flight) fits(int64) bool { return true }

func (m *flight) at(now instant, n int64) instant {
	if m.out+min(n, m.limit) <= m.limit {
		return now
	}
	return never
}

func (m *flight) eta(now instant, ahead, n int64) instant {
	if ahead > 0 {
		return never
	}
	return m.at(now, n)
}

// A place is expected back in the time that requests usually take.
func (m *flight) regain(int64) time.Duration { return time.Second }

func (m *flight) room(instant) int64 { return max(0, m.limit-m.out) }

func (m *flight) take(_ instant, n int64, _ bool) mark {
	m.out += n
	return 0
}

func (m *flight) answered(instant, int64, mark) {}

func (m *flight) back(_ instant, n int64, _ mark, _ instant, _ bool) { m.out -= n }

func (m *flight) view(now instant) view {
	v := view{limit: m.limit, left: float64(m.limit - m.out), full: now}
	if m.out > 0 {
		v.full = never
	}
	return v
}

func (m *flight) full(instant) bool { return m.out == 0 }

// open is the meter of a gate: no limit, only pauses.
type open struct{}

func (open) fits(int64) bool                          { return true }
func (open) at(now instant, _ int64) instant          { return now }
func (open) eta(now instant, _, _ int64) instant      { return now }
func (open) regain(int64) time.Duration               { return 0 }
func (open) room(instant) int64                       { return math.MaxInt64 }
func (open) take(instant, int64, bool) mark           { return 0 }
func (open) answered(instant, int64, mark)            {}
func (open) back(instant, int64, mark, instant, bool) {}
func (open) view(now instant) view                    { return view{math.MaxInt64, math.Inf(1), now} }
func (open) full(instant) bool                        { return true }
