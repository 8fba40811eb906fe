package concurrency

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A Joint is a limit on requests at a time that the processes of a fleet learn together.
// Each process learns from its own answers, and takes over what another one has learned. The
// rules are those of a [Limit]: a refusal shows how many the host serves, and good answers
// make room for more. A process knows how many requests all processes have under way. It
// assumes that the others get as many answers for each of their requests as it gets itself.
// The zero Joint has no limit. Its owner guards it.
type Joint struct {
	most  float64       // the limit; zero: none
	shown bool          // the host refused one request more
	full  bool          // so many were under way, since most was changed
	good  float64       // good answers to all processes, since most was changed
	low   float64       // what most was after the last cut
	since meter.Instant // since when each process counts the requests of all
	known bool          // all requests under way were sent since then
	cut   meter.Instant // when it was last cut, or shown by a refusal
}

// Take takes over the limit on which all processes agreed; most is zero if there is none.
// shown says that the host refused one request more.
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

// Most is the limit, and whether the host refused one request more; zero: there is none.
func (j *Joint) Most() (n int, shown bool) { return int(j.most), j.shown }

// Alone notes that some processes send requests, until that instant at most, which the others
// do not count. Refusals do not change what the host has shown until then.
func (j *Joint) Alone(until meter.Instant) { j.known, j.since = false, until }

// Crowded learns from a request that was sent at sent and refused as one of n in all
// processes. Some of these may have reached the host after it, and others may have been sent
// after it. So the host serves n at a time at most, and perhaps fewer: one fewer for each request
// that was under way at the last cut and is refused, too.
func (j *Joint) Crowded(now, sent meter.Instant, n int) {
	switch {
	case sent < j.cut && j.known && j.shown && j.most > 1:
		j.most-- // each process counts its own refusals, and takes over what others have counted
		j.low = min(j.low, j.most)
		return
	case sent < j.cut || !j.known && j.shown:
		return // more were under way when it was sent, or may have been
	}
	most := min(float64(n), j.most-1)
	if !j.known { // more than n may be under way
		most = max(most, j.most/2)
	}
	j.Take(now, int(max(1, most)), j.known)
	j.cut, j.low = now, j.most
}

// Answered learns from a good answer to a request that was sent at sent. This process had own
// requests under way, and all processes had all. Nearly all answers take less than trip. full
// says that the limit allowed no more than these. What was sent before the last cut does not show
// that there is room for more than was left then.
func (j *Joint) Answered(now, sent meter.Instant, trip time.Duration, own, all int, full bool) {
	if j.most == 0 {
		return
	}
	j.known = j.known || sent >= j.since && time.Duration(now-j.since) >= 2*trip
	j.full = j.full || full
	part := float64(max(own, all, 1)) / float64(max(own, 1))
	if j.shown = j.shown && time.Duration(now-j.cut) < ceilingFor; j.shown {
		if j.good += part; j.known && j.full && j.good >= max(16, 4*j.most) {
			j.most, j.good = j.most+1, 0 // the host may serve one more by now
		}
		return
	}
	if j.full && sent >= j.cut { // four places in each round trip, or a doubling; but no more than a quarter at once
		j.most += min(part*max(1, 4/j.most), max(1, j.most/4))
	}
	if j.most >= 4*j.low && time.Duration(now-j.cut) > ceilingFor {
		*j = Joint{}
	}
}

// Crowds reports whether a request was refused because others were under way.
func (f *Limit) Crowds() bool { return f.losses != nil && f.crowd != 0 }

// Agree sets f to n, on which all processes agreed; zero: there is no limit.
func (f *Limit) Agree(now meter.Instant, n int) {
	if f.Absolve(); n > 0 {
		f.shrink(now, float64(n), float64(n))
		f.crowd, f.ceiling = now, float64(n)
	}
}
