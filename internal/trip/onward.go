package trip

import (
	"net/http"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
)

// Room is a layer of ours that can be given a request together with its trip.
type Room interface {
	// Enter is RoundTrip for a request whose trip is t, which need not be in its context.
	Enter(r *http.Request, t *Trip) (*http.Response, error)
}

// scout is implemented by a Room that is an Outlooker.
type scout interface {
	// Ahead is Outlook for a request whose trip is t, which need not be in its context.
	Ahead(r *http.Request, t *Trip) (time.Duration, error)
}

// Onward is how a layer sends to its base. NewOnward makes one. It is safe for concurrent
// use.
type Onward struct {
	base  http.RoundTripper
	layer Layer        // the layer that sends
	table *hosts.Table // its chain's
	room  Room         // the base if it is a Room of the same chain, else a stranger
	scout scout        // the room, if it is one
	joins bool         // see stranger
	fresh func() *Box  // allocates a trip
}

// NewOnward returns how layer l, whose hosts are in table, sends to base. The trip is
// shared with a base that is a layer of the same chain. Any other layer of ours makes a
// trip of its own, even if the request has our context.
func NewOnward(base http.RoundTripper, l Layer, table *hosts.Table) Onward {
	o := Onward{base: base, layer: l, table: table, fresh: newBox}
	linked, ok := base.(Linked)
	if !ok {
		o.room = &stranger{base: base, layer: l}
		return o
	}
	if k := linked.Link(); k.Hosts == table && k.top > l {
		if k.at == base {
			o.room = k.room
			o.scout, _ = k.room.(scout)
		}
		if k.New != nil {
			o.fresh = k.New
		}
		o.joins = o.room == nil // such as a type of a user's that embeds a layer and has a RoundTrip of its own
	}
	if o.room == nil {
		o.room = &stranger{base: base, layer: l, joins: o.joins, apart: !o.joins}
	}
	return o
}

// Begin is the function Begin for the layer that sends, but does not put the trip into
// the request's context: Send does so if the base needs it there.
func (o *Onward) Begin(r *http.Request) (t *Trip, made bool) {
	offer := nowhere
	if o.joins {
		offer = o.layer
	}
	return begin(r, o.layer, o.table, offer, o.fresh)
}

// Send sends r, whose trip is t, to the base, and returns the base's response and error.
// The compiler puts it into its callers as long as it is so short. For each layer that
// spares the stacks of waiting goroutines a frame, which the collector would walk through.
func (o *Onward) Send(r *http.Request, t *Trip) (*http.Response, error) { return o.room.Enter(r, t) }

// stranger makes a Room of a base that cannot be handed a trip.
type stranger struct {
	base  http.RoundTripper
	layer Layer // the layer that sends
	joins bool  // the base belongs to the same chain, but takes the trip from the context
	apart bool  // the base is a layer of another chain
}

// Enter implements Room.
func (s *stranger) Enter(r *http.Request, t *Trip) (*http.Response, error) {
	if !t.Worn(s.layer) {
		r = t.Dress(r)
	}
	if s.joins {
		t.At(s.layer)
	}
	if s.apart { // what that chain has sent is known only to its own trips
		t.MarkSent()
	}
	resp, err := s.base.RoundTrip(r)
	if s.joins {
		t.returned(s.layer)
	}
	if resp != nil && resp.Request == nil {
		resp.Request = r
	}
	return resp, err
}

// Outlook is the base's Outlook of r, whose trip is t; no wait if it is no Outlooker.
func (o *Onward) Outlook(r *http.Request, t *Trip) (time.Duration, error) {
	if o.scout != nil {
		return o.scout.Ahead(r, t)
	}
	if _, ok := o.base.(Outlooker); ok && !t.Worn(o.layer) {
		r = t.Dress(r)
	}
	return Outlook(o.base, r)
}
