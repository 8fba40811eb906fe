package throttle

import (
	"context"
	"slices"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/table"
	"github.com/weirhttp/weir/throttle/internal/caller"
	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/internal/queue"
	"github.com/weirhttp/weir/throttle/store"
)

// storeKey names an account in the store: a host or "pool name", the route's
// pattern, and a digest of the partition, which may be a secret. The same in
// every process.
func storeKey(host, route, part string) string {
	key := host
	if route != "" {
		key += " " + route
	}
	if part != "" {
		key += " " + caller.Digest(part)
	}
	return key
}

// shared is r's account in the store: that of the host, or of the partition of it.
func (r *record) shared(ts ...*fleet.Tally) fleet.Key {
	return fleet.Key{ID: storeKey(r.host, "", r.part), Name: r.key, Tallies: ts}
}

// fleetDraws is what p draws on in the store: its host always, for pauses, then
// the routes that match and the pools of either; and what is counted there of limits
// that are found.
func (p *attempt) fleetDraws(q *ask, needs []queue.Need) ([]fleet.Key, *peers) {
	e := p.record.lock()
	defer e.Unlock()
	keys := p.fleetDrawn(e.Now(), q, needs)
	return keys, p.booking()
}

// fleetDrawn is fleetDraws with the lock held.
func (p *attempt) fleetDrawn(now instant, q *ask, needs []queue.Need) []fleet.Key {
	r := p.record
	plan := p.record.t.budgets.Load().whole(r.routes)
	ds := []fleet.Key{r.shared()}
	if plan.budget.Pool == "" {
		ds[0].Rates, ds[0].InFlight = plan.specs, plan.budget.InFlight
	} else {
		ds = p.pooledDraw(ds, plan)
	}
	ds[0].Tallies = p.foundTallies(now, q)
	ds[0].AtOnce = len(ds[0].Tallies) > 0
	ds[0].Tallies = append(ds[0].Tallies, p.tallies(now, q, needs, store.MaxParts-2*len(ds[0].Rates)-2*min(ds[0].InFlight, 1)-len(ds[0].Tallies))...)
	for i := range r.routes.Len() {
		if !q.on(i) {
			continue
		}
		route, plan := r.routes.Route(i)
		switch {
		case plan.budget.zero():
		case plan.budget.Pool != "":
			ds = p.pooledDraw(ds, plan)
		case len(ds) < store.MaxParts:
			ds = append(ds, fleet.Key{ID: storeKey(r.host, route, r.part), Name: r.key, Rates: plan.specs, InFlight: plan.budget.InFlight})
		}
	}
	if k, ok := p.windowKey(q, ds); ok {
		ds = append(ds, k)
	}
	return ds
}

func (p *attempt) pooledDraw(ds []fleet.Key, plan *plan) []fleet.Key {
	key := storeKey("pool "+plan.budget.Pool, "", p.record.part)
	if plan.budget.zero() || len(ds) == store.MaxParts || slices.ContainsFunc(ds, func(d fleet.Key) bool { return d.ID == key }) {
		return ds
	}
	return append(ds, fleet.Key{ID: key, Name: p.record.key, Rates: plan.specs, InFlight: plan.budget.InFlight})
}

// fleetWait is how long p would wait for the store, as far as this process has
// been told. The lock is held.
func (p *attempt) fleetWait(now instant, q *ask, needs []queue.Need) time.Duration {
	if p.record.t.fleet == nil {
		return 0
	}
	return p.record.t.fleet.Outlook(p.fleetDrawn(now, q, needs))
}

// share asks the store for what this process's own budgets granted. What the
// store refuses goes back to them; again says that only others' use of a limit that
// the server states was in the way, for which p waits here. vain counts how often that was so
// in a row; see mostVain.
func (p *attempt) share(ctx context.Context, q *ask, w *wish, waited time.Duration, vain *int) (again bool, err error) {
	begin := time.Now()
	most := w.Most
	if most > 0 {
		most = max(0, most-waited)
	}
	needs := p.permit.Needs
	if *vain >= mostVain {
		needs = nil
	}
	keys, found := p.fleetDraws(q, needs)
	g, refusal := p.record.t.fleet.Book(ctx, keys, q.cost, fleet.Options{Priority: q.Priority, MaxWait: most, Held: true, Heard: found.hears()})
	p.tr.Wait(time.Since(begin))
	e := p.record.lock()
	defer e.Unlock()
	now := e.Now()
	found.booked(now, g)
	p.windowHeard(now, g)
	if refusal == nil {
		p.more().shared = g
		p.endpoint.evidenceNow().resume(now, p.permit.Granted)
		p.permit.Resume(now)
		return false, nil
	}
	if again = refusal.Reason == fleet.Spent; again {
		*vain++
		if ends := spentByOthers(now, needs); ends && waited > 0 {
			*vain = 1
		}
	}
	return again, p.unbooked(e, now, refusal)
}

// unbooked gives back what was granted here, because the store refused it. It returns the error for
// the caller; nil: p waits here.
func (p *attempt) unbooked(e *queue.Domain, now instant, r *fleet.Refusal) (err error) {
	if r.Reason == fleet.Spent {
		p.counts().granted--
	} else {
		err = refusedByStore(r)
		p.counts().takeBack(now, err)
	}
	p.permit.vacate(now, p.endpoint)
	e.Return(now, &p.permit.Permit)
	p.again(now)
	return err
}

// spentByOthers takes in that others have drawn what was left of limits that the server states. It
// reports whether the ends of their windows are known.
func spentByOthers(now instant, needs []queue.Need) (ends bool) {
	ends = true
	for i := range needs {
		if q, ok := needs[i].Account.Meter.(*quota); ok {
			ends = ends && q.Ends()
			if needs[i].Token&markAsks != 0 {
				q.Barred(now)
			}
		}
	}
	return ends
}

// tellFleet lets the other processes know what an answer said, as this process has
// learned it: the pause that it keeps because of s, of which a part may be guessed, and quotas
// that are nearly spent. Those with plenty left are not worth a call.
func (p *attempt) tellFleet(s *headers.Signal) {
	var n store.News
	if s.Throttled || s.RetryAfter.Known {
		e := p.record.lock()
		now, most := e.Now(), p.record.t.terms(p.record.host).MaxPause
		until, sure := p.pausedTo()
		n.Pause = max(0, min(sure.Until(now), until.Until(now), most))
		if n.Guess = max(0, min(until.Until(now), most)); n.Guess <= n.Pause {
			n.Guess = 0
		}
		p.tellRefused()
		e.Unlock()
	}
	if len(s.Limits) > 0 {
		p.watchCounts(s)
	}
	for _, l := range s.Limits {
		if q, ok := statedByServer(l); ok && len(n.Stated) < store.MaxStated {
			if most := p.believed(l); most > 0 {
				q.Reset = min(q.Reset, most)
				n.Stated = append(n.Stated, q)
			}
		}
	}
	if n.Pause > 0 || n.Guess > 0 || len(n.Stated) > 0 {
		p.record.t.fleet.Tell(p.record.shared().ID, n)
	}
}

// believed is for how long others should obey what an answer to p says of a limit,
// who cannot see it contradicted; zero: not at all.
func (p *attempt) believed(l headers.Limit) time.Duration {
	defer p.record.lock().Unlock()
	if p.endpoint == nil {
		return store.MaxHorizon
	}
	p.endpoint.learner.hearFrom(p.endpoint.whereOf(p.r))
	q := p.endpoint.learner.known(&l, p.endpoint)
	switch {
	case q != nil && (q.Ignored() || q.Everywhere()): // all count it, and ask when it comes back
		return 0
	case q == nil || q.Firm():
		return store.MaxHorizon
	}
	return p.record.t.terms(p.record.host).MaxPause
}

// statedByServer returns l if it is a quota of requests with a tenth or less
// left until a reset. Other units and partitions of the server's own are known
// only to the process that reads them: not every request draws on them.
func statedByServer(l headers.Limit) (store.Stated, bool) {
	if !l.Remaining.Known || !l.Reset.Known || l.Partition != "" || l.Unit != requests && l.Unit != "" {
		return store.Stated{}, false
	}
	if l.ResetMeans == headers.Full || l.ResetMeans == headers.Next {
		return store.Stated{}, false // it refills before
	}
	left := max(0, l.Remaining.Value)
	if left > 0 && (!l.Quota.Known || left > l.Quota.Value/10) || left > float64(store.MaxAmount) {
		return store.Stated{}, false
	}
	id := l.Name
	if len(id) > store.MaxID {
		id = id[:store.MaxID]
	}
	return store.Stated{ID: id, Unit: requests, Remaining: int64(left), Reset: min(max(0, l.Reset.Value), store.MaxHorizon)}, true
}

// tellHost lets the other processes know of a pause by hand, or of its end when
// until is zero. Of the host's partitions those are told of that this process
// has met.
func (t *Transport) tellHost(host string, until time.Time, sooner bool) {
	if t.fleet == nil {
		return
	}
	t.fleet.Pause(storeKey(host, "", ""), until, sooner)
	t.parts.All(func(entry *table.Entry[record]) {
		if p := &entry.Value; p.made() && p.host == host {
			t.fleet.Pause(storeKey(host, "", p.part), until, sooner)
		}
	})
}

// StoreState is how the Store last answered; StoreUp without one.
func (t *Transport) StoreState() StoreState {
	return StoreState(t.fleet.State())
}
