package meter

import (
	"math"
	"time"
)

// InFlight is the meter of a limit on requests at a time; Meter says what its methods do.
// A unit is a place. It is taken by Take and given back by Return: Answered does nothing.
type InFlight struct {
	Limit int64 // places; may be changed between calls
	out   int64 // places taken
}

func (m *InFlight) At(now Instant, n int64) Instant {
	if m.out+min(n, m.Limit) <= m.Limit {
		return now
	}
	return Never
}

func (m *InFlight) ETA(now Instant, ahead, n int64) Instant {
	if ahead > 0 {
		return Never
	}
	return m.At(now, n)
}

// Regain is a second, whatever n is: nothing is known here of how long requests take.
func (m *InFlight) Regain(int64) time.Duration { return time.Second }

func (m *InFlight) Take(_ Instant, n int64, _ bool) Token {
	m.out += n
	return 0
}

func (m *InFlight) Answered(Instant, int64, Token, Instant) bool { return false }

func (m *InFlight) Return(_ Instant, n int64, _ Token, _, _ Instant) { m.out -= n }

func (m *InFlight) State(now Instant) State {
	free := float64(max(0, m.Limit-m.out))
	s := State{Limit: m.Limit, Left: free, Unspent: free, Full: now, Most: math.MaxInt64, Idle: m.out == 0}
	if m.out > 0 {
		s.Full = Never
	}
	return s
}

// Open is the meter of no limit: At returns now. Meters that need only some of the
// methods embed it.
type Open struct{}

func (Open) At(now Instant, _ int64) Instant                { return now }
func (Open) ETA(now Instant, _, _ int64) Instant            { return now }
func (Open) Regain(int64) time.Duration                     { return 0 }
func (Open) Take(Instant, int64, bool) Token                { return 0 }
func (Open) Answered(Instant, int64, Token, Instant) bool   { return false }
func (Open) Return(Instant, int64, Token, Instant, Instant) {}

func (Open) State(now Instant) State {
	return State{math.MaxInt64, math.Inf(1), math.Inf(1), now, math.MaxInt64, true}
}
