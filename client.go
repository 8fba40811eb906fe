package weir

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// ErrNotSent says that no attempt of a call reached the network, so that any
// request may be sent again elsewhere. An error of RoundTrip satisfies
// errors.Is(err, ErrNotSent) only then. If it does not, nothing is proved.
var ErrNotSent = notsent.Err

// Config says how requests are governed. The zero Config is ready for use;
// each field's zero means the default that stands at the field.
type Config struct {
	Throttle throttle.Config
	Retry    retry.Config
	Breaker  breaker.Config

	// Hosts has settings for single hosts, by host pattern ("api.example.com",
	// "*.example.com"). Each field of Host that is set replaces the field above of
	// the same name; of Throttle it replaces what HostConfig has. If several patterns
	// match a host, only the most specific one applies. SetHost adds and changes
	// settings later.
	Hosts map[string]Host

	// Fallback answers for a request that ended in an error, whether the error
	// comes from the throttle, the circuit, the network or Breaker.Fallback, and
	// for a request whose answer FallbackOn selects. It is called once, after all
	// attempts. It gets the request as it came, with its body closed (GetBody
	// opens another), and the error; for an answer, a *breaker.StatusError.
	//
	// If it returns a response, the caller gets that response. If it returns an
	// error, the caller gets that error, unless the server had answered: then the
	// caller gets the server's answer. If it returns nil and nil, the caller gets
	// what it would get without Fallback. It is not called for a request whose
	// caller has cancelled it. It is called after the caller's deadline, because it
	// may answer from memory. Nil: not called.
	Fallback func(*http.Request, error) (*http.Response, error)

	// FallbackOn returns true for an answer that Fallback is to replace. It must
	// not touch the body. Nil: no answers are replaced.
	FallbackOn func(*http.Response) bool
}

// Host has the settings of the hosts that one pattern names. A field that is nil
// means that Config's apply.
type Host struct {
	Throttle *throttle.HostConfig
	Retry    *retry.Config
	Breaker  *breaker.Config
}

// Transport is an http.RoundTripper that keeps to budgets, obeys what servers
// say about their quotas, retries what is safe to retry, and leaves a broken
// host alone. Create it with New. It is safe for concurrent use, and one
// Transport should serve a whole program: what it learns is shared by the
// requests that go through it.
type Transport struct {
	door     http.RoundTripper
	retry    *retry.Transport
	throttle *throttle.Transport
	circuits *breaker.Circuits
	fallback *fallback // nil: none
	settings settings
}

// New returns a Transport that sends through base; nil means
// http.DefaultTransport. It fails on settings that contradict themselves or
// one another, naming the field and the value.
func New(base http.RoundTripper, c Config) (*Transport, error) {
	if base == nil {
		base = http.DefaultTransport
	}
	if c.FallbackOn != nil && c.Fallback == nil {
		return nil, errors.New("weir: FallbackOn is set, but Fallback is nil")
	}
	breakerConfig, err := fitWindow(c.Breaker, c.Retry.AttemptTimeout)
	if err != nil {
		return nil, err
	}
	t := &Transport{fallback: newFallback(c)}
	if t.circuits, err = breaker.NewCircuits(breakerConfig); err != nil {
		return nil, err
	}
	wire := retry.Wire(base, c.Retry)
	if t.throttle, err = throttle.New(t.circuits.Meter(wire), c.Throttle); err != nil {
		return nil, err
	}
	if t.retry, err = retry.New(t.throttle, c.Retry); err != nil {
		return nil, errors.Join(err, t.throttle.Close())
	}
	t.door = t.circuits.Door(t.retry)
	if err := t.settings.begin(t, c); err != nil {
		return nil, errors.Join(err, t.throttle.Close())
	}
	return t, nil
}

// NewClient returns a client whose Transport is the *Transport of New(nil, c),
// with one change. If http.DefaultTransport is an *http.Transport, the client uses
// a clone of it, which keeps as many idle connections for one host as for all
// hosts together.
func NewClient(c Config) (*http.Client, error) {
	base := http.DefaultTransport
	if d, ok := base.(*http.Transport); ok {
		d = d.Clone()
		if d.MaxIdleConnsPerHost = d.MaxIdleConns; d.MaxIdleConns == 0 { // no limit, but 0 for one host would mean two
			d.MaxIdleConnsPerHost = math.MaxInt
		}
		base = d
	}
	t, err := New(base, c)
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: t}, nil
}

// fitWindow makes sure that a breaker's window sees attempts that end by
// their timeout: results older than the window do not count.
func fitWindow(c breaker.Config, attempt time.Duration) (breaker.Config, error) {
	if attempt == 0 {
		attempt = retry.DefaultAttemptTimeout
	}
	if c.Disable || attempt < 0 {
		return c, nil
	}
	switch least := 2 * min(attempt, 50000*time.Hour); {
	case c.Window == 0:
		c.Window = max(breaker.DefaultWindow, least)
	case c.Window > 0 && c.Window < least:
		return c, fmt.Errorf("weir: Breaker.Window: %v is shorter than twice Retry.AttemptTimeout (%v): attempts that time out would not count", c.Window, attempt)
	}
	return c, nil
}

// RoundTrip implements http.RoundTripper. If there is a response, it is returned,
// whatever its status. An error means that there was none. It is or wraps a
// *throttle.Error, *breaker.Error or *retry.Error if one of them is the reason.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.door.RoundTrip(r)
	if t.fallback == nil {
		return resp, err
	}
	return t.fallback.instead(r, resp, err)
}

// CloseIdleConnections closes the idle connections of the base.
func (t *Transport) CloseIdleConnections() { t.throttle.CloseIdleConnections() }

// Close gives the units that were booked and not used back to the Store, if there
// is one, and waits for the calls to it. Requests that were sent go on. Requests
// that still wait for the Store, and all that come later, are refused. Without a
// Store, Close does nothing.
func (t *Transport) Close() error { return t.throttle.Close() }

// Circuits returns the circuits, which an operator may open and close by hand.
func (t *Transport) Circuits() *breaker.Circuits { return t.circuits }

// Throttle returns the throttle, whose budgets may be changed and whose hosts may
// be paused by hand.
func (t *Transport) Throttle() *throttle.Transport { return t.throttle }

// Stats is a snapshot. It consists of copies, so nothing in it changes.
type Stats struct {
	Throttle throttle.Stats
	Retry    retry.Stats
	Breaker  breaker.Stats

	Fallbacks int64 // requests that Config.Fallback answered
}

// Stats returns what the layers count and know at this moment. The layers are read
// one after the other, so their sums may differ by what happened meanwhile. A host of
// which a circuit is open has the state throttle.StateRefusing.
func (t *Transport) Stats() Stats {
	s := Stats{Throttle: t.throttle.Stats(), Retry: t.retry.Stats(), Breaker: t.circuits.Stats()}
	open := make(map[string]bool)
	for _, c := range s.Breaker.Circuits {
		open[c.Host] = open[c.Host] || c.State == breaker.Open
	}
	for i := range s.Throttle.Hosts {
		if h := &s.Throttle.Hosts[i]; open[h.Host] {
			h.State = throttle.StateRefusing
		}
	}
	if t.fallback != nil {
		s.Fallbacks = t.fallback.answered.Load()
	}
	return s
}

// StatsOf is Stats of the hosts for which want returns true. It is for programs
// that often look at many hosts; throttle.Transport.StatsOf says what stamp is. It
// leaves out the sums over all hosts and the circuits, so no State says that one is
// open. Circuits().Stats() has the circuits that have something to report.
func (t *Transport) StatsOf(want func(host, partition string, stamp uint64) bool) Stats {
	s := Stats{Throttle: t.throttle.StatsOf(want)}
	asked := make(map[string]bool, len(s.Throttle.Hosts))
	for i := range s.Throttle.Hosts {
		h := &s.Throttle.Hosts[i]
		name := h.Host
		if h.Overflow {
			name = "*"
		}
		if asked[name] {
			continue // a partition
		}
		asked[name] = true
		if r, ok := t.retry.StatsOf(name); ok {
			s.Retry.Hosts = append(s.Retry.Hosts, r)
		}
	}
	return s
}
