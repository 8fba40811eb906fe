package trip

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weirhttp/weir/internal/hosts"
)

// step is a layer that is told of its trip or finds it, and notes which it has.
type step struct {
	link  Link
	layer Layer
	found *Trip
	own   bool
}

func (s *step) Link() Link { return s.link }

func (s *step) RoundTrip(r *http.Request) (*http.Response, error) {
	_, s.found, s.own = Begin(r, s.layer, s.link.Hosts)
	return nil, nil
}

// room is a step that takes trips.
type room struct{ step }

func (s *room) Link() Link { return s.link.At(s, s) }

func (s *room) Enter(_ *http.Request, t *Trip) (*http.Response, error) {
	s.found, s.own = t, false
	return nil, nil
}

// A base of the same chain has the trip of the layer above, whether it is
// handed to it or found; any other base makes its own.
func TestABaseOfTheChainHasItsTrip(t *testing.T) {
	tab, other := hosts.New(10), hosts.New(10)
	at := func(l Layer, tab *hosts.Table) step { return step{link: Link{Hosts: tab}.With(l), layer: l} }
	for _, tt := range []struct {
		name string
		base http.RoundTripper
		s    func(http.RoundTripper) *step
		own  bool
	}{
		{"room", &room{at(Throttle, tab)}, func(b http.RoundTripper) *step { return &b.(*room).step }, false},
		{"linked", &[]step{at(Throttle, tab)}[0], func(b http.RoundTripper) *step { return b.(*step) }, false},
		{"another chain's room", &room{at(Throttle, other)}, func(b http.RoundTripper) *step { return &b.(*room).step }, true},
		{"room of an outer layer", &room{at(Door, tab)}, func(b http.RoundTripper) *step { return &b.(*room).step }, true},
		{"room of the same layer", &room{at(Retry, tab)}, func(b http.RoundTripper) *step { return &b.(*room).step }, true},
	} {
		o := NewOnward(tt.base, Retry, tab)
		r := request(t)
		tr, _ := o.Begin(r)
		for range 2 { // a loop's next attempt too
			o.Send(r, tr)
			if s := tt.s(tt.base); s.own != tt.own || (s.found == tr) == tt.own {
				t.Errorf("%s: own trip %v, want %v", tt.name, s.own, tt.own)
			}
		}
	}
}

// What a trip is handed to offers it to nobody: a request made with its context
// by whoever is below, or later, is another one, at whatever layer it enters.
func TestOnwardOffersNothing(t *testing.T) {
	tab := hosts.New(10)
	o := NewOnward(&room{step{link: Link{Hosts: tab}.With(Throttle)}}, Retry, tab)
	tr, _ := o.Begin(request(t))
	r := tr.Dress(request(t)) // for the base of the room
	o.Send(r, tr)
	for l := Door; l <= Wire; l++ {
		if _, nested, made := Begin(request(t).WithContext(r.Context()), l, tab); !made || nested == tr {
			t.Errorf("a request that enters at layer %d has somebody else's trip", l)
		}
	}
}

// Of two that come with one context at once, one is the request that was handed
// on, as of two that come one after the other.
func TestOnwardOffersOnce(t *testing.T) {
	tab := hosts.New(10)
	for range 1000 {
		r, tr, _ := Begin(request(t), Retry, tab)
		var found atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				if _, x, made := Begin(r, Throttle, tab); x == tr && !made {
					found.Add(1)
				}
			})
		}
		if wg.Wait(); found.Load() != 1 {
			t.Fatalf("%d requests have the trip", found.Load())
		}
	}
}

// idler is linked as one that embeds a layer is, and does not call it.
type idler struct {
	link Link
	ctx  context.Context
}

func (i *idler) Link() Link { return i.link }

func (i *idler) RoundTrip(r *http.Request) (*http.Response, error) {
	i.ctx = r.Context()
	return nil, nil
}

// An offer that nobody took ends with the attempt: who comes with that context
// later has no part in a trip that may be over.
func TestOfferEndsWithTheAttempt(t *testing.T) {
	tab := hosts.New(10)
	i := &idler{link: Link{Hosts: tab}.With(Throttle)}
	o := NewOnward(i, Retry, tab)
	tr, _ := o.Begin(request(t))
	if o.Send(request(t), tr); !tr.Sent() {
		t.Error("what was sent elsewhere is not known not to have been sent")
	}
	if _, late, made := Begin(request(t).WithContext(i.ctx), Throttle, tab); !made || late == tr {
		t.Error("the trip is still offered")
	}
}
