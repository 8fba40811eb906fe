package retry

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/pattern"
	"github.com/weirhttp/weir/internal/trip"
)

// Transport is an http.RoundTripper that sends a request again when that is
// safe and likely to help; the package comment has the rules. It is made by
// New and is safe for concurrent use.
//
// A response that was obtained is returned, whatever its status: the last one
// if there is no time, allowance or attempt left for another.
type Transport struct {
	chain
	base   http.RoundTripper
	link   trip.Link // of base
	onward trip.Onward
	c      *settings
	count  counts
	past   past

	mu      sync.Mutex // for SetHost
	own     map[string]*settings
	perHost atomic.Pointer[pattern.Set[*settings]]
}

// New returns a Transport that sends by base, which it wraps with Wire unless
// there is one below already. nil base: http.DefaultTransport. An error names
// the field of c and its value.
func New(base http.RoundTripper, c Config) (*Transport, error) {
	if base == nil {
		base = http.DefaultTransport
	}
	s, err := c.resolve()
	if err != nil {
		return nil, err
	}
	if !trip.Below(base).Wired {
		base = Wire(base, c)
	}
	t := &Transport{base: base, link: trip.Under(base, trip.Retry), c: s, own: make(map[string]*settings)}
	t.onward = trip.NewOnward(base, trip.Retry, t.link.Hosts)
	t.chain = trip.NewChain(t.link.With(trip.Retry).At(t, (*room)(t)))
	return t, nil
}

// chain tells the layer above what stands here; an alias, so that the methods
// which it lends are no part of the documented API.
type chain = trip.Chain

// room is a Transport as the layer of weir above it knows it.
type room Transport

// SetHost gives the hosts that a pattern names (api.example.com,
// *.example.com, 127.0.0.1:8080) settings of their own, from now on. They
// replace the Transport's entirely; zero fields are defaults, not its values.
// Of several patterns the most specific applies.
func (t *Transport) SetHost(host string, c Config) error {
	p, err := pattern.Parse(host)
	if err != nil {
		return fmt.Errorf("retry: %w", err)
	}
	if !p.HostOnly() {
		return fmt.Errorf("retry: pattern %q: settings are per host, not per method or path", host)
	}
	s, err := c.resolve()
	if err != nil {
		return fmt.Errorf("%w (host %s)", err, host)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own[p.Text] = s
	set, err := pattern.NewSet(t.own)
	if err != nil {
		return fmt.Errorf("retry: %w", err)
	}
	t.perHost.Store(set)
	return nil
}

// CloseIdleConnections closes those of the base.
func (t *Transport) CloseIdleConnections() { trip.CloseIdle(t.base) }

// RoundTrip sends r, again if need be. It returns the response of the last
// attempt, or an error that is or wraps that of the last attempt, an *Error
// if there is more to say.
func (t *Transport) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	tr, made := t.onward.Begin(r)
	if made {
		defer func() { err = tr.End(err) }()
	}
	return (*room)(t).Enter(r, tr)
}

// Enter is RoundTrip together with the request's trip.
func (o *room) Enter(r *http.Request, tr *trip.Trip) (*http.Response, error) {
	t := (*Transport)(o)
	h, name := t.host(tr), hosts.Name(tr.Entry, r)
	c := t.settings(tr, h, name)
	if !c.simple() || !repeatable(r) || overrideOf(r.Context()) != nil {
		return t.repeat(r, tr, h, c, name, false, nil, nil)
	}
	// Most requests need no loop, and nothing made ready for one.
	tr.Bound(c.limits)
	tr.Next()
	resp, err := t.onward.Send(r, tr)
	if served(resp, tr) {
		if h.attempts.Add(1)%sampled == 0 {
			h.timed(tr)
		}
		h.allowance.earned()
		return resp, nil
	}
	return t.repeat(r, tr, h, c, name, true, resp, err)
}

// repeat sends r in a loop, which goes on after the first attempt if that has begun and
// ended so. It stands apart because a loop takes much of a stack, and most requests, also
// the very many that may wait in throttle, need none.
func (t *Transport) repeat(r *http.Request, tr *trip.Trip, h *host, c *settings, name string, begun bool, resp *http.Response, err error) (*http.Response, error) {
	l := loop{t: t, tr: tr, h: h, c: c, name: name, ctx: r.Context(), r: r}
	if begun {
		return l.resume(resp, err)
	}
	return l.run()
}
