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

// ErrNotSent is reported by an error of RoundTrip only if no attempt of that
// call reached the network, so that any request may be made again elsewhere.
// Its absence proves nothing.
var ErrNotSent = notsent.Err

// Config says how requests are governed. The zero Config is ready for use;
// each field's zero means the default that stands at the field.
type Config struct {
	Throttle throttle.Config
	Retry    retry.Config
	Breaker  breaker.Config

	// Hosts has settings of their own for hosts that need them (SetHost adds
	// and changes some later), by host
	// pattern ("api.example.com", "*.example.com"). They stand instead of,
	// not beside, those above; of several patterns that match a host, the
	// most specific one's apply, alone.
	Hosts map[string]Host

	// Fallback answers for a request that came to an error, be it a refusal of
	// the throttle or the circuit, the network's, or that of Breaker.Fallback, and
	// for one whose answer FallbackOn names. It is called once, last: when all
	// attempts are over. It gets the request as it came, its body closed (GetBody
	// opens another), and the error; for an answer a *breaker.StatusError.
	//
	// A response goes to the caller. So does an error, unless there was an answer:
	// then that one does, and so does what there was if both are nil. It is not
	// called for a request whose caller has cancelled it; one whose deadline has
	// passed can still be answered from memory. Nil: what there was.
	Fallback func(*http.Request, error) (*http.Response, error)

	// FallbackOn names the answers that Fallback is asked to replace; it does not
	// touch their bodies. Nil: none.
	FallbackOn func(*http.Response) bool
}

// Host is what a host pattern may have of its own. Nil: Config's.
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
		return nil, errors.New("weir: FallbackOn without Fallback")
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
// with one change: where http.DefaultTransport is still net/http's own, the
// client has a clone of it that keeps as many idle connections for one host as
// for all.
func NewClient(c Config) (*http.Client, error) {
	base := http.DefaultTransport
	if d, ok := base.(*http.Transport); ok {
		d = d.Clone()
		if d.MaxIdleConnsPerHost = d.MaxIdleConns; d.MaxIdleConns == 0 { // no limit, which is not what 0 says of one host
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

// RoundTrip implements http.RoundTripper. A response obtained is a response
// returned, whatever its status; an error means that there was none, and is
// or wraps a *throttle.Error, *breaker.Error or *retry.Error where one of
// them is the reason.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.door.RoundTrip(r)
	if t.fallback == nil {
		return resp, err
	}
	return t.fallback.instead(r, resp, err)
}

// CloseIdleConnections closes those of the base.
func (t *Transport) CloseIdleConnections() { t.throttle.CloseIdleConnections() }

// Close gives leased budget back to the Store, if there is one, and waits for
// calls to it. Requests that are sent go on; those that still need the Store's
// word, and all that come later, are refused. Without a Store nothing changes.
func (t *Transport) Close() error { return t.throttle.Close() }

// Circuits is the switch by which an operator opens and closes circuits.
func (t *Transport) Circuits() *breaker.Circuits { return t.circuits }

// Throttle is where budgets are changed and hosts are paused by hand.
func (t *Transport) Throttle() *throttle.Transport { return t.throttle }

// Stats is a snapshot: plain copies, nothing in it changes.
type Stats struct {
	Throttle throttle.Stats
	Retry    retry.Stats
	Breaker  breaker.Stats

	Fallbacks int64 // requests that Config.Fallback answered
}

// Stats returns what the layers count and know at this moment. Layers are
// read one after the other, so sums between them may differ by what happened
// meanwhile.
func (t *Transport) Stats() Stats {
	s := Stats{Throttle: t.throttle.Stats(), Retry: t.retry.Stats(), Breaker: t.circuits.Stats()}
	if t.fallback != nil {
		s.Fallbacks = t.fallback.answered.Load()
	}
	return s
}

// StatsOf is Stats of the hosts for which want returns true, for those who look at
// many hosts often; throttle.Transport.StatsOf says what stamp is. Sums over all
// hosts are left out, and so are circuits: Circuits().Stats() has those about which
// there is something to say.
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
