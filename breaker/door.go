package breaker

import (
	"net/http"

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
	if s, _ := d.circuits.calm(t); s != nil && !d.innermost {
		ended := !made
		defer func() {
			if !ended { // the base panicked or ended the goroutine
				t.End(nil)
			}
		}()
		resp, err = d.onward.Send(r, t)
		if ended = true; made {
			err = t.End(err)
		}
	} else {
		resp, err = d.guard(r, t, made)
	}
	if served(resp, err) && d.circuits.eager.Load() == 0 {
		return resp, nil
	}
	return d.otherwise(r, t, resp, err)
}

// guard is RoundTrip without fallbacks where not all is well, within t, which it ends if
// made is set.
func (d *door) guard(r *http.Request, t *trip.Trip, made bool) (_ *http.Response, err error) {
	if made {
		defer func() { err = t.End(err) }()
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
