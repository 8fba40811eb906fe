package throttle

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/pattern"
	"github.com/weirhttp/weir/internal/table"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/throttle/internal/answer"
	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// Transport is an http.RoundTripper that sends each request when there is room in
// every budget that applies to it, in the order of arrival, and refuses at once
// what cannot be sent in time. Create it with New. It is safe for concurrent use.
// It has goroutines of its own only for calls to a Store; Close ends those.
//
// The package comment says what is promised. Because a unit counts until Per after the
// server has seen it, a rate is at least nine tenths of what is configured, however long
// answers take.
type Transport struct {
	chain
	base      http.RoundTripper
	onward    trip.Onward
	config    Config
	limits    limits
	answers   answer.Reader
	link      trip.Link
	hosts     *hosts.Table
	parts     *table.Table[record]
	innermost bool
	secret    [32]byte // of the HMAC that shows partitions
	domains   *queue.Domains
	learning  *learnTerms // of hosts without terms of their own
	known     *knowledge
	fleet     *fleet.Fleet // nil without a Store

	budgets  atomic.Pointer[budgets] // changes under the shared domain's lock
	changing sync.Mutex              // of those who call SetBudget

	// Under the shared domain's lock.
	pools map[poolKey]*pooled
	looks int // at pools, that newcomers have left
}

// New validates c and returns a Transport that sends through base; nil means
// http.DefaultTransport. An error names the field and its value.
func New(base http.RoundTripper, c Config) (*Transport, error) {
	if base == nil {
		base = http.DefaultTransport
	}
	t := &Transport{base: base, config: c, domains: queue.NewDomains(), pools: make(map[poolKey]*pooled)}
	var err error
	if t.limits, err = bounds(c.MaxWait, c.MaxQueue, c.MaxKeys); err != nil {
		return nil, err
	}
	if err := t.resolve(); err != nil {
		return nil, err
	}
	b, err := newBudgets(1, c.Default, c.Budgets)
	if err != nil {
		return nil, fmt.Errorf("throttle: %w", err)
	}
	t.adopt(b)
	if t.known, err = newKnowledge(c.Learned, t.limits.maxKeys, time.Now()); err != nil {
		return nil, fmt.Errorf("throttle: %w", err)
	}
	if _, err := rand.Read(t.secret[:]); err != nil {
		return nil, fmt.Errorf("throttle: %w", err)
	}
	below := trip.Under(base, trip.Throttle)
	t.innermost = below.Innermost()
	if t.innermost { // another one's records are not ours
		below.Hosts = hosts.New(t.limits.maxKeys)
	}
	t.link = below.With(trip.Throttle)
	t.link.New = newFirst
	t.chain = trip.NewChain(t.link.At(t, (*room)(t)))
	t.hosts = below.Hosts
	t.domains.Before = instant(t.domains.Epoch.Sub(t.hosts.Epoch))
	t.onward = trip.NewOnward(base, trip.Throttle, t.hosts)
	t.hosts.Resize(t.limits.maxKeys)
	t.parts = table.New(t.limits.maxKeys, nil, (*record).idlePart)
	return t, t.keep()
}

// defaultPeek is how many bytes of a body may be read for hints: an error that says when to
// come back is shorter, and a longer body of GraphQL begins with its errors, or has none.
const defaultPeek = 4 << 10

// resolve validates the fields that stand alone and sets their defaults.
func (t *Transport) resolve() error {
	c := &t.config
	if c.MaxPause < 0 {
		return fmt.Errorf("throttle: MaxPause: %v is negative", c.MaxPause)
	}
	if c.Store != nil {
		f, err := c.Fleet.new(c.Store)
		if err != nil {
			return err
		}
		t.fleet = f
		if err := storableAll(c.Default, c.Budgets, f); err != nil {
			return err
		}
	}
	c.MaxPause = cmp.Or(c.MaxPause, defaultMaxPause)
	t.answers = answer.Reader{Peek: cmp.Or(c.PeekBody, defaultPeek), Classify: c.Classify}
	c.Budgets, c.Learned = nil, Knowledge{} // budgets and known have copies
	t.learning = newLearnTerms(c, t.domains.Epoch)
	return nil
}

// keep gives each host that is named outright its place for good.
func (t *Transport) keep() error {
	named := 0
	for text := range t.budgets.Load().by {
		if p, err := pattern.Parse(text); err == nil && !p.Wild {
			if named++; named > t.limits.maxKeys {
				return fmt.Errorf("throttle: MaxKeys: %d is less than the number of hosts that Budgets names", t.limits.maxKeys)
			}
			if entry := t.hosts.Acquire(p.Host, time.Now()); entry.Overflow {
				entry.Release() // by its budgets it has an account of its own there
			}
		}
	}
	return nil
}

// idlePart is record.Idle for a table of records.
func (r *record) idlePart(now time.Time) bool { return !r.made() || r.Idle(now) }

// shown is a partition as people may see it.
func (t *Transport) shown(part string) string {
	h := hmac.New(sha256.New, t.secret[:])
	h.Write([]byte(part))
	return hex.EncodeToString(h.Sum(nil)[:4])
}

// SetBudget changes the budget of a pattern, or adds one. Everyone queued is
// planned anew at once; what was spent stays spent. The zero Budget lifts the
// pattern's limits. Where it has a pool, it becomes the budget of the whole pool.
func (t *Transport) SetBudget(text string, budget Budget) error {
	if err := budget.check(); err != nil {
		return fmt.Errorf("throttle: SetBudget %s: %w", pattern.Quote(text), err)
	}
	if t.fleet != nil {
		if err := storable("SetBudget "+pattern.Quote(text), budget, t.fleet); err != nil {
			return err
		}
	}
	err := t.change(func(b *budgets) (*budgets, error) { return b.with(text, budget) })
	if err != nil {
		return fmt.Errorf("throttle: SetBudget: %w", err)
	}
	return nil
}

// change makes the budgets anew, and plans everyone anew who waits.
func (t *Transport) change(f func(b *budgets) (*budgets, error)) error {
	t.changing.Lock()
	defer t.changing.Unlock()
	next, err := f(t.budgets.Load())
	if err != nil {
		return err
	}
	e := t.domains.Shared.Lock()
	next.version = t.budgets.Load().version + 1 // as a newcomer may have made room among the pools
	t.adopt(next)
	e.Unlock()
	t.each(func(r *record) {
		e, _, _ := r.current()
		e.Unlock()
	})
	return nil
}

// Budgets returns the budgets as they are now, by pattern, with Default under
// "". A pattern has the spelling of [Config].Budgets or SetBudget. The copy is
// the caller's.
func (t *Transport) Budgets() map[string]Budget {
	b := t.budgets.Load()
	list := make(map[string]Budget, len(b.by)+1)
	for text, budget := range b.by {
		list[text] = budget.clone()
	}
	list[""] = b.other.budget.clone()
	return list
}

// adopt makes b what counts from now on. If others may look, the shared domain's
// lock is held.
func (t *Transport) adopt(b *budgets) {
	t.domains.Walls.Store(b.aligned())
	t.budgets.Store(b)
}

// each calls f for every record, no lock held.
func (t *Transport) each(f func(r *record)) {
	call := func(r *record) {
		f(r)
		for _, o := range r.others() {
			f(o)
		}
	}
	t.hosts.All(func(entry *hosts.Entry) {
		if o := entry.Value.Occupant(hosts.Throttle); o != nil {
			call(o.(*record))
		}
	})
	t.parts.All(func(entry *table.Entry[record]) {
		if entry.Value.made() {
			call(&entry.Value)
		}
	})
}

// Pause lets nothing through to host, all its partitions included, until the
// given time. Those that wait and cannot wait that long are refused at once.
// host is spelled as in a URL, or is one: "api.example.com", "127.0.0.1:8080";
// port 80 or 443 may be left out. It need not have been called before.
func (t *Transport) Pause(host string, until time.Time) {
	for _, key := range hosts.Spelled(host) {
		t.pauseHost(key, until, "paused by hand")
	}
}

// Resume ends a pause of host, by hand or by the server's word. host is spelled
// as for Pause.
func (t *Transport) Resume(host string) {
	for _, key := range hosts.Spelled(host) {
		t.pauseHost(key, time.Time{}, "")
	}
}

// pauseHost is Pause for a canonical name, and Resume if until is zero.
func (t *Transport) pauseHost(key string, until time.Time, why string) {
	entry := t.hosts.Acquire(key, time.Now())
	defer entry.Release()
	r := t.of(entry, key)
	e := r.lock()
	now := e.Now()
	at, sooner := now, false
	if until.IsZero() {
		r.lift(e, now)
		r.wake(now)
	} else {
		at = now.Add(time.Until(until))
		sooner = at < r.Gate.Paused
		r.rest(now, at, sooner)
	}
	r.shut(e, now, at, why)
	e.Unlock()
	t.tellHost(key, until, sooner)
	t.parts.All(func(entry *table.Entry[record]) {
		p := &entry.Value
		if !p.made() || p.host != key {
			return
		}
		e := p.lock()
		defer e.Unlock()
		now := e.Now()
		if until.IsZero() { // the server's word to this partition ends too
			p.shut(e, now, now, "")
			p.lift(e, now)
			p.wake(now)
		} else {
			p.rest(now, at, sooner)
		}
		e.Replan(now, &p.Group)
	})
}

// CloseIdleConnections forwards to the base.
func (t *Transport) CloseIdleConnections() { trip.CloseIdle(t.base) }

// Close gives back what was booked ahead in the Store and waits for calls to
// it, a second or a few times Fleet.Deadline; requests are refused from then on.
// Without a Store there is nothing to do.
func (t *Transport) Close() error {
	t.fleet.Close()
	return nil
}
