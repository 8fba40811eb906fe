package throttle

import (
	"context"
	"fmt"
	"time"

	"github.com/weirhttp/weir/internal/table"
	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// Limiter keeps budgets by key, without HTTP: N posts a minute per user, a
// batch job's writes a second. Its rules are those of the [Transport]'s queue.
// Create it with NewLimiter. It is safe for concurrent use, starts no
// goroutine but for calls to a Store, and keeps at most MaxKeys keys.
//
// Take waits for room, Try does not. A unit counts from its grant. A place in
// flight, for budgets with InFlight, is held from Take until Settle or Cancel of
// its grant; Try and TakeUpTo need one to be free but hold none.
type Limiter struct {
	domains *queue.Domains
	engine  *queue.Domain
	limits  limits
	plans   map[string]*plan // by key
	other   *plan
	keys    *table.Table[scope]
	hot     *table.Entry[scope] // the key used last, held; under the domain's lock
	lane    func(context.Context) string
	onWait  func(Wait)
	bits    *bits        // under the domain's lock
	fleet   *fleet.Fleet // nil without a Store
}

// NewLimiter validates c and returns a Limiter. Budgets with a Pool are an
// error: a Limiter's keys have budgets of their own.
func NewLimiter(c LimiterConfig) (*Limiter, error) {
	lim, err := bounds(c.MaxWait, c.MaxQueue, c.MaxKeys)
	if err != nil {
		return nil, err
	}
	l := &Limiter{domains: queue.NewDomains(), limits: lim, lane: c.Lane, onWait: c.OnWait}
	l.engine = l.domains.Shared
	if l.other, err = limiterPlan("Default", c.Default); err != nil {
		return nil, err
	}
	l.plans = make(map[string]*plan, len(c.Budgets))
	for key, b := range c.Budgets {
		if l.plans[key], err = limiterPlan(fmt.Sprintf("Budgets[%q]", key), b); err != nil {
			return nil, err
		}
	}
	for _, p := range l.plans {
		l.domains.Walls.Add(int64(p.walls()))
	}
	l.domains.Walls.Add(int64(l.other.walls()))
	l.keys = table.New(lim.maxKeys, l.fresh, l.idle)
	if c.Store != nil {
		if l.fleet, err = c.Fleet.new(c.Store); err != nil {
			return nil, err
		}
		if err = storableAll(c.Default, c.Budgets, l.fleet); err != nil {
			return nil, err
		}
	}
	return l, nil
}

func limiterPlan(field string, b Budget) (*plan, error) {
	if err := b.check(); err != nil {
		return nil, fmt.Errorf("throttle: %s.%w", field, err)
	}
	if b.Pool != "" {
		return nil, fmt.Errorf("throttle: %s.Pool: %q: a Limiter's keys have budgets of their own", field, b.Pool)
	}
	return newPlan("", "", b), nil
}

// fresh makes the scope of a new key. The overflow's key is "".
func (l *Limiter) fresh(key string) scope {
	p := l.plans[key]
	if p == nil {
		p = l.other
	}
	e := l.engine
	s := scope{key: key, Group: queue.Group{Gate: l.domains.NewGate()}}
	if p.budget.zero() {
		return s
	}
	e.Lock()
	defer e.Unlock()
	accounts := p.accounts(e.Now(), nil, &l.domains.Clock, nil)
	s.own = make([]member, len(accounts))
	for i, a := range accounts {
		s.own[i].a = a
	}
	return s
}

// idle reports whether nothing would be lost by forgetting s.
func (l *Limiter) idle(s *scope, _ time.Time) bool {
	l.engine.Lock()
	defer l.engine.Unlock()
	return s.idle(l.engine.Now())
}

// Take waits until key has room for c, at most until ctx ends or MaxWait has
// passed, and spends it. A wait that cannot end in time is refused at once with
// an [*Error], and so is a cost that never fits; nothing is spent then. When ctx
// is cancelled, Take returns its cause and has spent nothing.
func (l *Limiter) Take(ctx context.Context, key string, c Cost) (Grant, error) {
	q := ask{cost: c}
	if l.fleet != nil {
		return l.takeShared(ctx, key, &q)
	}
	return l.take(ctx, key, &q)
}

// TakeUpTo takes as many of unit as there are, at most the given number, and
// returns how many that were. If there are none it waits for the first, as Take
// does.
func (l *Limiter) TakeUpTo(ctx context.Context, key, unit string, most int64) (int64, error) {
	if most <= 0 {
		return 0, nil
	}
	if unit == "" {
		unit = requests
	}
	q := ask{unit: unit, Request: queue.Request{UpTo: most}}
	if l.fleet != nil {
		return l.takePartShared(ctx, key, &q)
	}
	g, err := l.take(ctx, key, &q)
	if err != nil {
		return 0, err
	}
	for _, d := range g.draws() {
		if d.N != 0 && d.Account.Label.Unit != "" {
			return d.N, nil
		}
	}
	return most, nil // nothing limits it
}

func (l *Limiter) take(ctx context.Context, key string, q *ask) (Grant, error) {
	if q.cost != nil {
		if err := q.cost.check(); err != nil {
			return Grant{}, err
		}
	}
	if ctx.Err() != nil {
		return Grant{}, context.Cause(ctx)
	}
	q.to(l.lock(key))
	e := l.engine
	now := e.Now()
	var room [4]queue.Need
	draws := q.scope.draws(room[:0], q)
	if e.Enter(now, draws, &q.Request) {
		q.scope.counters.granted++
		if q.UpTo > 0 {
			e.Free(now, &queue.Permit{Needs: draws, Granted: now, Answered: now})
		}
		g := l.grant(draws, now)
		e.Unlock()
		return g, nil
	}
	e.Unlock()
	return l.takeLater(ctx, key, *q)
}

// lock takes the domain's lock and returns the scope of key, which is not
// evicted before that is released.
func (l *Limiter) lock(key string) *scope {
	e := l.engine
	e.Lock()
	for l.hot == nil || l.hot.Key != key || l.hot.Overflow {
		if l.hot != nil {
			l.hot.Release()
			l.hot = nil
		}
		e.Unlock() // the table calls idle, which takes it
		entry := l.keys.Acquire(key, time.Time{})
		e.Lock()
		if l.hot != nil {
			l.hot.Release()
		}
		l.hot = entry
		if entry.Overflow {
			break
		}
	}
	s := &l.hot.Value
	if s.Gate.Group == nil { // fresh from the table, where it stays
		s.Gate.Group = &s.Group
		for _, m := range s.own {
			m.a.Group = &s.Group
		}
	}
	return s
}

// takeLater is the part of take that allocates. A key somebody waits for is
// held.
func (l *Limiter) takeLater(ctx context.Context, key string, q ask) (Grant, error) {
	entry := l.keys.Acquire(key, time.Time{})
	defer entry.Release()
	q.to(&entry.Value)
	p := wish{Patience: queue.Patience{Ctx: ctx, Full: maxWaitFrom(ctx, l.limits.maxWait), Queue: l.limits.maxQueue}, onWait: l.onWait}
	p.Most = p.Full
	q.Priority = priorityFrom(ctx)
	if l.lane != nil {
		q.Lane = l.lane(ctx)
	}
	drawn, at, _, err := q.take(l.engine, nil, &p)
	if err != nil {
		if e, ok := err.(*Error); ok && e.Key == "" {
			e.Key = key // of the overflow
		}
		return Grant{}, err
	}
	e := l.engine
	e.Lock()
	defer e.Unlock()
	if q.UpTo > 0 {
		e.Free(e.Now(), &queue.Permit{Needs: drawn, Granted: at, Answered: at})
	}
	return l.grant(drawn, at), nil
}

// Try spends c if key has room for it now and nobody waits who goes first: its
// priority is zero, and it comes last of those. It never waits. A cost that never fits, or is negative, is not allowed and has
// the longest RetryAfter there is.
func (l *Limiter) Try(key string, c Cost) Decision {
	if l.fleet != nil {
		return l.tryShared(key, c)
	}
	d, _ := l.try(key, c)
	return d
}

func (l *Limiter) try(key string, c Cost) (Decision, Grant) {
	e := l.engine
	q := ask{cost: c}
	q.to(l.lock(key))
	defer e.Unlock()
	now := e.Now()
	var room [4]queue.Need
	draws := q.scope.draws(room[:0], &q)
	d := Decision{}
	switch {
	case c.check() != nil || queue.NeverFits(now, draws) != nil:
		d.RetryAfter = unknown
	case e.Enter(now, draws, &q.Request):
		d.Allowed = true
		q.scope.counters.granted++
		e.Free(now, &queue.Permit{Needs: draws, Granted: now, Answered: now})
	default:
		if drawn, ok := e.Overtake(now, &q.Request, draws); ok {
			draws, d.Allowed = drawn, true
			q.scope.counters.grant(now)
			e.Free(now, &queue.Permit{Needs: draws, Granted: now, Answered: now})
			break
		}
		t, _ := queue.Estimate(now, &q.Request, draws)
		d.RetryAfter = queue.Behind(now, t, draws).Until(now)
	}
	var g Grant
	switch {
	case !d.Allowed:
		q.scope.counters.more().refused++
	case l.fleet != nil:
		g = l.grant(draws, now)
	}
	d.describe(now, draws)
	return d, g
}

// describe fills in what is left, from the account with the least.
func (d *Decision) describe(now instant, draws []queue.Need) {
	found := false
	for i := range draws {
		a := draws[i].Account
		if a.Label.Unit == "" || draws[i].N == 0 {
			continue
		}
		v := a.Meter.State(now)
		if left := min(v.Units(), v.Limit); !found || left < d.Remaining {
			found, d.Limit, d.Remaining = true, v.Limit, left
		}
		d.ResetAfter = max(d.ResetAfter, v.Full.Until(now))
	}
	if !found {
		d.Limit, d.Remaining = int64(unknown), int64(unknown)
	}
}

// Pause lets nothing through for key until the given time: a penalty for one
// that broke the rules. A time that has passed ends the pause. Those that wait
// and cannot wait that long are refused at once.
func (l *Limiter) Pause(key string, until time.Time) {
	e := l.engine
	s := l.lock(key)
	defer e.Unlock()
	now := e.Now()
	t := now.Add(time.Until(until))
	sooner := t < s.Gate.Paused
	if sooner {
		s.wake(now)
	}
	if l.fleet != nil {
		l.fleet.Pause(key, until, sooner)
	}
	if t > now {
		s.quiet(now, t)
	}
	s.shut(e, now, t, "paused by hand")
}
