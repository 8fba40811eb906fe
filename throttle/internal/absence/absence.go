// Package absence lets those go who waited for a host that refused everybody.
//
// # Words
//
// An [Absence] is the time in which a host refuses all who call it, perhaps for no limit of
// theirs: it may be down. A [Crowd] is those who have come to wait meanwhile.
//
// # How it works
//
// Until the host is back one of the crowd asks now and then, the sooner the faster they come.
// Once it is back, they are let go one after another, not much faster than they came, as it
// would get all of them at once.
//
// # What holds
//
// An absence ends: when nobody waits, when its owner drops it because a refusal shows that
// there is a limit, or when those who waited have gone, and as many as will have come by then,
// as callers that come again with each answer always wait. A nil Absence holds nobody.
//
// There is no clock, no lock and no HTTP here. Its owner guards an Absence, and passes
// instants that do not step back.
package absence

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	// eased is how fast those are let go who waited, over how fast they came. The host
	// gets a third more than it was asked for while it was away, as package breaker has
	// it after an outage. Those who come meanwhile wait behind, so at the rate at which
	// they come there would be no end, and twice as many may bring the host down again.
	eased = 4. / 3
	// gapAtMost is how far apart they go at most: no host minds ten a second.
	gapAtMost = 100 * time.Millisecond
	// askShare is how many come for each that asks whether the host is back, and askGap
	// the least time between two: as of a circuit's probes.
	askShare = 100
	askGap   = 250 * time.Millisecond
	// catchUp is by how much who goes may be late, and the next one makes up for it: timers
	// are late by a millisecond or two.
	catchUp = 5 * time.Millisecond
)

// An Absence is one of one host, see the package comment.
type Absence struct {
	asks meter.Instant // when one asks at the latest; zero: the host is back
	gap  time.Duration // between two that are let go
	next meter.Instant
	ends meter.Instant
	span time.Duration // of what holds them up meanwhile, so much at most makes it longer
}

// A Crowd is how many came to wait, at least one, and within what time. Those who gave up are
// among them: others will come in their place.
type Crowd struct {
	N      int
	Within time.Duration
}

// New is one in which these have come since then.
func New(now, since meter.Instant, c Crowd) *Absence {
	return &Absence{asks: now.Add(max(askGap, askShare*now.Sub(since)/time.Duration(c.N)))}
}

// Back is the absence of a host that is back for these.
func Back(now meter.Instant, c Crowd) *Absence {
	span := float64(c.Within)
	gap := time.Duration(span / eased / float64(c.N))
	return &Absence{gap: min(gap, gapAtMost), next: now, ends: now.Add(time.Duration(span / (eased - 1))), span: c.Within}
}

// At is when one of so many that wait may go, if a limit that is believed in has room
// then. Whether there is one is found out by those that ask.
func (a *Absence) At(now, room meter.Instant, waiting int) meter.Instant {
	switch {
	case waiting == 0:
	case a.Releases(now):
		return max(room, a.next)
	case a != nil && a.asks != 0:
		return min(room, max(now, a.asks))
	}
	return room
}

// Asks is when one asks at the latest whether the host is back; zero: it is.
func (a *Absence) Asks() meter.Instant { return a.asks }

// Outlook is about when one may go after ahead others, if the limit has room then.
func (a *Absence) Outlook(now, room meter.Instant, ahead int64) meter.Instant {
	if !a.Releases(now) {
		return room
	}
	return max(room, min(a.ends, max(now, a.next).Add(time.Duration(ahead)*a.gap)))
}

// Releases reports whether those who waited go one after another.
func (a *Absence) Releases(now meter.Instant) bool { return a != nil && a.asks == 0 && now < a.ends }

// Sent notes that one goes. If that is late, as timers are, the next makes up for it. If
// something else held it up, more have come than were reckoned with.
func (a *Absence) Sent(now meter.Instant) {
	if !a.Releases(now) {
		return
	}
	if late := min(now.Sub(a.next)-catchUp, a.span); late > 0 {
		a.span -= late
		a.ends = a.ends.Add(time.Duration(float64(late) * eased / (eased - 1)))
	}
	a.next = max(a.next, now.Add(-min(catchUp, a.gap))).Add(a.gap)
}
