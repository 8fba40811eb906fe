package throttle

import "time"

const (
	firstFlight = 4                      // requests at a time to a host that has not answered yet
	fullFlight  = 64                     // at a time, until provenGood answers
	provenGood  = 1000                   // good answers after which only losses limit
	goodPerStep = 5                      // good answers that make room for one more request at a time
	leastTrip   = 200 * time.Millisecond // between two cuts, when round trips are shorter
)

// A slowStart is a learned limit on requests at a time, as TCP's window is one on
// packets. It begins small and grows with each good answer until the host has
// proved itself: twofold per round trip if one takes a second, more gently if
// many fit into one, because what is under way when a quota ends is refused.
// What goes wrong cuts it. It counts requests from their start
// to the headers of their answers, so long streams take no place. The zero
// slowStart is that of a host never met. Its owner guards it.
type slowStart struct {
	limit   float64       // zero: firstFlight
	now     int           // under way
	good    int           // good answers so far
	free    bool          // proved: no limit
	ease    float64       // limit at the last loss; growth slows down above 0.7 of it. Zero: never lost
	rtt     time.Duration // smoothed time to the headers of good answers
	off     time.Duration // mean distance from it
	full    bool          // the limit was reached since the last step
	*losses               // nil: none yet

	stated bool // the server's limits are known, so that no start has to be slow
}

// losses is what a slowStart knows of what went wrong.
type losses struct {
	cut     time.Time
	last    time.Time
	crowd   time.Time // the last refusal because of others under way
	ceiling float64   // how many the host was seen to serve at a time; zero: not seen
	atIt    int       // good answers since
}

// allowed is how many requests may be under way; zero: no limit.
func (f *slowStart) allowed() int {
	switch {
	case f.free:
		return 0
	case f.limit == 0:
		return firstFlight
	}
	return max(1, int(f.limit))
}

// room reports whether a request may start, and notes if not.
func (f *slowStart) room() bool {
	roomy := f.roomy()
	f.full = f.full || !roomy
	return roomy
}

// roomy is room for those who only ask.
func (f *slowStart) roomy() bool {
	n := f.allowed()
	return n == 0 || f.now < n
}

// well learns from a good answer that took so long.
func (f *slowStart) well(now instant, took time.Duration) {
	f.good++
	f.sample(took)
	if f.free {
		return
	}
	if f.limit == 0 {
		f.limit = firstFlight
	}
	if f.ease == 0 {
		f.limit += min(1, max(1.0/goodPerStep, f.rtt.Seconds()))
		if f.limit > fullFlight {
			f.limit = fullFlight
		}
		f.free = f.stated || f.good >= provenGood
		return
	}
	if f.ceiling > 0 {
		f.limit = min(f.limit+1/f.limit, f.ceiling)
		if f.atIt++; f.full && float64(f.atIt) >= max(16, 4*f.ceiling) {
			f.ceiling, f.atIt = f.ceiling+1, 0 // perhaps it is more now
		}
		if now.time().Sub(f.crowd) > forgetRate {
			f.ceiling = 0
		}
		return
	}
	if f.full {
		// Four places per round trip: each answer of a full window adds its part.
		f.limit += 4 / f.limit
	}
	if f.limit >= 2*f.ease && now.time().Sub(f.last) > 10*time.Second {
		f.ease, f.free = 0, f.good >= provenGood
		f.limit = min(f.limit, fullFlight)
	}
}

// lost learns from a request that the host could not serve in time: the window
// shrinks by three tenths, once for all that was under way together.
// quick tells that the host said so itself, at once.
func (f *slowStart) lost(now time.Time, quick bool) {
	under := f.now
	apart := max(leastTrip, min(f.rtt, time.Second))
	if quick {
		apart = max(leastTrip/10, f.rtt)
	}
	if f.losses != nil && now.Sub(f.cut) < apart {
		return
	}
	if n := f.allowed(); n > 0 && n < under {
		under = n
	}
	f.shrink(now, max(1, 0.7*float64(under)))
}

// crowded learns from a request that was refused because others were under
// way: those are what the host serves at a time.
func (f *slowStart) crowded(now, sent time.Time) {
	if f.losses != nil && sent.Before(f.cut) {
		return
	}
	n := max(1, f.now-1)
	if a := f.allowed(); a > 0 {
		n = min(n, a)
	}
	f.shrink(now, float64(n))
	f.crowd, f.ceiling, f.atIt = now, float64(n), 0
}

// tight reports whether more are under way than the host was lately seen to
// serve at a time.
func (f *slowStart) tight() bool {
	return f.losses != nil && f.ceiling > 0 && float64(f.now) >= f.ceiling
}

func (f *slowStart) shrink(now time.Time, limit float64) {
	f.limit, f.free, f.full = limit, false, false
	f.ease = max(1, limit)
	if f.losses == nil {
		f.losses = new(losses)
	}
	f.cut, f.last = now, now
}

func (f *slowStart) sample(rtt time.Duration) {
	if rtt <= 0 {
		return
	}
	if f.rtt == 0 {
		f.rtt = rtt
		return
	}
	f.off += ((rtt - f.rtt).Abs() - f.off) / 8
	f.rtt += (rtt - f.rtt) / 8
}

// usual is what nearly all good answers take; zero: not known.
func (f *slowStart) usual() time.Duration { return f.rtt + 2*f.off }

// idle reports that forgetting f loses nothing that still matters.
func (f *slowStart) idle(now time.Time) bool {
	return f.now == 0 && (f.losses == nil || now.Sub(f.last) > time.Minute)
}
