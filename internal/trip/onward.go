package trip

import (
	"net/http"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
)

// Room is a layer of ours as the one above it knows it: it takes a request
// together with its trip.
type Room interface {
	Enter(r *http.Request, t *Trip) (*http.Response, error)
}

// scout is a Room that is an Outlooker, and need not look for the trip.
type scout interface {
	Ahead(r *http.Request, t *Trip) (time.Duration, error)
}

// Onward is how a layer sends to its base.
type Onward struct {
	base  http.RoundTripper
	layer Layer // that sends
	table *hosts.Table
	room  Room        // the base, if it is a layer of the same chain
	scout scout       // that one, if it can be asked
	joins bool        // the base is of the same chain, and looks for the trip itself
	apart bool        // the base is a layer of another chain
	fresh func() *Box // makes the memory of a trip
}

// NewOnward returns how layer l, whose hosts are in table, sends to base. A
// base that is a layer of the same chain shares the trip; any other makes its
// own, also if it was given our context.
func NewOnward(base http.RoundTripper, l Layer, table *hosts.Table) Onward {
	o := Onward{base: base, layer: l, table: table, fresh: newBox}
	if linked, ok := base.(Linked); ok {
		if k := linked.Link(); k.Hosts == table && k.top > l {
			if k.at == base {
				o.room = k.room
				o.scout, _ = k.room.(scout)
			}
			if k.New != nil {
				o.fresh = k.New
			}
			o.joins = o.room == nil // also what embeds a layer, and has more to do than that one
		}
		o.apart = o.room == nil && !o.joins
	}
	return o
}

// Begin is Begin for the layer that sends.
func (o *Onward) Begin(r *http.Request) (t *Trip, made bool) {
	offer := nowhere
	if o.joins {
		offer = o.layer
	}
	return begin(r, o.layer, o.table, offer, o.fresh)
}

// Send hands r on. t is its trip.
func (o *Onward) Send(r *http.Request, t *Trip) (*http.Response, error) {
	if o.room != nil {
		return o.room.Enter(r, t)
	}
	if !t.Worn(o.layer) {
		r = t.Dress(r)
	}
	if o.joins {
		t.At(o.layer)
	}
	if o.apart { // whose trips know what was sent
		t.MarkSent()
	}
	resp, err := o.base.RoundTrip(r)
	if o.joins {
		t.returned(o.layer)
	}
	if resp != nil && resp.Request == nil {
		resp.Request = r
	}
	return resp, err
}

// Outlook asks the base, if it can be asked, how long r, sent now, would wait
// there, and whether that would be refused.
func (o *Onward) Outlook(r *http.Request, t *Trip) (time.Duration, error) {
	if o.scout != nil {
		return o.scout.Ahead(r, t)
	}
	if _, ok := o.base.(Outlooker); ok && !t.Worn(o.layer) {
		r = t.Dress(r)
	}
	return Outlook(o.base, r)
}
