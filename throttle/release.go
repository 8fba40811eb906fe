package throttle

import "time"

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

// An absence is a time in which a host refuses everybody, perhaps for no limit of theirs:
// it may be down. Then one of them asks now and then. Once the host is back, they are let
// go not much faster than they came, as it would get all of them at once. That is over
// when nobody waits, when a refusal shows that there is a limit, or when those who waited
// have gone, and as many as will have come by then: callers that come again with each
// answer always wait. No absence holds nobody. Its owner guards it.
type absence struct {
	asks instant       // when one asks at the latest; zero: the host is back
	gap  time.Duration // between two that are let go
	next instant
	ends instant
	span time.Duration // of what holds them up meanwhile, so much at most makes it longer
}

// A crowd is how many came to wait, at least one, and within what time. Those who gave up are
// among them: others will come in their place.
type crowd struct {
	n      int
	within time.Duration
}

// newAbsence is one in which these have come since then.
func newAbsence(now, since instant, c crowd) *absence {
	return &absence{asks: now.Add(max(askGap, askShare*now.Sub(since)/time.Duration(c.n)))}
}

// returned is the absence of a host that is back for these.
func returned(now instant, c crowd) *absence {
	span := float64(c.within)
	gap := time.Duration(span / eased / float64(c.n))
	return &absence{gap: min(gap, gapAtMost), next: now, ends: now.Add(time.Duration(span / (eased - 1))), span: c.within}
}

// at is when one of so many that wait may go, if a limit that is believed in has room
// then. Whether there is one is found out by those that ask.
func (a *absence) at(now, room instant, waiting int) instant {
	switch {
	case waiting == 0:
	case a.releases(now):
		return max(room, a.next)
	case a != nil && a.asks != 0:
		return min(room, max(now, a.asks))
	}
	return room
}

// outlook is about when one may go after ahead others, if the limit has room then.
func (a *absence) outlook(now, room instant, ahead int64) instant {
	if !a.releases(now) {
		return room
	}
	return max(room, min(a.ends, max(now, a.next).Add(time.Duration(ahead)*a.gap)))
}

// releases reports whether those who waited go one after another.
func (a *absence) releases(now instant) bool { return a != nil && a.asks == 0 && now < a.ends }

// sent notes that one goes. If that is late, as timers are, the next makes up for it. If
// something else held it up, more have come than were reckoned with.
func (a *absence) sent(now instant) {
	if !a.releases(now) {
		return
	}
	if late := min(now.Sub(a.next)-catchUp, a.span); late > 0 {
		a.span -= late
		a.ends = a.ends.Add(time.Duration(float64(late) * eased / (eased - 1)))
	}
	a.next = max(a.next, now.Add(-min(catchUp, a.gap))).Add(a.gap)
}
