package concurrency

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// losses is what a Limit knows of what went wrong.
type losses struct {
	cut     meter.Instant // when the limit was last cut
	crowd   meter.Instant // when a request was last refused because of others under way
	ceiling float64       // how many at a time a crowd showed that the host serves; zero: not known
	atIt    int           // good answers since then
	beside  int           // requests that were under way then, less those refused since; zero: one had a good answer, or none is left
}

// Lost learns from a request that the host could not serve in time. The limit shrinks by
// three tenths, once for all requests that were under way together. It does so step by step
// as these end, as in RFC 6937, so that it is never lower than what is under way: no call has
// to wait for the end of a long poll because another call failed. Requests that fail together
// with the first one free no place for others. said is how long the host took to answer that
// it could not; zero: it did not answer.
func (f *Limit) Lost(now meter.Instant, said time.Duration) {
	apart := max(leastTrip, min(f.rtt, time.Second))
	if said > 0 {
		apart = max(leastTrip/10, min(f.rtt, said))
	}
	if f.losses != nil && time.Duration(now-f.cut) < apart {
		f.shed(1)
		return
	}
	f.shed(f.drain) // the cut before is completed first
	f.recount(now)
	n := float64(max(1, f.now))
	switch {
	case f.free:
	case f.limit == 0:
		n = min(n, firstFlight)
	default:
		n = max(1, min(n, f.limit))
	}
	f.shrink(now, n, max(1, leftByLoss*n))
}

// Unanswered learns from a request that ended without an answer after took; gen is what Start
// returned for it. If others were answered that were sent later, it is no loss but a slow
// answer: if only requests counted that are answered before their callers' deadlines, a host
// would seem quicker than it is. Otherwise it is a loss if it failed.
func (f *Limit) Unanswered(now meter.Instant, gen uint32, took time.Duration, failed bool) {
	switch {
	case !f.overtaken(gen):
		if failed {
			f.Lost(now, 0)
		}
	case took > f.most:
		f.slower(took)
	}
}

// Absolve takes back all cuts, because their reason proved not to be load.
func (f *Limit) Absolve() {
	f.ease, f.drain, f.losses = 0, 0, nil
	f.free = f.stated || f.good >= provenGood
}

// Crowded learns from a request, sent at sent, that was refused because others were under
// way: the host serves as many as these at a time.
func (f *Limit) Crowded(now, sent meter.Instant) {
	again := f.losses != nil && sent < f.cut
	if again && f.beside > 0 {
		if f.beside--; f.beside == 0 { // all of them were refused: the host served none
			f.crowd, f.ceiling = 0, 0
		} else if f.heard > 0 {
			f.narrow(float64(f.beside)) // the host serves no more than those that are not refused
		}
	}
	if again && f.heard > 0 {
		return // perhaps fewer are under way because some were answered
	}
	early := f.Silent() || again
	f.recount(now)
	n := max(1, int(f.now)-1)
	if a := f.Allowed(); a > 0 {
		n = min(n, a)
	}
	f.shrink(now, float64(n), float64(n))
	if !early { // else it may have been a rate: the next answers will tell
		f.beside = int(f.now) - 1
		f.crowd, f.ceiling, f.atIt = now, float64(n), 0
	}
}

// narrow lowers the limit, what it is to be cut to, and the ceiling to n.
func (f *Limit) narrow(n float64) {
	if n < f.limit {
		f.drain = max(0, n-(f.limit-f.drain))
		f.limit, f.ease, f.ceiling = n, min(f.ease, n), min(f.ceiling, n)
	}
}

// Silent reports that requests seem to be accepted, but that none was answered yet. A refusal
// then came too early to be because of a rate.
func (f *Limit) Silent() bool { return f.heard == 0 && f.old > 0 }

// Tight reports whether as many are under way as a crowd lately showed that the host serves
// at a time, or more.
func (f *Limit) Tight() bool {
	return f.losses != nil && f.ceiling > 0 && float64(f.now) >= f.ceiling
}

// shrink sets the limit, which is to be cut to to as requests end.
func (f *Limit) shrink(now meter.Instant, limit, to float64) {
	f.limit, f.drain, f.free, f.full = limit, limit-to, false, false
	f.ease = max(1, to)
	if f.losses == nil {
		f.losses = new(losses)
	}
	f.cut = now
}
