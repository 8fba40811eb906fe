package concurrency

import (
	"math"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	firstFlight = 4                      // requests at a time to a host that has not answered yet
	fullFlight  = 64                     // at a time, until provenGood answers
	provenGood  = 1000                   // good answers after which only losses limit
	goodPerStep = 5                      // good answers that make room for one more request at a time
	lentPerOld  = 4                      // more at a time for each that does not count any more: 24 after the first four
	leastTrip   = 200 * time.Millisecond // between two cuts, when round trips are shorter
	leftByLoss  = 0.7                    // of what was under way, as in RFC 9438
	ceilingFor  = 10 * time.Minute       // is what a crowd showed believed without another
)

// A Limit is a learned limit on requests at a time, as TCP's window is one on
// packets. It begins small and grows with each good answer until the host has
// proved itself: twofold per round trip if one takes a second, more gently if
// many fit into one, because what is under way when a quota ends is refused.
// What goes wrong cuts it. It counts requests from their start to the headers of
// their answers, so long streams take no place, and those that are under way for
// far longer than usual only until then. The zero Limit is that of a host
// never met. Its owner guards it.
type Limit struct {
	underway
	limit   float64       // zero: firstFlight
	drain   float64       // by how much limit is still to be cut
	good    int32         // good answers so far, up to provenGood
	free    bool          // proved: no limit
	full    bool          // the limit was reached since the last step
	stated  bool          // the server's limits are known, so that no start has to be slow
	rtt     time.Duration // smoothed time to the headers of good answers
	most    time.Duration // what nine of ten good answers take at most
	*losses               // nil: none yet

	pace  time.Duration // between requests at the rate that is configured for them; zero: none is
	begun meter.Instant // when the last request started
}

// losses is what a Limit knows of what went wrong.
type losses struct {
	cut     meter.Instant
	last    meter.Instant
	crowd   meter.Instant // the last refusal because of others under way
	ceiling float64       // how many the host was seen to serve at a time; zero: not seen
	atIt    int           // good answers since
	beside  int           // that were under way then, less those refused since; zero: one was answered well, or none is left
}

// Allowed is how many may be under way, of those that count; zero: no limit.
func (f *Limit) Allowed() int {
	switch {
	case f.free:
		return 0
	case f.limit == 0:
		return firstFlight + f.lent()
	case f.ease == 0:
		return max(1, int(f.limit)) + f.lent()
	case f.drain > 0:
		return int(math.Ceil(f.limit))
	}
	return max(1, int(f.limit))
}

// lent is for how many more there is room as long as nothing went wrong: each
// request that does not count any more was accepted, and shows that others would
// be. With it no more than fullFlight are under way, as with good answers, or as many
// more as were answered well though they took as long. A host that has answered may also
// have twice as many as it accepted: refusals would have come by now.
func (f *Limit) lent() int {
	most := max(fullFlight-f.old, f.slow)
	if f.heard > 0 {
		most = max(most, f.old+f.gone)
	}
	return int(max(0, min(lentPerOld*(f.old+f.gone), most)))
}

// trusted is how many at a time a host may have that has not proved itself: where
// answers are slow, as many as are under way at the rate of one that is quick.
func (f *Limit) trusted() float64 {
	return fullFlight * max(1, f.rtt.Seconds()/leastTrip.Seconds())
}

// Opens is when a request may start if none ends before, and notes if that is
// not now.
func (f *Limit) Opens(now meter.Instant) meter.Instant {
	if f.free { // most are: it costs them no call
		return now
	}
	return f.opensAt(now)
}

func (f *Limit) opensAt(now meter.Instant) meter.Instant {
	if f.Roomy(now) {
		return now
	}
	f.full = true
	return min(f.turn(), f.paced())
}

// paced is when the configured rate has room for the next request. A slow start
// does not hold requests below that rate where answers are slow: there, all that
// the rate lets through are under way at a time. Never where no rate is
// configured, where answers are not known to be slow, or where something went wrong.
func (f *Limit) paced() meter.Instant {
	if f.pace == 0 || f.ease > 0 || f.old == 0 && f.rtt < freshPatience {
		return meter.Never
	}
	return f.begun.Add(f.pace)
}

// Roomy reports whether a request may start.
func (f *Limit) Roomy(now meter.Instant) bool {
	n := f.Allowed()
	if n == 0 || int(f.now) < n {
		return true
	}
	f.age(now)
	return int(f.now) < n || f.paced() <= now
}

// Start counts a request and returns what end wants to know.
func (f *Limit) Start(now meter.Instant) uint32 {
	gen := f.underway.start(now)
	f.begun = now
	if n := f.Allowed(); n > 0 && int(f.now) >= n {
		f.full = true
	}
	return gen
}

// Alone reports whether the request that has just started did so while others were
// under way, none of which started in the time of an answer before; last is when
// another started.
func (f *Limit) Alone(now, last meter.Instant) bool {
	others := f.Others()
	if others <= 0 || time.Duration(now-last) < max(f.rtt, 50*time.Millisecond) {
		return false
	}
	f.older = uint8(min(others, math.MaxUint8))
	return true
}

// BesideOthers reports whether some of those that were under way when the last request
// started alone are so still: if it is refused, they may be why. They are not if all were
// answered meanwhile: they were on their way back when it started, as where each answer
// lets the next request go.
func (f *Limit) BesideOthers() bool { return f.older > 0 }

// End ends what start began.
func (f *Limit) End(gen uint32) {
	if f.older > 0 {
		f.older-- // perhaps it is a later one that ends
	}
	f.underway.end(gen)
	f.shed(1 - leftByLoss)
}

// shed lowers the limit by at most that much, if it is still to be cut.
func (f *Limit) shed(most float64) {
	if f.drain > 0 {
		d := min(f.drain, most)
		f.limit -= d
		f.drain -= d
	}
}

// Answered learns from a good answer that took so long.
func (f *Limit) Answered(now meter.Instant, took time.Duration) {
	f.good = min(f.good+1, provenGood)
	if f.losses != nil {
		f.beside = 0
	}
	f.sample(took)
	f.overtake(now, took, f.losses != nil && now.Add(-took) < f.cut)
	f.took(took)
	if f.free {
		return
	}
	if f.limit == 0 {
		f.limit = firstFlight
	}
	if f.ease == 0 {
		f.limit += min(1, max(1.0/goodPerStep, f.rtt.Seconds()))
		f.limit = min(f.limit, f.trusted())
		f.free = f.stated || f.good >= provenGood
		return
	}
	if f.ceiling > 0 {
		f.limit = min(f.limit+1/f.limit, f.ceiling)
		if f.atIt++; f.full && float64(f.atIt) >= max(16, 4*f.ceiling) {
			f.ceiling, f.atIt = f.ceiling+1, 0 // perhaps it is more now
		}
		if time.Duration(now-f.crowd) > ceilingFor {
			f.ceiling = 0
		}
		return
	}
	if f.full {
		// Four places per round trip: each answer of a full window adds its part.
		f.limit += 4 / f.limit
	}
	if f.limit >= 2*f.ease && time.Duration(now-f.last) > 10*time.Second {
		f.ease, f.free, f.firmer = 0, f.good >= provenGood, 0
		f.limit = min(f.limit, fullFlight)
	}
}

// Lost learns from a request that the host could not serve in time: the window
// shrinks by three tenths, once for all that were under way together. It does so
// as they end, as in RFC 6937, so that it is never smaller than what is under
// way: nobody waits for the end of a long poll because another call failed. Those
// that fail with it free no place for others.
// said is how long the host took to say so itself; zero: it did not.
func (f *Limit) Lost(now meter.Instant, said time.Duration) {
	apart := max(leastTrip, min(f.rtt, time.Second))
	if said > 0 {
		apart = max(leastTrip/10, min(f.rtt, said))
	}
	if f.losses != nil && time.Duration(now-f.cut) < apart {
		f.shed(1)
		return
	}
	f.shed(f.drain) // the last was not the only one
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

// Unanswered learns from a request that ended without an answer after so long, and what Start
// returned of it. If it hung while others did not, it is no loss, but a slow one: if only
// those were counted that are answered before their callers' deadlines, a host would seem
// quicker than it is. Else it is lost if it failed.
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

// Absolve takes back all cuts: what they were for does not come from load.
func (f *Limit) Absolve() {
	f.ease, f.drain, f.losses = 0, 0, nil
	f.free = f.stated || f.good >= provenGood
}

// Few reports whether no more than two are allowed at a time, or will be.
func (f *Limit) Few() bool { return !f.free && f.limit > 0 && f.limit-f.drain < 3 }

// Crowded learns from a request that was refused because others were under
// way: those are what the host serves at a time.
func (f *Limit) Crowded(now, sent meter.Instant) {
	again := f.losses != nil && sent < f.cut
	if again && f.beside > 0 {
		if f.beside--; f.beside == 0 { // all of them were refused: the host served none
			f.crowd, f.ceiling = 0, 0
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

// Silent reports that requests were accepted, as it seems, but none was answered
// Answered yet. What is refused then came too early to tell of a rate.
func (f *Limit) Silent() bool { return f.heard == 0 && f.old > 0 }

// Tight reports whether more are under way than the host was lately seen to
// serve at a time.
func (f *Limit) Tight() bool {
	return f.losses != nil && f.ceiling > 0 && float64(f.now) >= f.ceiling
}

// shrink sets the limit, which is to be cut to another.
func (f *Limit) shrink(now meter.Instant, limit, to float64) {
	f.limit, f.drain, f.free, f.full = limit, limit-to, false, false
	f.ease = max(1, to)
	if f.losses == nil {
		f.losses = new(losses)
	}
	f.cut, f.last = now, now
}

func (f *Limit) sample(rtt time.Duration) {
	if rtt <= 0 {
		return
	}
	if f.rtt == 0 {
		f.rtt, f.most = rtt, rtt
		return
	}
	f.rtt += (rtt - f.rtt) / 8
	if rtt > f.most {
		f.slower(rtt)
	} else {
		f.most = max(rtt, f.most-f.most/f.known())
	}
}

// slower learns that an answer takes longer than nine of ten did. One such counts for
// nine that do not, however much longer it is.
func (f *Limit) slower(rtt time.Duration) { f.most = min(rtt, f.most+9*(f.most/f.known())) }

// known is by how many answers most was found: the first ones say more.
func (f *Limit) known() time.Duration { return time.Duration(min(max(f.good, 1), 31)) + 1 }

// Usual is what nearly all good answers take, a quarter longer than nine of ten; zero:
// not known. That a few take far longer does not change it: callers with little time
// are not refused for these.
func (f *Limit) Usual() time.Duration { return f.most + f.most/4 }

// Idle reports that forgetting f loses nothing that still matters.
func (f *Limit) Idle(now meter.Instant) bool {
	return f.UnderWay() == 0 && (f.ease == 0 || time.Duration(now-f.last) >= time.Minute)
}
