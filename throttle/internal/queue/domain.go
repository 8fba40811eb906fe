package queue

import (
	"container/heap"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Domains are those of one owner: a Transport or a Limiter. Their instants count
// from one moment, so one that is taken in one of them can be compared in another.
type Domains struct {
	Epoch   time.Time     // instant 0, about; does not change
	Clock   meter.Wall    // of accounts that look at it
	Before  meter.Instant // from what the order of arrival counts to Epoch; does not change
	Walls   atomic.Bool   // some may; false: Clock is not kept
	Shared  *Domain       // of all that has no domain of its own; Join never ends it
	gate    Label         // of every group's gate
	joining sync.Mutex    // of those who hold the locks of two domains
	waiters atomic.Uint64 // so many have waited
}

// A Domain is a lock and what it guards. It is arithmetic on instants: methods are
// called with the lock held and never block. As long as nobody waits it owns no
// timer and hardly any memory.
type Domain struct {
	mu      sync.Mutex
	last    meter.Instant
	order   uint64 // the last that Arrive returned
	of      *Domains
	into    atomic.Pointer[Domain] // that has taken its place; nil: none. Changes once, under joining as well
	joined  int32                  // that it has taken the place of
	Waiting int32                  // requests
	crowd   *crowd                 // nil: nobody waits
}

// A crowd is what a domain needs as long as somebody waits.
type crowd struct {
	dirty  []*waitlist            // to be planned anew
	expiry heaped[*Waiter, byEnd] // of those whose time ends
	timer  *time.Timer            // for expiry
	wake   meter.Instant          // when timer fires; Never: it does not

	lists   []*waitlist      // all
	drawn   map[*Account]int // without a group: so many draw on it, whether they wait for it or not
	redraws []*Group         // to be gone on with, and so are reviews and what is dirty
	marks   []*marking       // likewise
	reviews []*review
	strays  [][]*Waiter // from domains that were joined: they are to come into expiry. One that has no index waits no more
	working bool        // a timer goes on with them
}

// NewDomains returns domains of which there is but the shared one.
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

// Begin makes of the zero e what New returns.
func (d *Domains) Begin(e *Domain) { e.of, e.last = d, 1 }

// Share makes of the zero e a domain that is joined to the shared one.
func (d *Domains) Share(e *Domain) {
	d.Begin(e)
	e.into.Store(d.Shared)
}

// NewGate makes the gate of a group, which is to be its Group.
func (d *Domains) NewGate() Account { return Account{Meter: meter.Open{}, Label: &d.gate} }

// Read reads the clock without a lock.
func (d *Domains) Read() meter.Instant { return meter.Instant(time.Since(d.Epoch)) }

// Lock takes the lock of e, or of the domain that has taken e's place, and returns
// the one whose lock it is. Until Unlock nothing else does.
func (e *Domain) Lock() *Domain {
	e.mu.Lock()
	if e.into.Load() == nil {
		return e
	}
	return e.follow()
}

// follow is Lock of a domain that was joined to another, and is locked.
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

// Unlock gives the lock up.
func (e *Domain) Unlock() { e.mu.Unlock() }

// Join makes one domain of two and returns it. All that waits and is under way in
// either goes on in that one, for good: what a request holds may be given back long
// after. No lock is held.
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
	case a == d.Shared, b != d.Shared && a.joined > b.joined: // so that nobody has a long way to the last
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

// hand gives those that wait in e to another domain. The timers of their waitlists
// and of reviews find it by e.
func (e *Domain) hand(to *Domain) {
	c := e.crowd
	if c == nil {
		return
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	x := to.gather()
	few := c.expiry.a
	if len(few) > len(x.expiry.a) {
		few, x.expiry.a = x.expiry.a, few
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
	e.Waiting, e.crowd = 0, nil
	to.settle(to.Now(), slice)
}

// settle lets as many strays as are left of a slice come into the order of those whose
// time ends, and returns how much of it is left over. If nothing is, it goes on by
// itself.
func (e *Domain) settle(now meter.Instant, left int) int {
	c := e.crowd
	for len(c.strays) > 0 && left > 0 {
		list := c.strays[0]
		if len(list) == 0 {
			c.strays = c.strays[1:]
			continue
		}
		if w := list[0]; w.inExpiry >= 0 {
			heap.Push(&c.expiry, w)
		}
		c.strays[0] = list[1:]
		left -= look
	}
	if e.watch(now); left <= 0 {
		e.later(c)
	}
	return left
}

// gather returns the crowd of e, made if need be.
func (e *Domain) gather() *crowd {
	if e.crowd == nil {
		e.crowd = &crowd{wake: meter.Never}
	}
	return e.crowd
}

// Now reads the clock. Only now, taken under the lock, is ever compared with
// anything: time does not step back.
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

// NowFrom is Now as of a reading of the clock that was taken before the lock, if
// nothing later has been seen. It is for what has happened already; what is
// granted needs Now.
func (e *Domain) NowFrom(at meter.Instant) meter.Instant {
	if e.of.Walls.Load() {
		return e.Now()
	}
	e.last = max(e.last, at)
	return e.last
}

// Arrive returns the place in the order of arrival of a request that came at now,
// for Request.Seq: the time, in nanoseconds since a moment that is from before
// all of Domains, or one more than the last if that is later. So those of domains
// that are joined can be compared, and what others count in this way.
func (e *Domain) Arrive(now meter.Instant) uint64 {
	e.order = max(e.order+1, uint64(max(0, now+e.of.Before)))
	return e.order
}

// Last is the latest reading of the clock.
func (e *Domain) Last() meter.Instant { return e.last }

// Check returns what is wrong with e, if its lock was free until now: then no
// change is left unplanned, nobody has gone but in the list of those whose time
// ends, and where nobody waits nothing is kept for it. It is for tests.
func (e *Domain) Check() error {
	c := e.crowd
	switch {
	case c == nil && e.Waiting > 0, c != nil && e.Waiting == 0:
		return fmt.Errorf("queue: %d wait, and their crowd is %v", e.Waiting, c)
	case c != nil && (len(c.dirty) > 0 && !c.working || len(c.expiry.a) > int(e.Waiting)):
		return fmt.Errorf("queue: %d waitlists are not planned; the time of %d waiters ends, of %d", len(c.dirty), len(c.expiry.a), e.Waiting)
	}
	return nil
}
