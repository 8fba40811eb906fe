// Package limit has the rate limiters that servers use, as arithmetic on
// instants: no clock, no lock, no HTTP. An instant is the time since a run
// began; the instants that one limiter is told of never step back.
//
// None of them is weir's: they judge it.
package limit

import "time"

// A Limiter decides which requests a server accepts.
type Limiter interface {
	// Take is told that a request arrives. If it is accepted, took is how long
	// the limiter itself holds up its answer.
	Take(at time.Duration) (took time.Duration, ok bool)
	// Ready returns at if a request would be accepted at this instant, else a
	// later one at which to ask again. Nothing is accepted before it, and it is
	// the first acceptance unless something other than requests intervenes: what
	// others use, or a change of the quota.
	Ready(at time.Duration) time.Duration
	// State is what the server would say of the quota.
	State(at time.Duration) State
}

// A State is what a server can tell about a quota.
type State struct {
	Limit int           // of one window, or a bucket's size
	Per   time.Duration // the window, or the time in which an empty bucket fills
	Left  int           // requests that are accepted now
	Next  time.Duration // until one more is accepted; zero if Left is not
	Reset time.Duration // until the window ends, the oldest entry leaves, or the bucket is full
}

// next is the wait that State tells: none while there is room.
func next(l Limiter, at time.Duration) time.Duration { return max(0, l.Ready(at)-at) }

// window is the number of the window of length per that holds the instant, if
// windows begin at phase and its multiples.
func window(at, phase, per time.Duration) int64 {
	n := (at - phase) / per
	if (at-phase)%per < 0 {
		n--
	}
	return int64(n)
}

// begin is when that window begins.
func begin(n int64, phase, per time.Duration) time.Duration { return phase + time.Duration(n)*per }
