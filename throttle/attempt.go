package throttle

import (
	"context"
	"net/http"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/table"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// attempt is one request on its way through a Transport.
type attempt struct {
	tr       *trip.Trip // nil: nobody has used the attempt
	record   *record    // nil: not found out yet
	r        *http.Request
	endpoint *endpoint // of request; nil: not found out yet
	permit   placed    // under the lock of record's domain
	room     [2]queue.Need
	answer   *http.Response
	few      *few // nil: nothing of it
}

// few is what few attempts have: the others are spared its memory.
type few struct {
	part   *table.Entry[record] // of the partition, held; nil: none
	cost   Cost
	own    *endpoint // of its credential, if attempt.endpoint is that of several; else nil
	solo   *solo     // of an earlier attempt, or of this one; nil: not refused
	shared *fleet.Grant
	by     identity // with a Store: who makes the request
}

// more is where what few have is written.
func (p *attempt) more() *few { return made(&p.few) }

func (p *attempt) own() *endpoint {
	if p.few == nil {
		return nil
	}
	return p.few.own
}

func (p *attempt) solo() *solo {
	if p.few == nil {
		return nil
	}
	return p.few.solo
}

func (p *attempt) cost() Cost {
	if p.few == nil {
		return nil
	}
	return p.few.cost
}

func (p *attempt) shared() *fleet.Grant {
	if p.few == nil {
		return nil
	}
	return p.few.shared
}

// firstAttempt is a trip and its first attempt, in one allocation.
type firstAttempt struct {
	trip.Box
	attempt attempt
}

func newFirst() *trip.Box {
	f := new(firstAttempt)
	f.Grant(&f.attempt)
	return &f.Box
}

// attemptIn returns an attempt that nobody has used: tr's own, or another.
func attemptIn(tr *trip.Trip) *attempt {
	if p, ok := tr.Grant.(*attempt); ok && p.tr == nil {
		return p
	}
	return new(attempt)
}

// progress is what an attempt has done. It stands in placed because there it takes
// no memory of its own.
type progress struct {
	stage   stage
	inside  bool // counted as entered
	settled bool // under the lock of the record's domain
	closed  bool // the answer's body, if that is watched; likewise
	guessed bool // its answer was called a refusal by explain; likewise
	limited bool // that is most likely so; likewise
	read    bool // its answer's body counts for its endpoint; likewise
	plain   bool // a layer below asked what its answer says, and it is none of GraphQL
}

// stage is how far an attempt has come.
type stage uint8

const (
	entering  stage = iota // the request's body is ours to close
	sending                // handed to the base
	accounted              // what was granted is given back, or will be when the body is done
)

// enter waits for all that the request draws on.
func (p *attempt) enter(t *Transport) error {
	q, ctx := ask{r: p.r, Request: queue.Request{Held: true}}, p.r.Context()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	home, err := p.prepare(t, &q)
	if err != nil {
		return err
	}
	if t.fleet != nil || p.solo() != nil || !p.pass(&q, home) {
		return p.wait(ctx, &q, home)
	}
	return nil
}

// pass enters if there is room now and nobody is to go first. What only those
// that wait need is not looked up for it.
func (p *attempt) pass(q *ask, home *record) bool {
	e, last, now := p.record.current()
	defer e.Unlock()
	p.resolve(now, q, home)
	k := p.endpoint
	own := q.scope.owned(p.room[:0], q)
	draws := k.stated(own, q)
	rest := draws[len(own):]
	if q.Shut(now) != nil || !k.open(now) || !q.roomy && !queue.Room(now, rest) || !queue.Draw(now, draws[:len(own)], true) {
		return false
	}
	queue.Charge(now, rest, true)
	p.arrive(e, now)
	p.count()
	p.counts().grant(now)
	p.granted(draws, now)
	p.permit.enter(now, k)
	if now > last {
		p.tr.Clock(time.Duration(now + p.record.t.domains.Before))
	} else { // e's time stands still: in a testing/synctest bubble that it was not made in
		p.tr.Unread()
	}
	return true
}

// wait enters after a wait if need be.
func (p *attempt) wait(ctx context.Context, q *ask, home *record) error {
	t := p.record.t
	p.rank(ctx, q)
	p.tr.Unread()
	patience := p.patience(ctx)
	e, _, now := p.record.current()
	p.arrive(e, now)
	if q.Seq = p.tr.Order; q.solo != nil && q.solo.order > 0 {
		q.Seq = q.solo.order
	}
	p.resolve(now, q, home)
	p.count()
	vain := 0
	for {
		draws, at, waited, err := q.takeLocked(e, now, p.room[:0], &patience)
		p.tr.Wait(waited)
		if err != nil {
			return err
		}
		p.granted(draws, at)
		if t.fleet == nil {
			return nil
		}
		again, err := p.share(ctx, q, &patience, waited, &vain)
		if !again {
			return err
		}
		patience = p.patience(ctx)
		e, _, now = p.record.current()
		p.resolve(now, q, home)
	}
}

// mostVain is how often in a row the Store may refuse, because of what others drew,
// what this process takes to be there. Then it sees for itself. A wait begins a new row, as
// others may have drawn meanwhile; but not if nobody knows how long a window lasts, as there
// would be no end then.
const mostVain = 3

// arrive gives the request its place in the order of arrival, unless it has one.
// The lock is held: requests of a domain can be counted under it, and only those
// are compared.
func (p *attempt) arrive(e *queue.Domain, now instant) {
	if p.tr.Order == 0 {
		p.tr.Order = e.Arrive(now)
	}
}

// count notes that p waits or is under way.
func (p *attempt) count() {
	p.record.entered++
	p.endpoint.enter(1)
	p.permit.inside = true
}

// granted notes what p was given at at.
func (p *attempt) granted(draws []queue.Need, at instant) {
	p.permit.Permit = queue.Permit{Needs: draws, Granted: at}
	p.tr.Grant = p
}

// prepare fills in q as far as the user's functions say, so no lock is held,
// and returns the host's record.
func (p *attempt) prepare(t *Transport, q *ask) (*record, error) {
	host := hosts.Name(p.tr.Entry, q.r)
	home := t.of(p.tr.Entry, host)
	p.record = home
	if t.config.Partition != nil {
		if part := t.config.Partition(q.r); part != "" {
			p.record, p.more().part = t.partition(home, host, part)
			q.Host = &home.Group
		}
	}
	q.to(&p.record.scope)
	if q.identity = t.identify(q.r); t.fleet != nil {
		p.more().by = q.identity
	}
	if last, ok := p.tr.Grant.(*attempt); ok && last.solo() != nil && last.record.t == t {
		p.more().solo = last.few.solo
		q.solo = last.few.solo
	}
	cost, given := costFrom(q.r.Context())
	if !given && t.config.Cost != nil {
		cost = t.config.Cost(q.r)
	}
	if cost != nil {
		q.cost, p.more().cost = cost, cost
		if err := cost.check(); err != nil {
			return nil, err
		}
	}
	return home, nil
}

// rank fills in q what says whose turn it is among those that wait.
func (p *attempt) rank(ctx context.Context, q *ask) {
	q.Priority = priorityFrom(ctx)
	if lane := p.record.t.config.Lane; lane != nil {
		q.Lane = lane(q.r)
	}
}

// resolve finds the routes that the request matches and what is known of its
// endpoint. The lock of the record's domain is held, and the record is current.
func (p *attempt) resolve(now instant, q *ask, home *record) {
	route := q.match()
	p.endpoint, q.own = p.record.t.endpointOf(now, q, p.record, &home.scope, route, p.endpoint != nil)
	if q.own != p.own() {
		p.more().own = q.own
	}
	q.learn, q.now = p.endpoint, now
	if q.solo != nil || q.learn.learner.blame != nil {
		q.apart()
	}
	if l := p.endpoint.learner; l.blame != nil && l.blame.parted {
		l.blame.parted = false
		p.lifted(now)
		p.record.domain.Load().Redraw(now, &l.scope.Group)
	}
	if !p.endpoint.slow.Free() && !p.endpoint.learner.terms.pausesOnly {
		p.endpoint.pace(q)
	}
}

// patience is how long the request may wait.
func (p *attempt) patience(ctx context.Context) wish {
	full := maxWaitFrom(ctx, p.record.t.maxWait(p.record.host))
	//lint:ignore SA1019 http.Client with a Timeout still sets it
	w := wish{Patience: queue.Patience{Ctx: ctx, Cancel: p.r.Cancel, Most: full, Full: full, Queue: p.record.t.limits.maxQueue}, onWait: p.record.t.config.OnWait, hook: p.tr.Caller}
	switch {
	case p.tr.Hedge:
		w.Most, w.Spare = -1, true
	case full > 0:
		w.Most = max(0, full-p.tr.Waited())
	}
	return w
}
