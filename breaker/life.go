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

// life is the newest sign of life of a host with which all is well. It stands
// in the host's record and is noted without a lock, at most once a tick.
type life struct{ newest atomic.Pointer[sign] }

// Idle implements hosts.Occupant.
func (*life) Idle(time.Time) bool { return true }

// hear notes that r, sent by t, was answered. Where nobody knows when it was
// sent, nothing is noted.
func hear(h *hosts.Host, t *trip.Trip, r *http.Request) {
	at := t.OnWire()
	if at.IsZero() {
		return
	}
	l, _ := h.Occupant(hosts.Life).(*life)
	if l == nil {
		l, _ = h.Occupy(hosts.Life, new(life)).(*life)
	}
	if s := l.newest.Load(); s != nil && at.Sub(s.at) < tick {
		return
	}
	l.newest.Store(&sign{at, routeOf(r)})
}

// heard returns what hear has noted.
func heard(h *hosts.Host) sign {
	if l, ok := h.Occupant(hosts.Life).(*life); ok {
		if s := l.newest.Load(); s != nil {
			return *s
		}
	}
	return sign{}
}
