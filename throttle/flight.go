package throttle

import (
	"math"
	"time"
)

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

func (m *flight) answered(instant, int64, mark, instant) {}

func (m *flight) back(_ instant, n int64, _ mark, _, _ instant) { m.out -= n }

func (m *flight) view(now instant) view {
	free := float64(m.limit - m.out)
	v := view{limit: m.limit, left: free, full: now, unspent: free}
	if m.out > 0 {
		v.full = never
	}
	return v
}

func (m *flight) full(instant) bool { return m.out == 0 }

// open is the meter of a gate: no limit, only pauses.
type open struct{}

func (open) fits(int64) bool                             { return true }
func (open) at(now instant, _ int64) instant             { return now }
func (open) eta(now instant, _, _ int64) instant         { return now }
func (open) regain(int64) time.Duration                  { return 0 }
func (open) room(instant) int64                          { return math.MaxInt64 }
func (open) take(instant, int64, bool) mark              { return 0 }
func (open) answered(instant, int64, mark, instant)      {}
func (open) back(instant, int64, mark, instant, instant) {}
func (open) view(now instant) view                       { return unmeasured(now) }
func (open) full(instant) bool                           { return true }
