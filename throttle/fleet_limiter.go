package throttle

import (
	"context"
	"time"

	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// A Limiter with a Store asks its own queue first, which keeps priorities, lanes
// and the whole rate, then the store, which has the last word.

func (l *Limiter) takeShared(ctx context.Context, keys []string, c Cost, g *Grant) error {
	start := time.Now()
	shared, err := l.shared(keys)
	if err != nil {
		return err
	}
	if len(keys) == 1 {
		err = l.take(ctx, keys[0], want{cost: c}, g)
	} else {
		err = l.takeTogether(ctx, keys, c, g)
	}
	if err != nil {
		return err
	}
	booked, refusal := l.fleet.Book(ctx, shared, c, l.options(ctx, start))
	if refusal != nil {
		g.Cancel()
		*g = Grant{}
		err := refusedByStore(refusal)
		l.takeBack(keys, err)
		return err
	}
	g.fleet = booked
	return nil
}

// options are those of a booking of one who has waited since begin.
func (l *Limiter) options(ctx context.Context, begin time.Time) fleet.Options {
	now := time.Now()
	return fleet.Options{Priority: priorityFrom(ctx), MaxWait: max(0, maxWaitFrom(ctx, l.limits.maxWait)) - now.Sub(begin), Now: now}
}

// takePartShared takes what both have, or waits for one. What the store has is
// a guess from its last answer; if it was too high, a smaller part is tried.
func (l *Limiter) takePartShared(ctx context.Context, key string, m want) (g Grant, n int64, err error) {
	start := time.Now()
	keys, err := l.shared([]string{key})
	if err != nil {
		return g, 0, err
	}
	if err := l.take(ctx, key, m, &g); err != nil {
		return g, 0, err
	}
	n = g.some(m.upTo)
	part := min(n, max(1, l.sharedRoom(keys, m.unit)))
	for {
		o := l.options(ctx, start)
		if part > 1 {
			o.MaxWait = -1
		}
		cost := Cost{requests: 0}
		cost[m.unit] = part
		booked, refusal := l.fleet.Book(ctx, keys, cost, o)
		if refusal == nil {
			if g.fleet = booked; !m.place {
				booked.Done()
			}
			break
		}
		if part == 1 || ctx.Err() != nil {
			g.Cancel()
			err := refusedByStore(refusal)
			l.takeBack([]string{key}, err)
			return Grant{}, 0, err
		}
		part = max(1, min(part-1, l.sharedRoom(keys, m.unit)))
	}
	if part < n {
		e := g.of.lock()
		e.Settle(e.Now(), &queue.Permit{Needs: g.needs(), Granted: g.at, Answered: g.at}, Cost{m.unit: part})
		e.Unlock()
	}
	return g, part, nil
}

func (l *Limiter) tryShared(keys []string, c Cost, held bool) (Grant, Decision) {
	shared, err := l.shared(keys)
	if err != nil {
		return Grant{}, Decision{RetryAfter: unknown}
	}
	g, d := l.tryTogether(keys, c, held)
	if !d.Allowed {
		return Grant{}, d
	}
	booked, refusal := l.fleet.Book(context.Background(), shared, c, fleet.Options{MaxWait: -1})
	if refusal != nil {
		g.Cancel()
		d.Allowed, d.RetryAfter = false, unknown
		if refusal.Reason != fleet.NeverFits {
			d.RetryAfter = refusal.Wait
		}
		l.takeBack(keys, refusedByStore(refusal))
	}
	if !held {
		booked.Done()
	}
	left, full := l.fleet.Left(shared, c)
	d.Remaining, d.ResetAfter = min(d.Remaining, left), max(d.ResetAfter, full)
	if !d.Allowed || !held {
		return Grant{}, d
	}
	g.fleet = booked
	return g, d
}

// takeBack counts what was granted here and refused by the store.
func (l *Limiter) takeBack(keys []string, why error) {
	for _, key := range keys {
		e, s := l.lock(key)
		s.counters.takeBack(e.Now(), why)
		e.Unlock()
	}
}

// sharedRoom guesses how many of unit the store would book at once.
func (l *Limiter) sharedRoom(keys []fleet.Key, unit string) int64 {
	left, _ := l.fleet.Left(keys, Cost{requests: 0, unit: 1})
	return left
}

// Close gives back what was booked ahead in the Store and waits for calls to
// it, a second or a few times FleetConfig.Deadline. Take refuses from then on. A
// Limiter without a Store needs no Close.
func (l *Limiter) Close() error {
	l.fleet.Close()
	return nil
}

// StoreState is how the Store last answered; StoreUp without one.
func (l *Limiter) StoreState() StoreState {
	return StoreState(l.fleet.State())
}
