package throttle

import (
	"sync"
	"sync/atomic"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// kept is what a Limiter keeps of a key. Most keys have one plain rate and let
// through at once whoever comes: such a key is small, a meter and a lock. When
// somebody is refused or has to wait, and for a pause, another budget or a call
// of several keys, it gets a subject beside it, which goes on with the same
// meter. From then on that has all of it, for as long as the key is kept.
//
// Where there are many keys a grant waits for memory more than for anything else. So
// what it needs of one with a Bucket stands in two lines of it, with the entry's key.
type kept struct {
	subject atomic.Pointer[subject] // nil: the key is small. Set once, under mu
	mu      sync.Mutex              // of a small key

	// Of a small key, guarded by mu.
	version uint32         // of the rules, when rule was looked up
	flags   uint8          // bits of word that grants have
	rule    *rule          // nil: the key was not used yet
	word    *atomic.Uint64 // of the newest grants; nil: none yet
	granted int64
	meter   meter.Rated // of rule's only rate; a subject's account has it later
}

// lock takes the lock of k. If k is small that is mu, and there is no subject.
func (k *kept) lock() (*queue.Domain, *subject) {
	if s := k.subject.Load(); s != nil {
		return s.lock(), s
	}
	k.mu.Lock()
	if s := k.subject.Load(); s != nil {
		k.mu.Unlock()
		return s.lock(), s
	}
	return nil, nil
}

// waits reports whether somebody waits for k. It needs no lock, and so may be out of date.
func (k *kept) waits() bool {
	s := k.subject.Load()
	return s != nil && s.home.Waits()
}

// unlock gives up what lock took.
func (k *kept) unlock(e *queue.Domain) {
	if e != nil {
		e.Unlock()
	} else {
		k.mu.Unlock()
	}
}

// asOf is the version of the rules by which k, or its subject, was made or renewed.
func (k *kept) asOf(s *subject) uint32 {
	if s != nil {
		return s.version
	}
	return k.version
}

// now reads the clock for a small key. As in a domain, time does not step back.
func (k *kept) now() instant { return max(k.rule.domains.Read(), k.meter.Seen()) }

// begin makes k, which was not used yet, a small key of r. Nothing was ever taken of it, so its
// meter may begin at the first instant, and the clock is read only for what is taken next.
func (k *kept) begin(r *rule, version uint32) {
	k.rule, k.version = r, version
	k.meter.Begin(1, r.small.Rate, nil)
}

// full is what k would be in those domains if it were not small.
func (k *kept) full(in *queue.Domains, key string) *subject {
	s := &subject{scope: scope{key: key, Group: queue.Group{Gate: in.NewGate()}}}
	if in.Begin(&s.home); k.rule == nil {
		return s
	}
	s.rule, s.version, s.counters.granted = k.rule, k.version, k.granted
	s.Gate.Group = &s.Group
	s.first = &queue.Account{Meter: &k.meter, Label: k.rule.small, Group: &s.Group}
	s.own = []member{{a: s.first}}
	return s
}

// grow ends that k is small, which is locked, and returns its subject, locked.
func (k *kept) grow(in *queue.Domains, key string) (*queue.Domain, *subject) {
	s := k.full(in, key)
	e := s.lock()
	e.NowFrom(k.meter.Seen())
	k.subject.Store(s)
	k.mu.Unlock()
	return e, s
}

// units is how many units a small key of r is drawn on for c.
func (r *rule) units(c Cost) int64 {
	if c == nil {
		return r.usual
	}
	return c.of(r.small.Unit)
}

// take grants n units, or upTo if that is more and as far as they are there, and
// unlocks k. If there is no room it does nothing.
func (k *kept) take(g *Grant, n, upTo int64) bool {
	now, token, ok := k.now(), meter.Token(0), true
	switch {
	case n == 0:
	case upTo > 1 && k.meter.At(now, n) <= now:
		n = max(1, min(upTo, k.meter.State(now).Units()))
		fallthrough
	default:
		token, ok = k.meter.TakeNow(now, n, false)
	}
	if !ok {
		return false
	}
	k.granted++
	k.grant(g, now, n, token)
	k.mu.Unlock()
	return true
}

// grant makes g a Grant of units of k.
func (k *kept) grant(g *Grant, at instant, n int64, token meter.Token) {
	g.small, g.at, g.n = k, at, 1
	g.few[0].N, g.few[0].Token = n, token
	g.word, g.bit = nextFlag(&k.word, &k.flags)
}

// try is Limiter.try for a small key, with g if a Grant is wanted, or if it spends
// nothing Look. It unlocks k. If the answer is no, or c is no cost, it does nothing
// and reports false.
func (k *kept) try(d *Decision, g *Grant, c Cost, spend bool) bool {
	if c != nil && c.check() != nil {
		return false
	}
	now, token, ok := k.now(), meter.Token(0), true
	n := k.rule.units(c)
	switch {
	case n == 0:
	case spend:
		token, ok = k.meter.TakeNow(now, n, false)
	default:
		ok = k.meter.At(now, n) <= now
	}
	if !ok {
		return false
	}
	if spend {
		k.granted++
	}
	if g != nil {
		k.grant(g, now, n, token)
	}
	v := k.meter.State(now)
	k.mu.Unlock()
	d.Allowed, d.ResetAfter = true, v.Full.Until(now)
	d.rate(k.rule.small, &v)
	return true
}

// back gives what a grant took back to a small key.
func (k *kept) back(g *Grant) {
	if d := &g.few[0]; d.N != 0 {
		k.meter.Return(k.now(), d.N, d.Token, g.at, g.at)
	}
}

// settle is queue.Domain.Settle for a small key.
func (k *kept) settle(g *Grant, actual Cost) {
	n, named := actual[k.rule.small.Unit]
	d := &g.few[0]
	switch n = max(0, n); {
	case !named:
	case n > d.N:
		k.meter.Take(k.now(), n-d.N, false)
	case n < d.N:
		k.meter.Return(k.now(), d.N-n, d.Token, g.at, g.at)
	}
}
