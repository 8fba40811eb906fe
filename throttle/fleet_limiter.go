package throttle

import (
	"context"
	"math"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// A Limiter with a Store asks its own queue first, which keeps priorities, lanes
// and the whole rate, then the store, which has the last word.

// shared is what key draws on in the store. Rates are the key's own: two
// processes that configure a key differently share what they name alike.
func (l *Limiter) shared(key string) []fleetDraw {
	p := l.plans[key]
	if p == nil {
		p = l.other
	}
	return []fleetDraw{{key: key, name: key, rates: p.budget.Rates}}
}

func (l *Limiter) takeShared(ctx context.Context, key string, q *ask) (Grant, error) {
	begin := time.Now()
	g, err := l.take(ctx, key, q)
	if err != nil {
		return g, err
	}
	g.fleet, err = l.fleet.take(ctx, l.shared(key), q.cost, priorityFrom(ctx), l.patience(ctx, begin))
	if err != nil {
		g.Cancel()
		return Grant{}, err
	}
	return g, nil
}

// patience is what is left of MaxWait since begin.
func (l *Limiter) patience(ctx context.Context, begin time.Time) time.Duration {
	return max(0, maxWaitFrom(ctx, l.limits.maxWait)) - time.Since(begin)
}

// takePartShared takes what both have, or waits for one. What the store has is
// a guess from its last answer; if it was too high, a smaller part is tried.
func (l *Limiter) takePartShared(ctx context.Context, key string, q *ask) (int64, error) {
	begin := time.Now()
	g, err := l.take(ctx, key, q)
	if err != nil {
		return 0, err
	}
	n := int64(0)
	for _, d := range g.draws() {
		if d.n != 0 && d.a.terms.unit != "" {
			n = d.n
		}
	}
	if n == 0 {
		n = q.upTo // nothing limits it here
	}
	draws := l.shared(key)
	part := min(n, max(1, l.fleet.room(draws, q.unit)))
	for {
		wait := l.patience(ctx, begin)
		if part > 1 {
			wait = -1
		}
		cost := Cost{requests: 0}
		cost[q.unit] = part
		g.fleet, err = l.fleet.take(ctx, draws, cost, priorityFrom(ctx), wait)
		if err == nil {
			break
		}
		if part == 1 || ctx.Err() != nil {
			g.Cancel()
			return 0, err
		}
		part = max(1, min(part-1, l.fleet.room(draws, q.unit)))
	}
	if part < n {
		booked := g.fleet
		g.fleet = nil // what is settled is the local part
		g.Settle(Cost{q.unit: part})
		g.fleet = booked
	}
	return part, nil
}

func (l *Limiter) tryShared(key string, c Cost) Decision {
	d, g := l.try(key, c)
	if !d.Allowed {
		return d
	}
	draws := l.shared(key)
	_, err := l.fleet.take(context.Background(), draws, c, 0, -1)
	if err != nil {
		g.Cancel()
		d.Allowed, d.RetryAfter = false, unknown
		if e, ok := err.(*Error); ok && e.Reason != NeverFits {
			d.RetryAfter = e.RetryAfter
		}
	}
	l.fleet.describe(&d, draws, c)
	return d
}

// describe lowers what is left to what the store last said.
func (f *fleet) describe(d *Decision, draws []fleetDraw, c Cost) {
	now := time.Now()
	for _, k := range draws {
		ls, units := storeLimits(k.rates, f.c, now)
		s := f.recall(k.key, len(ls), now)
		for i, l := range ls {
			if c.of(units[l.Unit]) == 0 {
				continue
			}
			room := s.Room(i, l)
			d.Remaining = min(d.Remaining, int64(max(0, room+l.Tolerance())))
			switch l.Kind {
			case store.MeterLimit:
				d.ResetAfter = max(d.ResetAfter, drain(l, l.Size-room))
			case store.CalendarLimit:
				d.ResetAfter = max(d.ResetAfter, l.Ends.Sub(now))
			}
		}
	}
}

// drain is how long a Meter takes to drain units.
func drain(l store.Limit, units float64) time.Duration {
	s := min(units/l.Rate, store.MaxHorizon.Seconds())
	return time.Duration(math.Ceil(s*1e6)) * time.Microsecond
}

// room guesses how many of unit the store would book at once.
func (f *fleet) room(draws []fleetDraw, unit string) int64 {
	now, room := time.Now(), float64(math.MaxInt32)
	for _, k := range draws {
		ls, units := storeLimits(k.rates, f.c, now)
		s := f.recall(k.key, len(ls), now)
		for i, l := range ls {
			if units[l.Unit] == unit {
				room = min(room, s.Room(i, l)+l.Tolerance())
			}
		}
	}
	return int64(max(0, room))
}

// tellPause lets the other processes know of a pause; a time that has passed
// ends it. sooner says that the one before would have ended later, which would
// win if it were not ended first.
func (f *fleet) tellPause(key string, until time.Time, sooner bool) {
	d := time.Until(until)
	if sooner && d > 0 {
		f.tell(key, store.News{Pause: -1})
	}
	if d <= 0 {
		d = -1
	}
	f.tell(key, store.News{Pause: min(d, store.MaxHorizon)})
}

// Close gives back what was booked ahead in the Store and waits for calls to
// it, a second or a few times FleetConfig.Deadline. Take refuses from then on. A
// Limiter without a Store needs no Close.
func (l *Limiter) Close() error {
	if l.fleet != nil {
		l.fleet.close()
	}
	return nil
}

// StoreState is how the Store last answered; StoreUp without one.
func (l *Limiter) StoreState() StoreState {
	if l.fleet == nil {
		return StoreUp
	}
	return l.fleet.guard.now()
}
