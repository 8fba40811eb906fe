package throttle

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/internal/table"
	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// Limiter keeps budgets by key, without HTTP: so many posts a minute for each
// user, or a batch job's writes a second. Its rules are those of the [Transport]'s
// queue. Create it with NewLimiter. It is safe for concurrent use, starts
// goroutines only for calls to a Store, and keeps at most MaxKeys keys.
//
// Take waits for room, Try does not. A unit counts from its grant. A place in
// flight, for budgets with InFlight, is held from Take until Settle or Cancel of
// its grant; Try and TakeUpTo need one to be free but hold none.
type Limiter struct {
	domains *queue.Domains
	limits  limits
	rules   *rules
	keys    *table.Table[kept]
	lane    func(context.Context) string
	onWait  func(Wait)
	fleet   *fleet.Fleet // nil without a Store

	over       map[string]*subject // by rule: what keys share for which there was no room. Under the shared domain's lock
	overflowed atomic.Int64        // calls of such keys
}

// NewLimiter validates c and returns a Limiter. An error names the field, and
// the key or pattern of Budgets. Budgets with a Pool are an error: a Limiter's
// keys have budgets of their own. So are two patterns that name some key and
// have as many characters, stars aside, and a Default beside Budget.
func NewLimiter(c LimiterConfig) (*Limiter, error) {
	lim, err := bounds(c.MaxWait, c.MaxQueue, c.MaxKeys)
	if err != nil {
		return nil, err
	}
	l := &Limiter{domains: queue.NewDomains(), limits: lim, lane: c.Lane, onWait: c.OnWait, over: make(map[string]*subject)}
	fits := func(string, Budget) error { return nil }
	if c.Store != nil {
		if l.fleet, err = c.Fleet.new(c.Store); err != nil {
			return nil, err
		}
		fits = func(field string, b Budget) error { return storable(field, b, l.fleet) }
	}
	if l.rules, err = newRules(&c, l.domains, fits); err != nil {
		return nil, err
	}
	l.keys = table.New(lim.maxKeys, nil, l.idle)
	return l, nil
}

// Take waits until key has room for c, at most until ctx ends or MaxWait has
// passed, and spends it. A wait that cannot end in time is refused at once with
// an [*Error], and so is a cost that never fits; nothing is spent then. When ctx
// is cancelled, Take returns its cause and has spent nothing.
func (l *Limiter) Take(ctx context.Context, key string, c Cost) (g Grant, err error) {
	if l.fleet != nil {
		return l.TakeAll(ctx, []string{key}, c)
	}
	err = l.take(ctx, key, want{cost: c}, &g)
	return g, err
}

// TakeUpTo takes as many of unit as there are, at most the given number, and
// returns how many that were. If there are none it waits for the first, as Take
// does. What may have to be given back takes TakeSome.
func (l *Limiter) TakeUpTo(ctx context.Context, key, unit string, most int64) (int64, error) {
	_, n, err := l.part(ctx, key, want{unit: unit, upTo: most})
	return n, err
}

// TakeSome is TakeUpTo with a Grant, by which a place in flight is held, and what
// was taken can go back or be settled. A most of zero or less takes nothing.
func (l *Limiter) TakeSome(ctx context.Context, key, unit string, most int64) (Grant, int64, error) {
	return l.part(ctx, key, want{unit: unit, upTo: most, place: true})
}

// part takes a part of what m asks for, and says how much.
func (l *Limiter) part(ctx context.Context, key string, m want) (g Grant, n int64, err error) {
	if m.upTo <= 0 {
		return g, 0, nil
	}
	m.unit = unitName(m.unit)
	if l.fleet != nil {
		return l.takePartShared(ctx, key, m)
	}
	if err = l.take(ctx, key, m, &g); err == nil {
		n = g.some(m.upTo)
	}
	return g, n, err
}

// some is how many units g has; most, if nothing limits them.
func (g *Grant) some(most int64) int64 {
	for _, d := range g.needs() {
		if d.N != 0 && (g.small != nil || d.Account.Label.Unit != "") {
			return d.N
		}
	}
	return most
}

// want is what a call of one key asks for. An ask is some five times as large: it is
// not made where it would lie on the stack of a goroutine that waits.
type want struct {
	cost  Cost
	unit  string // of a request for a part; "": none
	upTo  int64  // of that one: so many at most
	place bool   // that one holds its place in flight
}

// to makes the zero q an ask for m of s.
func (m *want) to(q *ask, s *scope) {
	q.cost, q.unit, q.place, q.UpTo = m.cost, m.unit, m.place, m.upTo
	q.to(s)
}

// units is how many units a small key of r is drawn on for m.
func (m *want) units(r *rule) int64 {
	if m.unit == "" {
		return r.units(m.cost)
	}
	if r.small.Unit == m.unit {
		return 1
	}
	return 0
}

// take makes g a Grant of m. If it returns an error there is none.
func (l *Limiter) take(ctx context.Context, key string, m want, g *Grant) error {
	if err := begin(ctx, m.cost); err != nil {
		return err
	}
	k, e, s := l.meet(key, true)
	switch {
	case k == nil && s == nil: // most likely this one has to wait, too: the lock is taken once for that
		return l.takeLater(ctx, key, m, g)
	case s == nil:
		if k.take(g, m.units(k.rule), m.upTo) {
			return nil
		}
		e, s = k.grow(l.domains, key)
	}
	if over, err := takeFrom(m, e, s, g); over {
		return err
	}
	return l.takeLater(ctx, key, m, g)
}

// takeFrom is take for a key that is not small, whose lock is held and given up, if it
// need not wait: over says that all is done.
func takeFrom(m want, e *queue.Domain, s *subject, g *Grant) (over bool, err error) {
	defer e.Unlock()
	if s.rule.err != nil {
		return true, s.rule.err
	}
	var q ask
	m.to(&q, &s.scope)
	now := e.Now()
	var room [4]queue.Need
	needs := q.scope.needs(room[:0], &q)
	if !e.Enter(now, needs, &q.Request) {
		return false, nil
	}
	q.scope.counters.granted++
	if q.UpTo > 0 && !q.place {
		e.Free(now, &queue.Permit{Needs: needs, Granted: now, Answered: now})
	}
	s.grant(g, needs, now)
	return true, nil
}

// begin returns why a call cannot even begin.
func begin(ctx context.Context, c Cost) error {
	if c != nil {
		if err := c.check(); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// takeLater is take that may wait, and allocates. A key somebody waits for is
// held. The stack of a goroutine doubles when it is used up, so little is kept on it
// while it waits: what the waiter needs is made for it at once, and what begins and
// ends the wait are functions of their own.
func (l *Limiter) takeLater(ctx context.Context, key string, m want, g *Grant) error {
	q := new(ask)
	p := l.wish(ctx, q)
	entry, e, s := l.lockHeld(key)
	defer entry.Release()
	if s.rule.err != nil {
		defer e.Unlock()
		return s.rule.err
	}
	m.to(q, &s.scope)
	at := e.Now()
	var room [2]queue.Need
	drawn, over, err := q.nowLocked(e, at, room[:0], &p)
	if !over {
		drawn, at, _, err = q.waitLocked(e, at, drawn, &p)
	}
	if err != nil {
		if e, ok := err.(*Error); ok && s.over {
			e.Key = key
		}
		return err
	}
	s.granted(g, drawn, at, m.upTo > 0 && !m.place)
	return nil
}

// granted makes g a Grant of what somebody has waited for, whose places in flight
// are free at once if that is said.
func (s *subject) granted(g *Grant, drawn []queue.Need, at instant, free bool) {
	e := s.lock()
	defer e.Unlock()
	if free {
		e.Free(e.Now(), &queue.Permit{Needs: drawn, Granted: at, Answered: at})
	}
	s.grant(g, drawn, at)
}

// wish is how long a call with this context may wait, and q who goes first.
func (l *Limiter) wish(ctx context.Context, q *ask) wish {
	p := wish{Patience: queue.Patience{Ctx: ctx, Full: maxWaitFrom(ctx, l.limits.maxWait), Queue: l.limits.maxQueue}, onWait: l.onWait}
	p.Most = p.Full
	q.Priority = priorityFrom(ctx)
	if l.lane != nil {
		q.Lane = l.lane(ctx)
	}
	return p
}

// Pause lets nothing through for key until the given time: a penalty for one
// that broke the rules. A time that has passed ends the pause. Those that wait
// and cannot wait that long are refused at once. Of a key beyond MaxKeys it
// pauses all that share its account, unless there is a Store.
func (l *Limiter) Pause(key string, until time.Time) {
	e, s := l.lock(key)
	defer e.Unlock()
	now := e.Now()
	t := now.Add(time.Until(until))
	sooner := t < s.Gate.Paused
	if l.fleet != nil {
		l.fleet.Pause(key, until, sooner || s.over)
		if s.over {
			return
		}
	}
	if sooner {
		s.wake(now)
	}
	if t > now {
		s.quiet(now, t)
	}
	s.shut(e, now, t, "paused by hand")
	for g := range s.joint {
		e.Replan(now, g)
	}
}
