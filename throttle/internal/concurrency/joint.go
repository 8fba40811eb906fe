package concurrency

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A Joint is a limit on requests at a time that the processes of a fleet learn together.
// Each learns from its own answers, and takes over what another one has learned. Its rules
// are those of a [Limit]: a refusal shows how many the host serves, and good answers make
// room for more. A process knows how many requests all have under way, and takes the answers
// to its own for an even part of the answers to all. The zero Joint knows of no limit. Its
// owner guards it.
type Joint struct {
	most  float64       // zero: no limit
	shown bool          // the host refused one more
	full  bool          // as many were under way, since most was changed
	good  float64       // answers to all, since most was changed
	low   float64       // what most was after the last cut
	since meter.Instant // since when all processes count all that are sent
	known bool          // all that are under way were sent since then
	cut   meter.Instant // when it was last cut, or a refusal showed it
}

// Take takes over what all processes agreed on; most is zero if there is no limit.
func (j *Joint) Take(now meter.Instant, most int, shown bool) {
	n := float64(most)
	switch {
	case most == 0:
		*j = Joint{}
		return
	case j.most == 0:
		j.since = now
		fallthrough
	case n < j.most, shown && !j.shown:
		j.cut, j.low = now, n
	}
	j.most, j.shown, j.full, j.good, j.known = n, shown, false, 0, j.known || shown && now >= j.since
}

// Shares reports whether all processes have a limit.
func (j *Joint) Shares() bool { return j.most > 0 }

// Most is that limit, and whether the host refused one more.
func (j *Joint) Most() (n int, shown bool) { return int(j.most), j.shown }

// Alone notes that processes send requests, until that instant at most, which the others do
// not count. What the host showed before that is believed meanwhile.
func (j *Joint) Alone(until meter.Instant) { j.known, j.since = false, until }

// Crowded learns from a request that was sent at sent, and refused as one of n in all
// processes. It was perhaps not the last of them to reach the host, and others may have been
// sent after it: so n is no more than a bound.
func (j *Joint) Crowded(now, sent meter.Instant, n int) {
	if sent < j.cut || !j.known && j.shown {
		return // there were more then, or may have been
	}
	most := min(float64(n), j.most-1)
	if !j.known { // there are more than n
		most = max(most, j.most/2)
	}
	j.Take(now, int(max(1, most)), j.known)
	j.cut, j.low = now, j.most
}

// Answered learns from a good answer to one of so many requests of this process, which was
// sent at sent. Nearly all answers take less than trip. full says that no more than all might
// be under way.
func (j *Joint) Answered(now, sent meter.Instant, trip time.Duration, own, all int, full bool) {
	if j.most == 0 {
		return
	}
	j.known = j.known || sent >= j.since && time.Duration(now-j.since) >= 2*trip
	j.full = j.full || full
	part := float64(max(own, all, 1)) / float64(max(own, 1))
	if j.shown = j.shown && time.Duration(now-j.cut) < ceilingFor; j.shown {
		if j.good += part; j.known && j.full && j.good >= max(16, 4*j.most) {
			j.most, j.good = j.most+1, 0 // perhaps it is more now
		}
		return
	}
	if j.full { // four places for each round trip, or twice as many; but not all at once
		j.most += min(part*max(1, 4/j.most), max(1, j.most/4))
	}
	if j.most >= 4*j.low && time.Duration(now-j.cut) > ceilingFor {
		*j = Joint{}
	}
}

// Crowds reports whether something was refused because others were under way.
func (f *Limit) Crowds() bool { return f.losses != nil && f.crowd != 0 }

// Agree lets f be n, which all processes agreed on; zero: any number.
func (f *Limit) Agree(now meter.Instant, n int) {
	if f.Absolve(); n > 0 {
		f.shrink(now, float64(n), float64(n))
		f.crowd, f.ceiling = now, float64(n)
	}
}

// Patience is for how long a request counts, as far as that is known.
func (f *Limit) Patience() time.Duration { return f.patience() }
