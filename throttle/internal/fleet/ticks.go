package fleet

import (
	"context"
	"errors"
	"time"
)

// ticks is what the clock of the server that keeps a key was last heard to read.
type ticks struct {
	clock       int64     // zero: unknown
	sent, heard time.Time // the call
	stepped     time.Time // when the clock was last heard to have stepped; zero: never
}

// hears notes what the clock read when it answered a call from sent until now, and reports whether it
// steps again and again. Calls that were under way together may be heard in any order, so one counts
// only if it was sent when the last one had been heard; and a time only if it can be.
func (t *ticks) hears(clock int64, sent, now time.Time) (again bool) {
	if clock == 0 || clock > farthest || sent.Before(t.heard) {
		return false
	}
	if t.steps(clock, sent, now) {
		again = !t.stepped.IsZero() && now.Sub(t.stepped) < guardClock
		t.stepped = now
	}
	t.clock, t.sent, t.heard = clock, sent, now
	return again
}

// steps reports whether the clock has stepped if it reads clock in answer to such a call.
func (t *ticks) steps(clock int64, sent, now time.Time) bool {
	if t.clock == 0 {
		return false
	}
	least, most := sent.Sub(t.heard), now.Sub(t.sent)
	drift := leastStep + most/mostDrift
	went := clock - t.clock
	return went < (least-drift).Microseconds() || went > (most+drift).Microseconds()
}

const (
	// leastStep is what counts as a step: less ends a window by as little too early.
	leastStep = 100 * time.Millisecond
	// mostDrift: two clocks drift apart by less than a 1000th, as NTP slews one by a 2000th.
	mostDrift = 1000
)

var errClock = errors.New("its clock steps again and again")

// staggers notes that the store's clock steps again and again. Each step holds up requests, or lets too
// many through. So the store is gone, and does not come back before its clock has been steady for a
// while. The caller may hold the lock of a queue.
func (g *guard) staggers(now time.Time) {
	g.mu.Lock()
	from := g.state
	g.stepped = now
	g.fails(now, guardFailures, false)
	to := g.state
	g.mu.Unlock()
	if from != to {
		g.f.start(func(context.Context) { g.report(from, to, errClock) })
	}
}

// steady reports whether a store that is gone may come back, as far as its clock is known.
func (g *guard) steady(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.still(now)
}

func (g *guard) still(now time.Time) bool {
	return g.stepped.IsZero() || now.Sub(g.stepped) >= guardStill
}
