package throttle

import (
	"context"
	"time"

	"github.com/weirhttp/weir/throttle/internal/fleet"
)

// A Limiter with a Store asks its own queue first, which keeps priorities, lanes
// and the whole rate, then the store, which has the last word.

// shared is what key draws on in the store. Rates are the key's own: two
// processes that configure a key differently share what they name alike.
func (l *Limiter) shared(key string) []fleet.Key {
	p := l.plans[key]
	if p == nil {
		p = l.other
	}
	return []fleet.Key{{ID: key, Name: key, Rates: p.specs}}
}

func (l *Limiter) takeShared(ctx context.Context, key string, q *ask) (Grant, error) {
	begin := time.Now()
	g, err := l.take(ctx, key, q)
	if err != nil {
		return g, err
	}
	booked, refusal := l.fleet.Book(ctx, l.shared(key), q.cost, fleet.Options{Priority: priorityFrom(ctx), MaxWait: l.patience(ctx, begin)})
	if refusal != nil {
		g.Cancel()
		return Grant{}, refusedByStore(refusal)
	}
	g.fleet = booked
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
		if d.N != 0 && d.Account.Label.Unit != "" {
			n = d.N
		}
	}
	if n == 0 {
		n = q.UpTo // nothing limits it here
	}
	keys := l.shared(key)
	part := min(n, max(1, l.sharedRoom(keys, q.unit)))
	for {
		wait := l.patience(ctx, begin)
		if part > 1 {
			wait = -1
		}
		cost := Cost{requests: 0}
		cost[q.unit] = part
		booked, refusal := l.fleet.Book(ctx, keys, cost, fleet.Options{Priority: priorityFrom(ctx), MaxWait: wait})
		if refusal == nil {
			g.fleet = booked
			break
		}
		if part == 1 || ctx.Err() != nil {
			g.Cancel()
			return 0, refusedByStore(refusal)
		}
		part = max(1, min(part-1, l.sharedRoom(keys, q.unit)))
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
	keys := l.shared(key)
	if _, refusal := l.fleet.Book(context.Background(), keys, c, fleet.Options{MaxWait: -1}); refusal != nil {
		g.Cancel()
		d.Allowed, d.RetryAfter = false, unknown
		if refusal.Reason != fleet.NeverFits {
			d.RetryAfter = refusal.Wait
		}
	}
	left, full := l.fleet.Left(keys, c)
	d.Remaining, d.ResetAfter = min(d.Remaining, left), max(d.ResetAfter, full)
	return d
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
	if l.fleet != nil {
		l.fleet.Close()
	}
	return nil
}

// StoreState is how the Store last answered; StoreUp without one.
func (l *Limiter) StoreState() StoreState {
	if l.fleet == nil {
		return StoreUp
	}
	return StoreState(l.fleet.State())
}
