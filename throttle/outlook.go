package throttle

import (
	"net/http"
	"time"

	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// Outlook is how long r would wait here and below if it were sent now, and the
// refusal it would meet.
func (t *Transport) Outlook(r *http.Request) (time.Duration, error) {
	tr := trip.From(r.Context())
	if tr == nil || tr.Table != t.hosts {
		entry := t.hosts.Acquire(hostOf(r), time.Now())
		defer entry.Release()
		tr = &trip.Trip{Request: &trip.Request{Entry: entry, Table: t.hosts}}
	}
	return t.ahead(r, tr)
}

// ahead is Outlook within tr.
func (t *Transport) ahead(r *http.Request, tr *trip.Trip) (time.Duration, error) {
	below, err := t.onward.Outlook(r, tr)
	if err != nil || r.URL == nil || r.URL.Host == "" {
		return below, err
	}
	wait, err := t.outlook(r, tr)
	return max(wait, below), err
}

func (t *Transport) outlook(r *http.Request, tr *trip.Trip) (time.Duration, error) {
	p, q := &attempt{tr: tr, r: r}, ask{r: r, Request: queue.Request{Held: true}}
	p.permit.stage = accounted
	defer p.end()
	home, err := p.prepare(t, &q)
	if err != nil {
		return 0, err
	}
	p.rank(r.Context(), &q)
	patience := p.patience(r.Context())
	e, _, now := p.record.current()
	defer e.Unlock()
	p.resolve(now, &q, home)
	patience.Trip = p.endpoint.slow.Usual()
	needs := q.scope.needs(p.room[:0], &q)
	if a := queue.NeverFits(now, needs); a != nil {
		return 0, q.refused(&queue.Refusal{Reason: queue.Unfit, Account: a})
	}
	shared := p.fleetWait(now, &q, needs)
	q.By = &q
	at, a := queue.Estimate(now, &q.Request, needs)
	if a == nil {
		return shared, nil
	}
	if r := queue.TooLate(now, at, a, &q.Request, needs, &patience.Patience); r != nil {
		return r.Wait, q.refused(r)
	}
	if at == never {
		at = now
	}
	return max(shared, at.Until(now)), nil
}
