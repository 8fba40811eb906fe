package fleet

import (
	"sync"
	"time"
)

// guard decides when the store may be asked. After an error it is left
// alone for a moment; after three in a row it is gone, and one call at a time
// tries it, at growing distances. A store that is busy is left alone only by
// the queue that was told so: the fault may be one key's.
type guard struct {
	f *Fleet

	mu      sync.Mutex
	state   State
	failed  int // in a row
	after   time.Time
	pause   time.Duration
	probing bool
	busy    time.Time // when it was last
}

const (
	guardFailures  = 3
	guardFirst     = 50 * time.Millisecond
	guardBusy      = time.Second // how long a busy store is called so after it served again
	guardProbe     = 200 * time.Millisecond
	guardProbeMost = 5 * time.Second
	guardPatience  = time.Second // with a probe
)

// allows reports whether a call that is no probe may be made.
func (g *guard) allows(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state != Gone && !now.Before(g.after)
}

// enter reports whether a booking may be sent. If not, retry says when to ask
// again, and probe whether the caller shall send a probe meanwhile.
func (g *guard) enter(now time.Time) (ok, probe bool, retry time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if now.Before(g.after) {
		return false, false, g.after
	}
	if g.state != Gone {
		return true, false, now
	}
	if g.probing {
		return false, false, now.Add(g.f.c.Deadline)
	}
	g.probing = true
	return false, true, now.Add(g.f.c.Deadline)
}

// abandon ends a probe that was not sent.
func (g *guard) abandon() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.probing = false
}

// heard takes note of how a call ended.
func (g *guard) heard(err error, probe bool) {
	g.mu.Lock()
	from := g.state
	if probe {
		g.probing = false
	}
	now := time.Now()
	switch {
	case err == nil:
		// A straggler's success is as good as a probe's.
		g.failed, g.pause, g.after = 0, 0, time.Time{}
		if g.state != Busy || now.Sub(g.busy) >= guardBusy {
			g.state = Up
		}
	case isBusy(err):
		g.state, g.failed, g.pause, g.after, g.busy = Busy, 0, 0, time.Time{}, now
	default:
		g.failed++
		if first := now.Add(guardFirst); first.After(g.after) {
			g.after = first
		}
		if g.failed >= guardFailures && (probe || g.state != Gone) {
			g.state = Gone
			g.pause = min(max(2*g.pause, guardProbe), guardProbeMost)
			g.after = now.Add(g.pause)
		}
	}
	to := g.state
	g.mu.Unlock()
	if from != to && g.f.c.OnState != nil {
		g.f.c.OnState(from, to, err)
	}
}

func (g *guard) now() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state
}
