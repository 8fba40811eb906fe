package concurrency

import (
	"math"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	firstFlight = 4                      // requests at a time to a host that has not answered yet: few, as all may be refused
	fullFlight  = 64                     // requests at a time, at most, until there were provenGood answers
	provenGood  = 1000                   // after so many good answers the limit is lifted until something goes wrong
	goodPerStep = 5                      // so many good answers make room for one more request at a time
	lentPerOld  = 4                      // each old request makes room for so many more: 24 after the first four
	trickle     = 40 * time.Millisecond  // the first two that go because of old requests are so far apart
	leastTrip   = 200 * time.Millisecond // the least time between two cuts, if round trips are shorter: losses within it have one cause
	leftByLoss  = 0.7                    // how much of what was under way a loss leaves, as in RFC 9438
	ceilingFor  = 10 * time.Minute       // for how long a crowd's number is believed without another crowd, as servers change
)

// A Limit is a learned limit on requests at a time, as TCP's window is one on
// packets. It begins small and grows with each good answer until the host has
// proved itself by provenGood answers. If a round trip takes a second, the limit doubles in
// one; if round trips are short it grows more slowly, because the requests under way when a
// quota is spent are refused. Losses and crowds cut it. It counts requests from their start to
// the headers of their answers, so long streams take no place; and it counts those that are
// under way for far longer than usual only until then. The zero Limit is that of a host
// to which nothing was sent yet. Its owner guards it.
type Limit struct {
	underway
	limit   float64       // zero: firstFlight
	drain   float64       // by how much limit is still to be cut, as requests end
	good    int32         // good answers so far, up to provenGood
	free    bool          // there is no limit
	full    bool          // the limit was reached since the last step
	stated  bool          // the server's limits are known, so that no start has to be slow
	rtt     time.Duration // smoothed time to the headers of good answers
	most    time.Duration // nine of ten good answers take no longer
	*losses               // nil: nothing went wrong yet

	pace  time.Duration // time between requests at the rate that is configured for them; zero: none is
	begun meter.Instant // when the last request started
}

// Allowed is how many requests may be under way, of those that count; zero: no limit.
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

// lent is for how many more requests there is room because of old ones, as long as nothing
// went wrong: an old request was accepted, so others probably would be. With these no more
// than fullFlight are under way, or as many more than the old ones as there were slow good
// answers. A host that has answered may also have twice as many as are old, as refusals would
// have come by now.
func (f *Limit) lent() int {
	most := max(fullFlight-f.old, f.slow)
	if f.heard > 0 {
		most = max(most, f.old+f.gone)
	}
	return int(max(0, min(lentPerOld*(f.old+f.gone), most)))
}

// trusted is how many requests at a time a host may have that has not proved itself. If its
// answers are slow, it may have as many as there are at the same rate if they are quick.
func (f *Limit) trusted() float64 {
	return fullFlight * max(1, f.rtt.Seconds()/leastTrip.Seconds())
}

// Opens is when a request may start if none ends before. If that is not now, it notes that
// the limit was reached.
func (f *Limit) Opens(now meter.Instant) meter.Instant {
	if f.free { // most are, and then this function is inlined
		return now
	}
	return f.opensAt(now)
}

func (f *Limit) opensAt(now meter.Instant) meter.Instant {
	if f.Roomy(now) {
		return now
	}
	if int(f.now) < f.Allowed() {
		return min(f.lends(), f.paced())
	}
	f.full = true
	return min(f.turn(), f.paced(), f.oneMore())
}

// lends is when the next request may go to a host that has not answered any yet, because others are
// old: each a shorter time after the one before, so that twenty go in a seventh of a second. If one is
// refused meanwhile, the rest stay here. Requests at a configured rate need not be as careful.
func (f *Limit) lends() meter.Instant {
	if f.old == 0 || f.good > 0 || f.ease > 0 || f.pace > 0 {
		return 0
	}
	return f.begun.Add(trickle / time.Duration(max(1, f.now)))
}

// paced is when the configured rate has room for the next request. If answers are slow, many
// requests are under way even at a low rate, and a slow start must not hold them below it.
// It is Never if no rate is configured, if answers are not known to be slow, or if something
// went wrong.
func (f *Limit) paced() meter.Instant {
	if f.pace == 0 || f.ease > 0 || f.old == 0 && f.rtt < freshPatience {
		return meter.Never
	}
	return f.begun.Add(f.pace)
}

// Roomy reports whether a request may start.
func (f *Limit) Roomy(now meter.Instant) bool {
	n := f.Allowed()
	if n == 0 || int(f.now) < n && f.lends() <= now {
		return true
	}
	f.age(now)
	return int(f.now) < n && f.lends() <= now || min(f.paced(), f.oneMore()) <= now
}

// Start counts a request that starts now, and returns what End and Unanswered need.
func (f *Limit) Start(now meter.Instant) uint32 {
	gen := f.underway.start(now)
	f.begun = now
	if n := f.Allowed(); n > 0 && int(f.now) >= n {
		f.full = true
	}
	return gen
}

// Alone reports whether others were under way when the last request started, none of which
// had started within the time of an answer before it. If the last one is refused, that is
// then not because of its rate. last is when another request started before it.
func (f *Limit) Alone(now, last meter.Instant) bool {
	others := f.Others()
	if others <= 0 || time.Duration(now-last) < max(f.rtt, 50*time.Millisecond) {
		return false
	}
	f.older = uint8(min(others, math.MaxUint8))
	return true
}

// BesideOthers reports whether some of the requests that were under way when Alone was true
// are under way still. If the request is refused, they may be the reason. If all were answered
// meanwhile they are not: their answers were on their way when it started, as happens if each
// answer lets the next request go.
func (f *Limit) BesideOthers() bool { return f.older > 0 }

// End notes that a request has ended, or that its answer has come. gen is what Start returned.
func (f *Limit) End(gen uint32) {
	if f.older > 0 {
		f.older-- // perhaps another one ends, so BesideOthers may be false too early
	}
	if counted := f.underway.end(gen); f.losses != nil {
		f.shed(counted)
	}
}

// Answered learns from a good answer that took so long. End is called besides.
func (f *Limit) Answered(now meter.Instant, took time.Duration) {
	f.good = min(f.good+1, provenGood)
	if f.losses != nil {
		f.beside = 0
	}
	f.sample(took)
	cut := f.losses != nil && now.Add(-took) < f.cut
	if !cut && f.onlyLost() && f.quickly(took) {
		f.next(now) // those that count again hold up nobody
	}
	f.overtake(now, took, cut)
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
			f.ceiling, f.atIt = f.ceiling+1, 0 // the host may serve one more by now
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
	if f.limit >= 2*f.ease && time.Duration(now-f.cut) > 10*time.Second {
		f.ease, f.free, f.firmer = 0, f.good >= provenGood, 0
		f.limit = min(f.limit, fullFlight)
	}
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
		f.most = max(rtt, f.most-f.step())
	}
}

// slower learns that an answer takes longer than most. It raises most nine times as much as a
// quicker answer lowers it, however long it took, so that nine of ten are quicker.
func (f *Limit) slower(rtt time.Duration) { f.most = min(rtt, f.most+9*f.step()) }

// step is by how much a good answer lowers most. It is a smaller part with the number of good
// answers, so that the first ones move most further.
func (f *Limit) step() time.Duration {
	const least = 32
	if f.good >= least-1 {
		return f.most / least // the compiler divides by what it knows far sooner
	}
	return f.most / time.Duration(max(f.good, 1)+1)
}

// Usual is what nearly all good answers take: a quarter longer than nine of ten; zero:
// not known. A few that take far longer hardly change it, so that callers with little time
// are not refused because of these.
func (f *Limit) Usual() time.Duration { return f.most + f.most/4 }

// Idle reports that nothing that still matters would be lost if f were dropped: no request is
// under way, and nothing went wrong in the last minute.
func (f *Limit) Idle(now meter.Instant) bool {
	return f.UnderWay() == 0 && (f.ease == 0 || time.Duration(now-f.cut) >= time.Minute)
}
