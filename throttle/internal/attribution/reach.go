package attribution

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	// sureReach is when nobody has to ask any more, and how many more have to be refused than
	// served before all wait. A host that refuses three in ten by chance is then taken for one
	// whose limit is spent once in some 2500 refusals.
	sureReach = 8

	// mostReachGap bounds how many waits are kept by all until one request asks again whether
	// they have to: of a server that asks for a minute it is about an hour.
	mostReachGap = 64

	// mostAgain is how many others are refused in a row when they ask again before all wait
	// again. If half of many were spent by now, the first so many are of these once in eight times.
	mostAgain = 3
)

// A Reach finds out how far the waits reach that refusals ask for: whether who does not
// belong to what was refused is refused as well before the wait is over. The zero Reach
// has seen nothing.
type Reach struct {
	from, heard meter.Instant // when the first was sent, and heard, of the refusals whose waits last
	half, until meter.Instant // when half of the last of these is over, and all of it
	all         bool          // they bind all
	few         int           // how many were served while a wait lasted, less those of others that were refused
	proved      bool          // one who asked was served while a wait lasted, since waits last bound all
	kept, gap   int           // waits that all are to keep until one asks again, and how many these were
}

// Refused takes in that a request sent at sent was told at now to stay away for wait. other
// says that it is for something else than the one that was told so before, and that it was
// sent after what it is for was told so the last time. most is how many others may be refused
// in a row before all have to wait for the first time. Refused reports whether few have to,
// and whether one of the others asks first.
func (r *Reach) Refused(sent, now meter.Instant, wait time.Duration, other bool, most int) (few, asks bool) {
	if now.Sub(r.until) > Remembered {
		*r = Reach{}
	}
	if now >= r.until {
		r.from, r.heard, r.all = sent, now, r.kept > 0
		r.kept = max(0, r.kept-1)
		other = false
	}
	r.half, r.until = max(r.half, now.Add(wait/2)), max(r.until, now.Add(wait))
	if r.gap > 0 {
		most = min(most, mostAgain)
	}
	if !r.all && other && sent >= r.from {
		if r.few--; r.few < -most {
			r.all, r.few, r.proved, r.gap = true, 0, false, min(max(1, 2*r.gap), mostReachGap)
			r.kept = r.gap - 1
		}
	}
	return !r.all, !r.all && r.few < sureReach
}

// Asks is when who was not told to stay away may ask at now whether the wait is theirs, too. If
// others were refused when they asked, or waits bound all before, it is in the first half of the
// wait, or after it: a refusal in the second half costs one more wait, to save less than half of
// one. Once who asked was served, all may go.
func (r *Reach) Asks(now meter.Instant) meter.Instant {
	if (r.few < 0 || r.gap > 0) && !r.proved && r.half <= now && now < r.until {
		return r.until
	}
	return now
}

// All reports whether the waits that last, or lasted last, bind all.
func (r *Reach) All() bool { return r.all }

// Served takes in that a request was served that was sent at sent. It reports whether this
// is the first that asked: then what refusals told of a limit of all is in doubt. In the second
// half of a wait that says nothing: hints are rounded up, and some servers always ask for their
// longest wait.
func (r *Reach) Served(sent meter.Instant) (news bool) {
	if sent <= r.from || sent >= r.half || r.few >= sureReach {
		return false
	}
	if sent >= r.heard { // those sent before did not ask, and may have overtaken the first that was refused
		news, r.proved, r.gap = !r.proved, true, 0
	}
	r.few++
	return news
}
