package breaker

import (
	"net/http"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/trip"
)

// door is what Circuits.Door returns.
type door struct {
	circuits    *Circuits
	base        http.RoundTripper
	below, link trip.Link
	innermost   bool
	onward      trip.Onward
}

// Door wraps base, at whose end a Meter of the same Circuits should stand, and
// turns requests away with an *Error before they cost anything while their
// host's circuit is open, or makes them wait (Config.Patience). A nil base is
// http.DefaultTransport.
func (c *Circuits) Door(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	d := &door{circuits: c, base: base}
	d.below, d.link = c.adopt(base, trip.Door)
	d.innermost = d.below.Innermost()
	d.onward = trip.NewOnward(base, trip.Door, d.below.Hosts)
	return d
}

// Link tells the layer above about the chain from here down.
func (d *door) Link() trip.Link { return d.link }

// CloseIdleConnections forwards to the base.
func (d *door) CloseIdleConnections() { trip.CloseIdle(d.base) }

func (d *door) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	t, made := d.onward.Begin(r)
	if made {
		resp, err = begun(t, func() (*http.Response, error) { return d.roundTrip(r, t) })
	} else {
		resp, err = d.roundTrip(r, t)
	}
	if err != nil {
		return d.otherwise(r, t, err)
	}
	return resp, nil
}

func (d *door) roundTrip(r *http.Request, t *trip.Trip) (*http.Response, error) {
	if _, ok := d.circuits.calm(t); ok && !d.innermost {
		return d.onward.Send(r, t)
	}
	e, own := d.circuits.hold(t, r)
	if own {
		defer e.Release()
	}
	p, err := d.circuits.enter(e, trip.Door, t, r)
	if err != nil {
		return nil, err
	}
	if p.candidate != 0 {
		defer p.circuit.abandon(p)
	}
	if d.innermost {
		t.MarkSent()
	}
	return d.onward.Send(r, t)
}

// otherwise asks the Fallback to answer instead of a refusal by a circuit.
func (d *door) otherwise(r *http.Request, t *trip.Trip, refused error) (*http.Response, error) {
	by := notsent.Refused(refused)
	if by != notsent.Door && by != notsent.Meter || r.Context().Err() != nil || left(r) {
		return nil, refused
	}
	f := d.circuits.settings(hosts.Name(t.Entry, r)).Fallback
	if f == nil {
		return nil, refused
	}
	resp, err := f(r, refused)
	switch {
	case resp == nil && err == nil:
		return nil, refused
	case resp == nil && t.Sent(): // what the fallback sent is not all
		return nil, notsent.Deny(err)
	case resp == nil:
		return nil, err
	}
	if resp.Body == nil {
		resp.Body = http.NoBody
	}
	if resp.Request == nil {
		resp.Request = r
	}
	d.circuits.fellBack(r)
	return resp, nil
}

// fellBack counts an answer of Fallback's. The trip of r has ended.
func (c *Circuits) fellBack(r *http.Request) {
	e := c.home.Load().Acquire(hosts.Key(r), time.Now())
	defer e.Release()
	host := hosts.Name(e, r)
	c.mu.Lock()
	h, forced := c.forced[host]
	if forced {
		h.fallbacks++
	}
	c.mu.Unlock()
	if forced {
		return
	}
	if cir := c.find(e, c.settings(host), r, false); cir != nil {
		cir.mu.Lock()
		cir.fallbacks++
		cir.mu.Unlock()
	}
}
