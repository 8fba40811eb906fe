package retry

import (
	"context"
	"time"
)

// A process may stand still: it was stopped by a signal, frozen with its container,
// starved of processor time, or its machine was paused. When it goes on, all its
// timers are overdue, and its sockets hold answers that nobody has read. If an attempt
// ends then, that is not the host's fault. While the whole machine is suspended, the
// clock of timers stands still as well, and only the wall clock goes on.

// latest and tooSoon bound how late a timer may be in a process that runs. A timer is
// late by a few milliseconds as a rule, and by up to 0.1 s where processor time is
// rationed in periods of that length, as it is for containers. For a short timeout a
// quarter of it is the bound, but no less than tooSoon, by which any scheduler may be
// late.
const (
	latest  = 100 * time.Millisecond
	tooSoon = 10 * time.Millisecond
)

// stoodStill reports whether a timer that was set for limit and struck late must
// have been held up.
func stoodStill(late, limit time.Duration) bool {
	return late > min(max(limit/4, tooSoon), latest)
}

// asleep is by how much the wall clock may run ahead of the other between two
// readings although nobody was suspended, because it was set.
const asleep = time.Second

// slept reports whether the machine was suspended, if so much time has passed on the
// wall clock and on the other.
func slept(wall, other time.Duration) bool { return wall-other > asleep }

// aftermath is for how long after a standstill attempts may fail because of it.
// Whatever struck at once has been heard of by then.
const aftermath = time.Second

// heard notes a timer that was to ring at a given time and rings now.
func (p *clocks) heard(at time.Duration) {
	if now := p.now(); stoodStill(now-at, latest*4) {
		p.stood.Store(int64(now))
	}
}

// stoodSince reports whether a standstill that began after an attempt has ended
// just now.
func (p *clocks) stoodSince(begun, now time.Duration) bool {
	end := time.Duration(p.stood.Load())
	return end > begun && end <= now && now-end <= aftermath
}

// frozen reports whether the process stood still while the attempt that has just
// failed was under way, since left. ctx is the caller's.
func (f *flight) frozen(ctx context.Context, left time.Time) bool {
	at := time.Now()
	if slept(at.Round(0).Sub(left.Round(0)), at.Sub(left)) {
		return true
	}
	if d, ok := ctx.Deadline(); ok && ctx.Err() != nil && stoodStill(at.Sub(d), latest*4) {
		return true
	}
	now := at.Sub(f.ctx.clocks.epoch)
	f.ctx.mu.Lock()
	defer f.ctx.mu.Unlock()
	if f.limit > 0 && !f.ctx.expired {
		f.until(now) // its clock has not been heard yet
	}
	return f.ctx.stood || f.ctx.clocks.stoodSince(left.Sub(f.ctx.clocks.epoch), now)
}
