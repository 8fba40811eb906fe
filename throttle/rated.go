package throttle

import (
	"math"
	"time"
)

// rateSpec is a Rate with what follows from it, shared by the keys that have it.
type rateSpec struct {
	Rate
	text      string
	perSecond float64
	size      int     // of the bucket
	span      instant // of its young units; zero: a window counts them
	shaped    bool
	warm      *warmSpec // nil: none
}

func newRateSpec(r Rate) *rateSpec {
	s := &rateSpec{Rate: r, text: r.String(), perSecond: r.perSecond(), size: r.burst()}
	s.shaped = r.WarmUp == 0 && (r.Bucket > 0 || s.size < r.Limit)
	if r.Bucket > 0 {
		s.span = spanOf(s.perSecond, s.size)
	}
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
		if shape = max(now, m.warm.next); ahead > 0 {
			shape = shape.Add(nanos(float64(ahead) / m.perSecond))
		}
	case m.shaped:
		m.bucket.look(now, m.rateSpec)
		need := float64(ahead) + min(float64(n), float64(m.size)) - m.bucket.tokens
		if m.short(need) {
			shape = now.Add(nanos(need / m.perSecond))
		}
	}
	if m.Bucket > 0 {
		return shape
	}
	// Whole windows that those ahead fill, then one's own place in the last.
	windows := math.Floor(max(0, units-1) / float64(m.Limit))
	rest := int64(units - windows*float64(m.Limit))
	first, per := now, m.Per
	if m.calendar != nil {
		first = m.calendar.at(now, m.rateSpec, rest)
	} else {
		first = m.window.at(now, m.rateSpec, max(1, rest))
		if late := m.window.answersIn(per); late > 0 && first > now {
			per += late
			first = first.Add(late) // those under way have still to begin theirs
		}
	}
	if windows > 0 {
		first = first.Add(nanos(windows * per.Seconds()))
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
		m.window.look(now, m.rateSpec)
		n = int64(m.Limit) - m.window.used()
	}
	switch {
	case m.warm != nil && m.warm.next > now:
		n = 0
	case m.warm != nil:
		n = min(n, 1)
	case m.shaped:
		m.bucket.look(now, m.rateSpec)
		n = min(n, whole(m.bucket.tokens))
	}
	return max(0, n)
}

// whole is how many whole units x holds. A limit of math.MaxInt is rounded up to
// what no int64 holds.
func whole(x float64) int64 {
	if x += 1e-9; x < math.MaxInt64 {
		return int64(x)
	}
	return math.MaxInt64
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
		return m.bucket.take(now, m.rateSpec, n, held)
	}
	return 0
}

func (m *rated) answered(now instant, n int64, _ mark, granted instant) {
	switch {
	case m.calendar != nil:
		m.calendar.answered(now, m.rateSpec, n, granted)
	case m.Bucket == 0:
		m.window.answered(now, m.rateSpec, n, granted)
	case m.span > 0:
		m.bucket.answered(now, m.rateSpec, n, granted)
	}
}

func (m *rated) back(now instant, n int64, k mark, granted, answered instant) {
	switch {
	case m.calendar != nil:
		m.calendar.back(now, m.rateSpec, n, granted, answered)
	case m.Bucket == 0:
		m.window.back(now, m.rateSpec, n, granted, answered)
	}
	switch {
	case m.warm != nil:
		m.warm.back(now, m.rateSpec.warm, n, instant(k))
	case m.shaped:
		if answered == 0 && m.span > 0 {
			m.bucket.answered(now, m.rateSpec, n, granted)
		}
		m.bucket.back(now, m.rateSpec, n, k)
	}
}

// respec goes on under other terms: what is in use stays in use, and a pause goes on.
func (m *rated) respec(now instant, s *rateSpec) {
	used := 0.0
	switch {
	case m.shaped:
		used = m.bucket.used(now, m.rateSpec)
	case m.warm == nil && m.Bucket == 0 && m.calendar == nil:
		m.window.look(now, m.rateSpec)
		used = min(float64(m.window.used()), float64(s.size)) // more is no debt: it may be long ago
	}
	if s.warm != nil {
		m.warm.stored *= s.warm.most / m.rateSpec.warm.most
	}
	if s.shaped && !m.shaped {
		m.bucket.gaps.begin()
	}
	m.rateSpec = s
	if s.shaped {
		m.bucket.begin(now, s, float64(s.size)-used, m.bucket.end)
	}
}

// inherit takes over what another meter of the same unit has seen.
func (m *rated) inherit(now instant, o *rated) {
	used := 0.0
	if o.shaped {
		used = o.bucket.used(now, o.rateSpec)
	}
	if o.Bucket == 0 && o.calendar == nil {
		o.window.look(now, o.rateSpec)
		if m.Bucket == 0 && m.calendar == nil {
			m.window.inherit(now, m.rateSpec, &o.window)
		}
		used = max(used, float64(o.window.used()))
	}
	if m.shaped {
		m.bucket.begin(now, m.rateSpec, max(0, float64(m.size)-used), o.bucket.end)
	}
}

// quiet sees to it that after a pause until the given instant the flow resumes
// at the shaped rate: no burst has been saved up meanwhile.
func (m *rated) quiet(now, until instant) {
	if m.shaped {
		m.bucket.quiet(now, until, m.rateSpec)
	}
}

// wake undoes quiet.
func (m *rated) wake(now instant) {
	if m.shaped {
		m.bucket.wake(now, m.rateSpec)
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
		m.window.look(now, m.rateSpec)
		v.left = float64(int64(m.Limit) - m.window.used())
		if m.window.out.units() > 0 {
			v.full = now.Add(m.Per)
		} else if last := len(m.window.sent.log) - 1; last >= 0 {
			v.full = m.window.sent.log[last].at.Add(m.Per)
		}
	}
	v.unspent = max(0, v.left)
	if m.shaped {
		m.bucket.look(now, m.rateSpec)
		v.left = min(v.left, m.bucket.tokens)
		if in := float64(m.size) - m.bucket.tokens; in > 1e-9 {
			v.full = max(v.full, now.Add(nanos(in/m.perSecond)))
		}
	}
	v.left = max(0, v.left)
	if m.Bucket > 0 {
		v.unspent = v.left
	}
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
		m.window.look(now, m.rateSpec)
		if m.window.used() > 0 {
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
