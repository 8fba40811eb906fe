package concurrency

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// losses is what a Limit knows of what went wrong.
type losses struct {
	cut     meter.Instant // when the limit was last cut
	ask     meter.Instant // from when on one more may start beside those that count again; zero: a crowd came later
	part    float64       // by how much the limit is cut with each request that ends
	burst   bool          // the request that ends next failed together with the first one
	crowd   meter.Instant // when a request was last refused because of others under way
	ceiling float64       // how many at a time a crowd showed that the host serves; zero: not known
	atIt    int           // good answers since then
	beside  int           // requests that were under way then, less those refused since; zero: one had a good answer, or none is left
}

// Lost learns from a request that the host could not serve in time. The limit shrinks by
// three tenths, once for all requests that were under way together. It does so step by step
// as these end, as in RFC 6937, so that a loss leaves room for all that are under way and count. What
// is left to cut of the loss before, and room that was lent, go with these steps. Nor has a call to
// wait for the end of a long poll because others failed: see oneMore. Requests that fail together
// with the first one free no place for others. said is how long the host took to answer that it
// could not; zero: it did not answer.
func (f *Limit) Lost(now meter.Instant, said time.Duration) {
	apart, ask := max(leastTrip, min(f.rtt, time.Second)), now.Add(freshPatience)
	if said > 0 {
		apart, ask = max(leastTrip/10, min(f.rtt, said)), now.Add(f.Patience())
	}
	if f.losses != nil && time.Duration(now-f.cut) < apart {
		f.ask = ask
		f.burst = true
		return
	}
	room := f.Allowed()
	f.recount(now)
	n := float64(max(1, f.now))
	if room > 0 {
		n = min(n, float64(room))
	}
	left := n
	switch {
	case f.free:
	case f.limit == 0:
		left = min(n, firstFlight)
	default:
		left = min(n, f.limit-f.drain)
	}
	f.shrink(now, n, max(1, leftByLoss*left))
	f.ask = ask
}

// shed cuts the limit by one step, if a request has ended that counted.
func (f *Limit) shed(counted bool) {
	step := min(f.part, f.drain)
	if f.burst {
		step = min(1, f.drain)
	}
	if f.burst = false; counted {
		f.limit, f.drain = f.limit-step, f.drain-step
	}
}

// onlyLost reports whether requests that were old may count again, and only because of losses.
// A crowd is another matter, because it shows how many the host serves, whatever these are.
func (f *Limit) onlyLost() bool {
	return f.firmer > 0 && f.losses != nil && f.ask > 0 && f.ceiling == 0
}

// oneMore is when one more request may start beside those that count again; Never if others are
// under way. They may be long polls, and no call has to wait for the end of these, however many
// failed before it. After a host's word that it cannot serve more, which may be because of
// these, that takes a patience. Without one it takes as long as a refusal may take.
func (f *Limit) oneMore() meter.Instant {
	if f.onlyLost() && f.now == f.late[spans-2] {
		return f.ask
	}
	return meter.Never
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
	f.cut, f.ask, f.part, f.burst = now, 0, f.drain/f.limit, false
}
