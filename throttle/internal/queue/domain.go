package queue

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Domains are those of one owner: a Transport or a Limiter. Their instants count
// from one moment, so one that is taken in one of them can be compared in another.
type Domains struct {
	Epoch   time.Time     // the time of instant 0; does not change
	Clock   meter.Wall    // the wall clock of accounts with meter.Spec.Align
	Before  meter.Instant // time from the beginning of the order of arrival to Epoch; does not change
	Walls   atomic.Bool   // set if there may be such accounts; otherwise Clock is not kept
	Shared  *Domain       // of groups that have no domain of their own; Join never ends it
	gate    Label         // of the gates of all groups
	joining sync.Mutex    // held while the locks of two domains are
	waiters atomic.Uint64 // how many requests have waited
}

// A Domain is a lock and what it guards. Its methods are called with the lock held and never
// block, except Lock. While nobody waits it has no timer and hardly any memory.
type Domain struct {
	mu      sync.Mutex
	last    meter.Instant
	order   uint64 // what Arrive returned last
	of      *Domains
	into    atomic.Pointer[Domain] // the domain to which it was joined; nil: to none. It is set once, with joining held, too
	joined  int32                  // how many domains were joined to it
	Waiting int32                  // requests that wait
	crowd   *crowd                 // nil: nobody waits
	waits   atomic.Bool            // there is a crowd
}

// A crowd is the part of a domain that is needed only while somebody waits.
type crowd struct {
	dirty  []*waitlist   // to be planned anew
	expiry expiry        // of those whose time ends
	timer  *time.Timer   // for expiry
	wake   meter.Instant // when timer fires; Never: it does not

	lists   []*waitlist      // all
	drawn   map[*Account]int // without a group: so many draw on it, whether they wait for it or not
	redraws []*Group         // to be gone on with, and so are reviews and what is dirty
	marks   []*marking       // likewise
	reviews []*review
	strays  []expiry // from domains that were joined: they are to come into expiry. One that has no index waits no more
	working bool     // a timer goes on with them
}

// NewDomains returns Domains that have only the shared one.
func NewDomains() *Domains {
	d := &Domains{Epoch: time.Now().Add(-1), gate: Label{Text: "pause"}} // no instant is zero
	d.Clock.Set(d.Epoch.UnixNano())
	d.Shared = d.New()
	return d
}

// New returns a domain in which nobody waits.
func (d *Domains) New() *Domain {
	e := new(Domain)
	d.Begin(e)
	return e
}

// Begin makes the zero e the same as what New returns.
func (d *Domains) Begin(e *Domain) { e.of, e.last = d, 1 }

// Share makes the zero e a domain that is joined to the shared one.
func (d *Domains) Share(e *Domain) {
	d.Begin(e)
	e.into.Store(d.Shared)
}

// NewGate returns the gate of a group. The caller sets its Group.
func (d *Domains) NewGate() Account { return Account{Meter: meter.Open{}, Label: &d.gate} }

// Read reads the clock. It needs no lock; see Domain.Now for when to use which.
func (d *Domains) Read() meter.Instant { return meter.Instant(time.Since(d.Epoch)) }

// Lock locks e, or the domain to which e was joined, and returns the one that is locked. The
// caller uses that one, and calls its Unlock.
func (e *Domain) Lock() *Domain {
	e.mu.Lock()
	if e.into.Load() == nil {
		return e
	}
	return e.follow()
}

// follow is Lock for a domain that is locked and was joined to another.
func (e *Domain) follow() *Domain {
	into := e.into.Load()
	e.mu.Unlock()
	return into.Lock()
}

// Is reports whether o is e or was joined to it. e's lock is held.
func (e *Domain) Is(o *Domain) bool {
	for ; o != nil; o = o.into.Load() {
		if o == e {
			return true
		}
	}
	return false
}

// Unlock releases the lock.
func (e *Domain) Unlock() { e.mu.Unlock() }

// Join makes one domain of two and returns it. Requests that wait or are under way in
// either belong to that one from then on, for good. The caller holds no lock.
func Join(a, b *Domain) *Domain {
	d := a.of
	d.joining.Lock()
	defer d.joining.Unlock()
	for a.into.Load() != nil {
		a = a.into.Load()
	}
	for b.into.Load() != nil {
		b = b.into.Load()
	}
	switch {
	case a == b:
		return a
	case a == d.Shared, b != d.Shared && a.joined > b.joined: // the smaller one is joined to the larger one, so that chains of joins stay short
		a, b = b, a
	}
	a.mu.Lock() // nobody else locks two, so in any order
	defer a.mu.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last, b.order = max(b.last, a.last), max(b.order, a.order)
	a.into.Store(b)
	b.joined += a.joined + 1
	a.hand(b)
	return b
}

// hand moves those that wait in e to another domain. Timers of their waitlists and of reviews
// call Lock of e, which leads to that domain.
func (e *Domain) hand(to *Domain) {
	c := e.crowd
	if c == nil {
		return
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	x := to.gather()
	few := c.expiry
	if len(few) > len(x.expiry) {
		few, x.expiry = x.expiry, few
	}
	x.strays = append(append(x.strays, c.strays...), few)
	lists := c.lists
	if len(lists) > len(x.lists) {
		lists, x.lists = x.lists, lists
	}
	for _, l := range lists {
		x.enroll(l)
	}
	for a, n := range c.drawn {
		x.draw(a, n)
	}
	x.dirty = append(x.dirty, c.dirty...)
	x.redraws, x.reviews = append(x.redraws, c.redraws...), append(x.reviews, c.reviews...)
	x.working = x.working || c.working
	to.Waiting += e.Waiting
	e.Waiting = 0
	e.scatter()
	to.settle(to.Now(), slice)
}

// settle moves strays into expiry, as many as left allows, and returns how much of left
// remains. If nothing does, a timer continues.
func (e *Domain) settle(now meter.Instant, left int) int {
	c := e.crowd
	for len(c.strays) > 0 && left > 0 {
		list := c.strays[0]
		if len(list) == 0 {
			c.strays = c.strays[1:]
			continue
		}
		if w := list[0].w; w.inExpiry >= 0 {
			c.expiry.push(w)
		}
		c.strays[0] = list[1:]
		left -= look
	}
	if e.watch(now); left <= 0 {
		e.later(c)
	}
	return left
}

// gather returns the crowd of e, and makes it if there is none.
func (e *Domain) gather() *crowd {
	if e.crowd == nil {
		e.crowd = &crowd{wake: meter.Never}
		e.waits.Store(true)
	}
	return e.crowd
}

// scatter undoes gather.
func (e *Domain) scatter() {
	e.crowd = nil
	e.waits.Store(false)
}

// Waits reports whether somebody waits in e. It needs no lock, and so may be out of date.
func (e *Domain) Waits() bool { return e.waits.Load() }

// Now reads the clock. Instants that are passed to meters come from here, under the lock, so
// that they do not step back.
func (e *Domain) Now() meter.Instant {
	if e.of.Walls.Load() {
		t := time.Now()
		e.last = max(e.last, meter.Instant(t.Sub(e.of.Epoch)))
		e.of.Clock.Keep(t.UnixNano() - int64(e.last))
		return e.last
	}
	e.last = max(e.last, e.of.Read())
	return e.last
}

// NowFrom is Now without reading the clock again: at is a reading from before the lock was
// taken. If a later instant was seen meanwhile, it returns that. It is for events that have
// happened already; grants need Now.
func (e *Domain) NowFrom(at meter.Instant) meter.Instant {
	if e.of.Walls.Load() {
		return e.Now()
	}
	e.last = max(e.last, at)
	return e.last
}

// Arrive returns the place in the order of arrival of a request that came at now, for
// Request.Seq. It is the time in nanoseconds, from a moment that is the same for all domains,
// or one more than the last place if that is larger. So places of different domains can be
// compared, also with those of hosts.Table.Arrive.
func (e *Domain) Arrive(now meter.Instant) uint64 {
	e.order = max(e.order+1, uint64(max(0, now+e.of.Before)))
	return e.order
}

// Last is the latest reading of the clock.
func (e *Domain) Last() meter.Instant { return e.last }

// Check returns an error if e breaks its invariants, for tests. It is called just after Lock:
// then every change is planned, expiry has no waiters that have gone, and there is a crowd
// only if somebody waits.
func (e *Domain) Check() error {
	c := e.crowd
	switch {
	case c == nil && e.Waiting > 0, c != nil && e.Waiting == 0, e.Waits() != (c != nil):
		return fmt.Errorf("queue: %d wait, and their crowd is %v", e.Waiting, c)
	case c != nil && (len(c.dirty) > 0 && !c.working || len(c.expiry) > int(e.Waiting)):
		return fmt.Errorf("queue: %d waitlists are not planned; the time of %d waiters ends, of %d", len(c.dirty), len(c.expiry), e.Waiting)
	}
	return nil
}
