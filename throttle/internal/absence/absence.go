// Package absence says when requests may go that wait for a host which refused all of
// them.
//
// # Words
//
// An [Absence] begins when a host refuses all requests, perhaps because of no limit: it may
// be down. It ends some time after the host is back. A [Crowd] is the requests that have come
// to wait meanwhile.
//
// # How it works
//
// Until the host is back, one request of the crowd is sent from time to time, to find out
// whether it is back: that one asks. The faster requests come, the more often one asks. Once
// the host is back, the crowd goes one request after another, not much faster than it came.
// Otherwise the host would get all of them at once.
//
// # What holds
//
// An absence ends in one of three ways: nobody waits any longer; its owner drops it, because a
// refusal shows that there is a limit; or the time is over in which the crowd has gone, and
// the requests that came behind it meanwhile. The last one is needed because with callers
// that send again after each answer there is always somebody who waits. A nil Absence holds
// nothing back.
//
// There is no clock, no lock and no HTTP here. The owner of an Absence calls one method at a
// time, with instants that do not step back.
package absence

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	// eased is the rate at which the crowd goes, divided by the rate at which it came.
	// Package breaker has the same factor after an outage. Requests that come meanwhile wait
	// behind the crowd, so with a factor of 1 there would be no end; with 2 the host may
	// break down again.
	eased = 4. / 3
	// gapAtMost bounds the time between two of the crowd: every host can serve ten requests
	// a second.
	gapAtMost = 100 * time.Millisecond
	// askShare is how many requests come for each that asks whether the host is back, and
	// askGap is the least time between two that ask. A circuit's probes have the same.
	askShare = 100
	askGap   = 250 * time.Millisecond
	// catchUp is how late a request may go so that the next one goes earlier by as much.
	// Timers are late by a millisecond or two.
	catchUp = 5 * time.Millisecond
)

// An Absence is that of one host; see the package comment. New or Back makes one.
type Absence struct {
	asks meter.Instant // when the next request asks, at the latest; zero: the host is back
	gap  time.Duration // between two requests of the crowd
	next meter.Instant // when the next of the crowd may go
	ends meter.Instant // when nothing is held back any longer
	span time.Duration // by how much of a delay ends may still be put off; see Sent
}

// A Crowd is how many requests came to wait, and within what time. Those that gave up count:
// others will come in their place.
type Crowd struct {
	N      int           // at least 1
	Within time.Duration // from the first to the last of them
}

// New returns the absence of a host that is not back, for a crowd that has come since then.
func New(now, since meter.Instant, c Crowd) *Absence {
	return &Absence{asks: now.Add(max(askGap, askShare*now.Sub(since)/time.Duration(c.N)))}
}

// Back returns the absence of a host that is back: the crowd begins to go now.
func Back(now meter.Instant, c Crowd) *Absence {
	span := float64(c.Within)
	gap := time.Duration(span / eased / float64(c.N))
	return &Absence{gap: min(gap, gapAtMost), next: now, ends: now.Add(time.Duration(span / (eased - 1))), span: c.Within}
}

// At is when the next of waiting requests may go, where the limit that is assumed has room at
// room. While the host is not back, one may go before room, to ask.
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

// Asks is when the next request asks, at the latest, whether the host is back; zero: it is.
func (a *Absence) Asks() meter.Instant { return a.asks }

// Outlook is about when a request may go that comes after ahead others, where the limit has
// room at room.
func (a *Absence) Outlook(now, room meter.Instant, ahead int64) meter.Instant {
	if !a.Releases(now) {
		return room
	}
	return max(room, min(a.ends, max(now, a.next).Add(time.Duration(ahead)*a.gap)))
}

// Releases reports whether the host is back and the crowd goes one request after another.
func (a *Absence) Releases(now meter.Instant) bool { return a != nil && a.asks == 0 && now < a.ends }

// Sent notes that a request of the crowd goes. If it is late by up to catchUp, the next one
// goes earlier. If it is later, because something else held it up, more requests have come
// behind it, so the absence ends later.
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
