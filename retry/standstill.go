package retry

import (
	"context"
	"time"
)

// A process that stood still (it was stopped by a signal, frozen with its
// container, starved of processor time, or its machine was paused) finds all its
// timers overdue when it goes on, and answers in its sockets that nobody has
// read. What ends then is not the host's fault. The clocks of timers stand still
// only with the whole machine, as in suspend: the wall's alone goes on.

// How late a timer of a process that runs may be: a few milliseconds as a rule,
// up to a tenth of a second where processor time is rationed by the 0.1 s, as
// containers' is. Short timeouts are all over within less, so that a quarter of
// one counts, but not what any scheduler may do.
const (
	latest  = 100 * time.Millisecond
	tooSoon = 10 * time.Millisecond
)

// stoodStill reports whether a timer that was set for limit and struck late must
// have been held up.
func stoodStill(late, limit time.Duration) bool {
	return late > min(max(limit/4, tooSoon), latest)
}

// asleep is by how much the wall's clock may run ahead of the other between two
// readings, as when it is set: then nobody was suspended.
const asleep = time.Second

// slept reports whether the machine was suspended while so much time passed on
// the wall's clock and on the other.
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
	if f.limit > 0 && !f.expired {
		f.until(now) // its clock has not been heard yet
	}
	return f.stood || f.ctx.clocks.stoodSince(left.Sub(f.ctx.clocks.epoch), now)
}
