package attribution

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	// A request that is served while a wait lasts speaks for waits that bind few, and one
	// that is refused speaks three times as much against them: they balance where one in
	// four is refused. A server that refuses single objects, or that refuses by chance, refuses
	// fewer; one whose limit is spent refuses nearly all.
	reachRefused = 3

	// sureReach is when nobody has to ask any more: as long as it takes until a host that
	// refuses a tenth by chance is taken for one whose limit is spent once in some 3000
	// refusals, and then six requests are refused before all wait.
	sureReach = 16

	// mostReachGap bounds how many waits are kept by all until one request asks again whether
	// they have to: of a server that asks for a minute it is about an hour.
	mostReachGap = 64
)

// A Reach finds out how far the waits reach that refusals ask for: whether who does not
// belong to what was refused is refused as well before the wait is over. The zero Reach
// has seen nothing.
type Reach struct {
	from, heard meter.Instant // when the first was sent, and heard, of the refusals whose waits last
	half, until meter.Instant // when half of the last of these is over, and all of it
	all         bool          // they bind all
	few         int           // how much speaks for waits that bind few
	kept, gap   int           // waits that all are to keep until one asks again, and how many these were
}

// Refused takes in that a request sent at sent was told at now to stay away for wait; other
// says that it is for something else than the one that was told so before. It reports whether
// few have to wait, and whether one of the others asks first.
func (r *Reach) Refused(sent, now meter.Instant, wait time.Duration, other bool) (few, asks bool) {
	if now.Sub(r.until) > Remembered {
		*r = Reach{}
	}
	if now >= r.until {
		r.from, r.heard, r.all = sent, now, r.kept > 0
		r.kept = max(0, r.kept-1)
		other = false
	}
	r.half, r.until = max(r.half, now.Add(wait/2)), max(r.until, now.Add(wait))
	switch {
	case r.all, !other || sent < r.from:
	case r.few >= reachRefused:
		r.few -= reachRefused
	default:
		r.all, r.few, r.gap = true, 0, min(max(1, 2*r.gap), mostReachGap)
		r.kept = r.gap - 1
	}
	return !r.all, !r.all && r.few < sureReach
}

// Served takes in that a request was served that was sent at sent. It reports whether this
// is the first that asked, and speaks for waits that bind few. In the second half of a wait
// that says nothing: hints are rounded up, and some servers always ask for their longest wait.
func (r *Reach) Served(sent meter.Instant) (news bool) {
	if sent <= r.from || sent >= r.half || r.few >= sureReach {
		return false
	}
	news = r.few == 0 && sent >= r.heard
	r.few++
	r.gap = 0
	return news
}
