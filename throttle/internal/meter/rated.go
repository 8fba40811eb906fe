package meter

import (
	"math"
	"time"
)

// Rated is the meter of a Rate; Meter says what its methods do. A window, or with Align a
// calendar, counts the units of a period. A bucket, a warm-up or an even spread says how
// fast units may follow one another. A rate with Burst == Limit needs no bucket, and one
// with Bucket has no window. NewRated or Begin makes one ready.
type Rated struct {
	*Rate
	bucket bucket // if shaped
	window window
	rare   *rare // of a rate with WarmUp or Align; nil: it has neither
}

// rare is what few rates need. It is apart so that the meter of a plain rate is small.
type rare struct {
	warm     warm     // with WarmUp
	calendar calendar // with Align
	even     even     // with Align and Even
}

// NewRated makes a meter of which nothing is taken. clock is used only by a rate with
// Align, and may be nil for others.
func NewRated(now Instant, s *Rate, clock *Wall) *Rated {
	m := new(Rated)
	m.Begin(now, s, clock)
	return m
}

// Begin makes the zero m the same as what NewRated returns.
func (m *Rated) Begin(now Instant, s *Rate, clock *Wall) {
	m.Rate = s
	if s.shaped {
		m.bucket.fill(now, s.perSecond, s.Burst, float64(s.Burst))
	}
	if s.warm != nil || s.Align != nil {
		m.rare = &rare{calendar: calendar{clock: clock}}
	}
	if s.warm != nil {
		m.rare.warm = warm{stored: s.warm.most, next: now}
	}
}

// Seen is the latest instant that was passed to m. The rate has neither Align nor WarmUp.
func (m *Rated) Seen() Instant { return max(m.bucket.seen, m.window.looked) }

func (m *Rated) At(now Instant, n int64) Instant {
	t := now
	switch {
	case m.Align != nil:
		t = m.rare.calendar.at(now, m.Rate, n)
	case !m.Bucket:
		t = m.window.at(now, m.Rate, n)
	}
	return max(t, m.shapeAt(now, n))
}

func (m *Rated) shapeAt(now Instant, n int64) Instant {
	switch {
	case m.warm != nil:
		return max(now, m.rare.warm.next)
	case m.shaped:
		return m.bucket.at(now, m.Rate, n)
	case m.Even:
		return m.rare.even.due(now, &m.rare.calendar, m.Rate)
	}
	return now
}

func (m *Rated) ETA(now Instant, ahead, n int64) Instant {
	units := float64(ahead) + float64(n)
	shape := now
	switch {
	case m.warm != nil:
		if shape = max(now, m.rare.warm.next); ahead > 0 {
			shape = shape.Add(Seconds(float64(ahead) / m.perSecond))
		}
	case m.shaped:
		m.bucket.look(now, m.Rate)
		need := float64(ahead) + min(float64(n), float64(m.Burst)) - m.bucket.tokens
		if m.short(need) {
			shape = now.Add(Seconds(need / m.perSecond))
		}
	case m.Even:
		shape = m.rare.even.eta(now, &m.rare.calendar, m.Rate, ahead)
	}
	if m.Bucket {
		return shape
	}
	// The units ahead fill so many whole windows; rest is how many the last one has to
	// have room for.
	windows := math.Floor(max(0, units-1) / float64(m.Limit))
	rest := int64(units - windows*float64(m.Limit))
	first, per := now, m.Per
	if m.Align != nil {
		first = m.rare.calendar.at(now, m.Rate, rest)
	} else {
		first = m.window.at(now, m.Rate, max(1, rest))
		if late := m.window.answersIn(per); late > 0 && first > now {
			per += late
			first = first.Add(late) // the windows of units under way begin when their answers come
		}
	}
	if windows > 0 {
		first = first.Add(Seconds(windows * per.Seconds()))
	}
	return max(shape, first)
}

func (m *Rated) Regain(n int64) time.Duration { return Seconds(float64(n) / m.perSecond) }

func (m *Rated) Take(now Instant, n int64, held bool) Token {
	switch {
	case m.Align != nil:
		m.rare.calendar.take(now, m.Rate, n, held)
	case !m.Bucket:
		m.window.take(now, m.Rate, n, held)
	}
	switch {
	case m.warm != nil:
		return Token(m.rare.warm.take(now, m.warm, n))
	case m.shaped:
		return m.bucket.take(now, m.Rate, n, held)
	case m.Even:
		m.rare.even.take(now, n)
	}
	return 0
}

// TakeNow is Take if At returns now, and does nothing otherwise. The rate has to be Plain. It is
// quicker than At and Take.
func (m *Rated) TakeNow(now Instant, n int64, held bool) (k Token, ok bool) {
	s := m.Rate
	if !s.Bucket && m.window.at(now, s, n) > now || s.shaped && m.bucket.at(now, s, n) > now {
		return 0, false
	}
	if !s.Bucket {
		m.window.take(now, s, n, held)
	}
	if s.shaped {
		k = m.bucket.take(now, s, n, held)
	}
	return k, true
}

// Plain reports that the rate has neither Align nor WarmUp.
func (s *Rate) Plain() bool { return s.Align == nil && s.warm == nil }

func (m *Rated) Answered(now Instant, n int64, _ Token, granted Instant) (more bool) {
	switch {
	case m.Align != nil:
		m.rare.calendar.answered(now, m.Rate, n, granted)
	case !m.Bucket:
		m.window.answered(now, m.Rate, n, granted)
	case m.span > 0:
		m.bucket.answered(now, m.Rate, n, granted)
		return true
	}
	return false
}

func (m *Rated) Return(now Instant, n int64, k Token, granted, answered Instant) {
	switch {
	case m.Align != nil:
		m.rare.calendar.back(now, m.Rate, n, granted, answered)
	case !m.Bucket:
		m.window.back(now, m.Rate, n, granted, answered)
	}
	switch {
	case m.warm != nil:
		m.rare.warm.back(now, m.warm, n, Instant(k))
	case m.shaped:
		if answered == 0 && m.span > 0 {
			m.bucket.answered(now, m.Rate, n, granted)
		}
		m.bucket.back(now, m.Rate, n, k)
	case m.Even:
		m.rare.even.back(n, granted)
	}
}

// Sure is a lower bound of when n units may be granted that come after ahead units of
// others, if nothing is granted before from. The tokens that Drain took for a pause count
// as present, because the pause may be ended early.
func (m *Rated) Sure(now, from Instant, ahead, n int64) Instant {
	took := 0.0
	if m.shaped {
		m.bucket.look(now, m.Rate)
		took = m.bucket.undrained(now) - m.bucket.tokens
	}
	m.bucket.tokens += took
	t := m.At(now, n)
	if ahead > 0 {
		t = max(t, m.ETA(now, ahead, n))
	}
	m.bucket.tokens -= took
	if need := float64(ahead) + min(float64(n), float64(m.Burst)) - 1; m.shaped && from > now && need > 0 {
		t = max(t, from.Add(Seconds(need/m.perSecond)))
	}
	return t
}

// Change goes on under another rate, for which Continues of m's rate must be true. Units in
// use stay in use, and a pause goes on.
func (m *Rated) Change(now Instant, s *Rate) {
	used := 0.0
	switch {
	case m.shaped:
		used = m.bucket.used(now, m.Rate)
	case m.warm == nil && !m.Bucket && m.Align == nil:
		m.window.look(now, m.Rate)
		used = min(float64(m.window.used()), float64(s.Burst)) // a bucket would have regained the rest, if it was taken long ago
	}
	if s.warm != nil {
		m.rare.warm.stored *= s.warm.most / m.warm.most
	}
	if s.shaped && !m.shaped {
		m.bucket.gaps.begin()
	}
	if s.Even && !m.Even {
		m.rare.even = even{}
	}
	if x := m.bucket.scarce; x != nil && s.span != m.span {
		x.inTransit = inTransit{} // its spans are of another length
	}
	m.Rate = s
	if s.shaped {
		m.bucket.begin(now, s, float64(s.Burst)-used, m.bucket.pause())
	}
}

// Inherit charges m, of which nothing is taken yet, with what is in use in o, the meter of
// another rate of the same unit.
func (m *Rated) Inherit(now Instant, o *Rated) {
	used := 0.0
	if o.shaped {
		used = o.bucket.used(now, o.Rate)
	}
	if !o.Bucket && o.Align == nil {
		o.window.look(now, o.Rate)
		if !m.Bucket && m.Align == nil {
			m.window.inherit(now, m.Rate, &o.window)
		}
		used = max(used, float64(o.window.used()))
	}
	if m.shaped {
		m.bucket.begin(now, m.Rate, max(0, float64(m.Burst)-used), o.bucket.pause())
	}
}

// Drain is called at the beginning of a pause that lasts until the given instant. It takes
// so many tokens that no burst follows the pause.
func (m *Rated) Drain(now, until Instant) {
	if m.shaped {
		m.bucket.drain(now, until, m.Rate)
	}
}

// Resume gives back what Drain took, for a pause that ends before its time.
func (m *Rated) Resume(now Instant) {
	if m.shaped {
		m.bucket.resume(now, m.Rate)
	}
}

func (m *Rated) State(now Instant) State {
	s := State{Limit: int64(m.Limit), Most: int64(m.Limit), Full: now, Idle: true}
	if m.Bucket {
		s.Limit, s.Most = int64(m.Burst), math.MaxInt64
	}
	s.Left = float64(s.Limit)
	switch {
	case m.Align != nil:
		m.rare.calendar.state(now, m.Rate, &s)
	case !m.Bucket:
		m.window.state(now, m.Rate, &s)
	}
	s.Unspent = s.Left
	switch {
	case m.warm != nil:
		m.rare.warm.state(now, m.warm, &s)
	case m.shaped:
		m.bucket.state(now, m.Rate, &s)
	case m.Even:
		m.rare.even.state(now, &m.rare.calendar, m.Rate, &s)
	}
	if s.Left < 0 { // quicker than max, which looks for NaN
		s.Left = 0
	}
	if m.Bucket {
		s.Unspent = s.Left
	} else if s.Unspent < 0 {
		s.Unspent = 0
	}
	return s
}
