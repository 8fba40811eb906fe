package breaker

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/pattern"
	"github.com/weirhttp/weir/internal/plain"
	"github.com/weirhttp/weir/internal/trip"
)

// Circuits is a set of circuits, one per host, shared by the Doors and Meters made
// from it. Make one with NewCircuits. It is safe for concurrent use, starts no
// goroutine and needs no Close. A host's circuit takes memory from its first
// failure until its record in the chain's table of hosts is needed for another.
type Circuits struct {
	secret [32]byte                    // of the MAC of shards
	book   atomic.Pointer[book]        // settings
	home   atomic.Pointer[hosts.Table] // where the records with the circuits are
	epoch  atomic.Uint64               // counts changes of state of all circuits
	ids    atomic.Uint64               // of slots

	eager   atomic.Int64 // settings with a FallbackOn there have been
	nforced atomic.Int64 // len(forced), so that asking costs nothing when it is 0
	mu      sync.Mutex
	forced  map[string]*hold     // by canonical host; apart from the records, which may be evicted
	own     map[string]*settings // by canonical pattern

	doing  sync.Once
	caller *door // of Do
}

// book is all settings; it does not change.
type book struct {
	usual *settings
	hosts *pattern.Set[*settings] // nil: all are usual
	plain *settings               // usual, if they hold for all hosts and are not Disable; else nil
}

func newBook(usual *settings, hosts *pattern.Set[*settings]) *book {
	b := &book{usual: usual, hosts: hosts}
	if hosts == nil && !usual.Disable {
		b.plain = usual
	}
	return b
}

// maxForced bounds how many hosts are held by Force.
const maxForced = hosts.Size

// NewCircuits checks c and returns circuits that are all closed. The error
// names the field and its value.
func NewCircuits(c Config) (*Circuits, error) {
	s, err := resolve(c)
	if err != nil {
		return nil, err
	}
	cs := &Circuits{forced: make(map[string]*hold), own: make(map[string]*settings)}
	rand.Read(cs.secret[:])
	cs.book.Store(newBook(s, nil))
	if s.FallbackOn != nil {
		cs.eager.Add(1)
	}
	return cs, nil
}

// SetHost gives the hosts that a pattern names settings of their own, all of
// them, instead of those of NewCircuits: "api.example.com",
// "*.example.com", "127.0.0.1:8080". The most specific pattern wins; the same
// pattern again replaces what it said. A circuit whose settings change starts
// closed, with nothing counted, and if it was not, the hook that it had is told.
// A pattern with a method or a path is an error.
func (c *Circuits) SetHost(pat string, cfg Config) error {
	p, err := pattern.Parse(pat)
	if err != nil {
		return fmt.Errorf("breaker: %w", err)
	}
	if !p.HostOnly() {
		return fmt.Errorf("breaker: pattern %q: settings are per host, not per method or path; Config.Shard gives the parts of a host circuits of their own", pat)
	}
	own, err := resolve(cfg)
	if err != nil {
		return fmt.Errorf("%w (for %s)", err, p.Text)
	}
	if own.FallbackOn != nil {
		c.eager.Add(1)
	}
	if err := c.keep(p.Text, own); err != nil {
		return fmt.Errorf("breaker: %w", err)
	}
	c.renew()
	return nil
}

// keep notes the settings of a canonical pattern.
func (c *Circuits) keep(pat string, own *settings) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := maps.Clone(c.own) // the others keep their settings' identity, and so their circuits
	all[pat] = own
	set, err := pattern.NewSet(all)
	if err != nil {
		return err
	}
	c.own = all
	c.book.Store(newBook(c.book.Load().usual, set))
	return nil
}

// renew drops the circuits whose settings are no longer their hosts'.
func (c *Circuits) renew() {
	home := c.home.Load()
	if home == nil {
		return
	}
	var old []*circuit
	home.All(func(e *hosts.Entry) {
		if r := c.record(&e.Value); r != nil {
			old = append(old, r.renew(c.settings(r.host))...)
		}
	})
	for _, cir := range old { // the hook may panic
		cir.announce()
	}
}

// settings are those of a canonical host.
func (c *Circuits) settings(host string) *settings {
	b := c.book.Load()
	if b.hosts != nil {
		if r := b.hosts.Host(host); r.Found {
			return r.Value
		}
	}
	return b.usual
}

// State is what the circuit of a host does: what Force set, if it did, else the
// strictest of the host's circuits. An open circuit whose period has ended is Open
// until a request comes to probe. The host may be written as in a URL, or be one;
// port 80 or 443 may be left out.
func (c *Circuits) State(host string) State {
	for _, key := range hosts.Spelled(host) {
		if s, ok := c.held(key); ok {
			return s
		}
		if s := c.automatic(key); s != Closed {
			return s
		}
	}
	return Closed
}

func (c *Circuits) automatic(key string) State {
	home := c.home.Load()
	if home == nil {
		return Closed
	}
	e := home.Find(key)
	if e == nil {
		return Closed
	}
	defer e.Release()
	worst := Closed
	if r := c.record(&e.Value); r != nil {
		for _, cir := range r.all() {
			if cir.cfg == c.settings(key) { // else the next request replaces it
				cir.mu.Lock()
				worst = max(worst, cir.state)
				cir.mu.Unlock()
			}
		}
	}
	return worst
}

// Force holds all circuits of a host, written as for State, Open or Closed until
// Release, whatever becomes of its requests, which are not judged meanwhile. It
// works for a host that no request has gone to yet. Requests that wait for the
// circuit are refused or released at once. Another state is an error, and so is
// a host beyond the 100000 that can be held at a time.
func (c *Circuits) Force(host string, s State) error {
	if s != Open && s != Closed {
		return fmt.Errorf("breaker: Force %s: a circuit can be forced %v or %v, not %v", plain.Name(host), Open, Closed, s)
	}
	for _, key := range hosts.Spelled(host) {
		before := c.State(key)
		c.mu.Lock()
		if _, ok := c.forced[key]; !ok && len(c.forced) >= maxForced {
			c.mu.Unlock()
			return fmt.Errorf("breaker: Force %s: %d hosts are forced already, which is the most", plain.Name(host), maxForced)
		}
		c.forced[key] = &hold{state: s, since: time.Now()}
		c.nforced.Store(int64(len(c.forced)))
		c.mu.Unlock()
		c.reset(key, before, s, byHand(s))
	}
	return nil
}

// Release ends what Force began. The circuits of the host go on by themselves,
// closed and with nothing counted.
func (c *Circuits) Release(host string) {
	for _, key := range hosts.Spelled(host) {
		c.mu.Lock()
		was, ok := c.forced[key]
		delete(c.forced, key)
		c.nforced.Store(int64(len(c.forced)))
		c.mu.Unlock()
		if ok {
			c.reset(key, was.state, Closed, "released by hand")
		}
	}
}

// held returns the operator's word about a canonical host.
func (c *Circuits) held(key string) (State, bool) {
	if c.nforced.Load() == 0 {
		return Closed, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h, ok := c.forced[key]
	if !ok {
		return Closed, false
	}
	return h.state, true
}

// hold is an operator's word about a host.
type hold struct {
	state   State
	since   time.Time
	refused uint64 // requests turned away by it

	fallbacks uint64 // answered by Fallback meanwhile
}

func byHand(s State) string { return "forced " + s.String() + " by hand" }

// refuse is the refusal of a request whose host is held open.
func (c *Circuits) refuse(host string, by trip.Layer) *Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h, ok := c.forced[host]; ok {
		h.refused++
	}
	return &Error{Host: host, State: Open, by: refuser(by)}
}

// mac is how a shard shows.
func (c *Circuits) mac(shard string) string {
	m := hmac.New(sha256.New, c.secret[:])
	m.Write([]byte(shard))
	return hex.EncodeToString(m.Sum(nil)[:4])
}

// adopt makes a chain's table the home of the circuits, if they have none.
func (c *Circuits) adopt(base http.RoundTripper, l trip.Layer) (below, link trip.Link) {
	below = trip.Under(base, l)
	c.home.CompareAndSwap(nil, below.Hosts)
	return below, below.With(l)
}

// hold returns the record of a request's host. If own is set the caller
// releases it.
func (c *Circuits) hold(t *trip.Trip, r *http.Request) (e *hosts.Entry, own bool) {
	home := c.home.Load()
	if t.Table() == home {
		o := t.Host().Occupant(hosts.Breaker)
		if o == nil {
			return t.Entry, false
		}
		if rec, ok := o.(*record); ok && rec.of == c {
			return t.Entry, false
		}
		// Another set of circuits lives in this chain's records.
		c.home.CompareAndSwap(home, hosts.New(hosts.Size))
		home = c.home.Load()
	}
	return home.Acquire(hosts.Key(r), time.Now()), true
}
