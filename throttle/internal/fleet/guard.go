package fleet

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// guard decides when the store may be asked. An answer that comes later than
// requests wait is a failure as much as none. After a failure the store is left
// alone for a moment; when they add up it is gone, and one call at a time tries
// it, at growing distances. A store that is busy is left alone only by the queue
// that was told so: the fault may be one key's.
type guard struct {
	f *Fleet

	mu      sync.Mutex
	state   State
	met     bool    // some call was answered
	failed  float64 // calls, less what later ones made good
	after   time.Time
	pause   time.Duration // between probes
	back    time.Time     // when it was last no longer gone
	probing bool
	busy    time.Time     // when it was last
	trip    time.Duration // how long calls take, smoothed
}

const (
	guardFailures = 3
	// guardForgiven is what a success makes good. A call that fails has used up
	// what it would have granted, so a store that fails more often than one
	// time in ten serves less than nine tenths of what is there without it.
	guardForgiven  = 1.0 / 9
	guardFirst     = 50 * time.Millisecond
	guardBusy      = time.Second // how long a busy store is called so after it served again
	guardProbe     = 200 * time.Millisecond
	guardProbeMost = 5 * time.Second
	guardPatience  = time.Second // with a call that nobody waits for
	// guardSteady is for how many times the last pause a store must have served
	// to begin with short ones again. To find out that it is gone costs some
	// 0.3 s, to begin alone as much: of 5 s pauses an eighth at most.
	guardSteady = 10

	// Returns is within what time all processes ask a store that is there again.
	Returns = guardProbeMost
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

// heard takes note of how a call ended that took so long.
func (g *guard) heard(err error, took time.Duration, probe bool) {
	if err == nil && took >= g.f.c.Deadline { // those that waited for it have left
		err = g.slow()
	}
	g.mu.Lock()
	from := g.state
	if probe {
		g.probing = false
	}
	now := time.Now()
	switch {
	case err == nil:
		g.served(now, took, probe)
	case isBusy(err):
		g.met = true
		g.state, g.failed, g.after, g.busy = Busy, 0, time.Time{}, now
	default:
		g.fails(now, 1, probe)
	}
	to := g.state
	g.mu.Unlock()
	g.report(from, to, err)
}

func (g *guard) slow() error {
	return fmt.Errorf("no answer within %v: %w", g.f.c.Deadline, context.DeadlineExceeded)
}

// served takes note of an answer in time. Only a probe's brings the store back:
// of many calls under way some are quick.
func (g *guard) served(now time.Time, took time.Duration, probe bool) {
	if g.met = true; g.trip == 0 {
		g.trip = took
	}
	g.trip += (took - g.trip) / 8
	if g.state == Gone && !probe {
		return
	}
	if g.state == Gone {
		g.back, g.failed = now, 0
	}
	g.failed, g.after = max(0, g.failed-guardForgiven), time.Time{}
	if g.state != Busy || now.Sub(g.busy) >= guardBusy {
		g.state = Up
	}
}

func (g *guard) fails(now time.Time, n float64, probe bool) {
	g.failed += n
	if first := now.Add(guardFirst); first.After(g.after) {
		g.after = first
	}
	if g.failed < guardFailures || g.state == Gone && !probe {
		return
	}
	if g.state != Gone && now.Sub(g.back) >= guardSteady*g.pause {
		g.pause = 0
	}
	g.state = Gone
	g.pause = min(max(2*g.pause, guardProbe), guardProbeMost)
	g.after = now.Add(g.pause)
}

// late takes note of a call sent at a time whose requests wait no longer. The
// first calls of a process make connections: until one of them ends the
// requests go on alone, and the store is not judged. The caller calls report
// when it holds no lock.
func (g *guard) late(sent time.Time) (report func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	from := g.state
	if now := time.Now(); g.met {
		g.fails(now, 1, false)
	} else if until := sent.Add(g.f.patience()); until.After(g.after) {
		g.after = until
	}
	to := g.state
	return func() { g.report(from, to, g.slow()) }
}

// ended takes note of how a call ended that was late.
func (g *guard) ended(err error) {
	g.mu.Lock()
	from := g.state
	if !g.met {
		g.after = time.Time{}
		if g.met = err == nil; !g.met {
			g.fails(time.Now(), guardFailures, false)
		}
	}
	to := g.state
	g.mu.Unlock()
	g.report(from, to, err)
}

func (g *guard) report(from, to State, why error) {
	if from != to && g.f.c.OnState != nil {
		g.f.c.OnState(from, to, why)
	}
}

func (g *guard) now() State {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state
}

// quick reports whether the store has lately answered in a small part of the time
// that requests wait for it.
func (g *guard) quick() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state == Up && g.failed == 0 && g.met && g.trip < min(quickly, g.f.c.Deadline)/8
}

// tripTime is how long calls take that are answered in time.
func (g *guard) tripTime() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.trip
}
