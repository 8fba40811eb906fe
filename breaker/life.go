package breaker

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/trip"
)

// tick is how much newer a sign of life must be to be worth noting. It is
// short for whoever waits for a timeout, and makes the cost disappear.
const tick = 100 * time.Millisecond

// sign is a sign of life.
type sign struct {
	at    time.Time // the host answered then, or later
	route route
}

// news is the newest sign of life of a host with which all is well, and how long
// after it the host was last heard, as of up to a tick ago.
type news struct {
	sign
	since time.Duration // of at: from the Epoch of the table of hosts, as trips count
	after time.Duration
}

// life is what the host's record knows of when the host answered. The news are
// noted without a lock, at most once a tick.
type life struct {
	newest atomic.Pointer[news]
	vigil  atomic.Pointer[vigil] // nil: none yet
}

// Idle implements hosts.Occupant.
func (*life) Idle(time.Time) bool { return true }

// lifeOf returns what a host's record knows; nil: the host never answered.
func lifeOf(h *hosts.Host) *life {
	l, _ := h.Occupant(hosts.Life).(*life)
	return l
}

// hear notes that r, sent by t, was answered, and what its answer says of the host.
// Where nobody knows when r was sent, nothing is noted.
func hear(h *hosts.Host, t *trip.Trip, r *http.Request, says Outcome) {
	at, ok := t.Departed()
	if !ok {
		return
	}
	l := lifeOf(h)
	if l == nil {
		if l, _ = h.Occupy(hosts.Life, new(life)).(*life); l == nil {
			return
		}
	}
	if v := l.vigil.Load(); v != nil && says == Success {
		v.succeeded(at - v.since)
	}
	s := l.newest.Load()
	if s != nil && !l.doubtful() {
		if age := at - s.since; age < tick && s.after-age < brisk {
			return
		}
	}
	l.note(s, t, r, says != Failure)
}

// note is hear for an answer that is worth noting; well says that it is no failure.
func (l *life) note(old *news, t *trip.Trip, r *http.Request, well bool) {
	now, route, at := time.Now(), routeOf(r), t.OnWire()
	since, _ := t.Departed()
	switch {
	case well && (old == nil || at.Sub(old.at) >= tick):
		l.newest.Store(&news{sign{at, route}, since, now.Sub(at)})
	case old != nil && now.Sub(old.at)-old.after >= tick:
		l.newest.Store(&news{old.sign, old.since, now.Sub(old.at)})
	}
	v := l.vigil.Load()
	if v == nil && old != nil {
		l.vigil.CompareAndSwap(nil, &vigil{start: now, since: since + now.Sub(at)})
		v = l.vigil.Load()
	}
	if v != nil {
		v.answered(route, now.Sub(at), now, well)
	}
}

// vigilOf returns what a host's record knows of its silence, or nil.
func vigilOf(h *hosts.Host) *vigil {
	if l := lifeOf(h); l != nil {
		return l.vigil.Load()
	}
	return nil
}

// heard returns what hear has noted: the newest sign of life, and when it was heard.
func heard(h *hosts.Host) (s sign, at time.Time) {
	if l := lifeOf(h); l != nil {
		if n := l.newest.Load(); n != nil {
			return n.sign, n.at.Add(n.after)
		}
	}
	return sign{}, time.Time{}
}

// lastGood is between which instants the newest attempt was sent that succeeded, as far
// as hear has noted it; zero: none has.
func lastGood(h *hosts.Host) (from, to time.Time) {
	if v := vigilOf(h); v != nil {
		if good := v.good.Load(); good != 0 {
			from = v.start.Add(time.Duration(good))
			return from, from.Add(grain)
		}
	}
	if s, _ := heard(h); !s.at.IsZero() {
		return s.at, s.at.Add(tick)
	}
	return from, to
}
