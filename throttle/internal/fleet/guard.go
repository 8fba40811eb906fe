package fleet

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// guard decides when the store may be asked. An answer that comes later than
// requests wait for it is a failure, as no answer is. After a failure the store is not asked
// for a moment. After several it is gone: then one call at a time, a probe, tries it, at
// intervals that grow. If a store says that it is busy, only the queue that was told so does
// not ask it, because the reason may be one key.
type guard struct {
	f *Fleet

	mu      sync.Mutex
	state   State
	met     bool          // some call was answered
	failed  float64       // calls that failed, less guardForgiven for each later one that did not
	after   time.Time     // no call is made before
	pause   time.Duration // between probes
	back    time.Time     // when it last ceased to be gone
	probing bool          // a probe is under way
	busy    time.Time     // when it last said that it is busy
	trip    time.Duration // how long calls take, smoothed
	stepped time.Time     // when its clock was last heard to step again and again; zero: never
}

const (
	// guardFailures is how many failures make a store gone: one or two may be chance.
	guardFailures = 3
	// guardForgiven is how much of a failure a success makes up for. A call that fails may
	// have used up what it would have granted. So with a store that fails more often than
	// one time in ten, less than nine tenths are served, and processes do better alone.
	guardForgiven = 1.0 / 9
	// guardFirst is for how long a store is not asked after a failure: as long as the
	// default Deadline.
	guardFirst = 50 * time.Millisecond
	// guardBusy is for how long a store is called busy after it last said so.
	guardBusy = time.Second
	// guardProbe and guardProbeMost are the first and the longest pause between probes: a
	// short failure costs little, and a long one is noticed to end within seconds.
	guardProbe     = 200 * time.Millisecond
	guardProbeMost = 5 * time.Second
	// guardPatience is how long a call may take that nobody waits for any more. It is long
	// enough for a new connection.
	guardPatience = time.Second
	// guardSteady is for how many times the last pause a store must have served until pauses
	// are short again. To find out that it is gone takes some 0.3 s, and to begin alone as
	// much: together an eighth of a pause of 5 s at most.
	guardSteady = 10

	// guardClock is within which time a clock that steps twice is one that steps again and again. One
	// that is set right steps once, and so it seems if another server takes over.
	guardClock = time.Minute
	// guardStill is for how long such a clock must not have stepped when the store comes back: of two
	// times that it tells by turns, six probes hear the same one time in thirty.
	guardStill = 6 * guardProbeMost

	// Returns is within which time all processes ask a store again that has come back.
	Returns = guardProbeMost
)

// allows reports whether a call may be made that is no probe.
func (g *guard) allows(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state != Gone && !now.Before(g.after)
}

// enter reports whether a booking may be sent. If not, retry is when to call enter again, and
// probe says that the caller must send a probe.
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

// heard notes how a call ended, and how long it took. probe says that it was a probe.
func (g *guard) heard(err error, took time.Duration, probe bool) {
	if err == nil && took >= g.f.c.Deadline { // requests have stopped waiting for it
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

// served notes an answer in time. If the store is gone, only the answer to a probe changes
// that: of many calls that were under way some may be quick.
func (g *guard) served(now time.Time, took time.Duration, probe bool) {
	if g.met = true; g.trip == 0 {
		g.trip = took
	}
	g.trip += (took - g.trip) / 8
	if g.state == Gone && !probe {
		return
	}
	if g.state == Gone && !g.still(now) {
		g.fails(now, 0, true)
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

// late notes that the requests of a call that began at sent do not wait for it any longer. The
// first calls of a process make connections: until one of them ends, requests go on alone, and
// the call does not count as a failure. The caller calls report when it holds no lock.
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

// ended notes how a call ended that was late.
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

// quick reports whether the store lately answered within an eighth of the time for which
// requests wait.
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

// far reports whether calls take so long that a request which waits for one to end, and then for
// its own, may wait longer than Deadline.
func (g *guard) far() bool { return 3*g.tripTime() > g.f.c.Deadline }
