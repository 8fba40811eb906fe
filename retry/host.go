package retry

import (
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/pattern"
	"github.com/weirhttp/weir/internal/trip"
)

// host is what is kept per host, in the record that all layers share.
type host struct {
	allowance allowance
	count     counts
	attempts  atomic.Int64
	past      *past
	kept      int64 // of attempts, in past; under its lock
	latency   latency
	pace      atomic.Pointer[pace] // nil: nothing was timed yet
	known     atomic.Pointer[known]
}

// known remembers which settings are a host's.
type known struct {
	set *pattern.Set[*settings]
	c   *settings
}

// Idle reports that the allowance is full: then nothing is lost but counts
// and what was learned about latency.
func (h *host) Idle(now time.Time) bool {
	if !h.idle(now) {
		return false
	}
	h.past.keep(h)
	return true
}

func (h *host) idle(now time.Time) bool {
	if !h.allowance.short.Load() {
		return true
	}
	h.allowance.mu.Lock()
	defer h.allowance.mu.Unlock()
	h.allowance.refill(now)
	return h.allowance.spent == 0
}

// host returns the record of a trip's host.
func (t *Transport) host(tr *trip.Trip) *host {
	rec := tr.Host()
	if h, ok := rec.Occupant(hosts.Retry).(*host); ok {
		return h
	}
	h, ok := rec.Occupy(hosts.Retry, &host{past: &t.past}).(*host)
	if !ok { // cannot happen: nobody else uses this slot
		return &host{past: &t.past}
	}
	return h
}

// settings returns those of the host that a trip goes to.
func (t *Transport) settings(tr *trip.Trip, h *host, canonical string) *settings {
	set := t.perHost.Load()
	if set == nil {
		return t.c
	}
	if k := h.known.Load(); k != nil && k.set == set {
		return k.c
	}
	c := t.c
	if r := set.Host(canonical); r.Found {
		c = r.Value
	}
	if !tr.Entry.Overflow { // whose record many hosts share
		h.known.Store(&known{set, c})
	}
	return c
}
