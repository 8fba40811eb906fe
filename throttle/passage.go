package throttle

import (
	"context"
	"net/http"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/table"
	"github.com/weirhttp/weir/internal/trip"
)

// passage is one request on its way through a Transport, in one allocation.
type passage struct {
	t       *Transport
	tr      *trip.Trip
	record  *record
	part    *table.Entry[record] // of the partition, held; nil: none
	ask     ask
	stage   stage
	inside  bool   // counted as entered
	settled bool   // under the engine's lock
	permit  permit // under the engine's lock
	shared  *fleetGrant
	room    [2]draw
	answer  *http.Response
	body    *answerBody // nil: no place is held until it is done
	sent    instant     // handed to the base
}

// stage is how far a passage has come.
type stage uint8

const (
	entering  stage = iota // the request's body is ours to close
	sending                // handed to the base
	accounted              // what was granted is given back, or will be when the body is done
)

// enter waits for all that the request draws on.
func (p *passage) enter() error {
	t, r := p.t, p.ask.r
	ctx := r.Context()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	home, err := p.prepare()
	if err != nil {
		return err
	}
	if t.fleet != nil || !p.pass(home) {
		return p.wait(ctx, home)
	}
	return nil
}

// pass enters if there is room now and nobody is to go first. What only those
// that wait need is not looked up for it.
func (p *passage) pass(home *record) bool {
	e := p.t.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	last := e.last
	now := e.now()
	p.resolve(now, home)
	k := p.ask.learn
	own := p.ask.scope.owned(p.room[:0], &p.ask)
	draws := k.stated(own, &p.ask)
	if p.ask.shut(now) != nil || !room(now, own) || !k.open(now) || !room(now, draws[len(own):]) {
		return false
	}
	charge(now, draws, true)
	p.count()
	p.ask.counts().granted++
	p.granted(draws, now, now)
	p.permit.places.take(now, k)
	var read time.Time
	if now > last { // else e's time stands still: in a testing/synctest bubble that it was not made in
		read = e.epoch.Add(time.Duration(now))
	}
	p.tr.Clock(read)
	return true
}

// wait enters after a wait if need be.
func (p *passage) wait(ctx context.Context, home *record) error {
	t := p.t
	p.rank(ctx)
	p.tr.Clock(time.Time{})
	patience := p.patience(ctx)
	t.engine.mu.Lock()
	now := t.engine.now()
	p.resolve(now, home)
	p.count()
	draws, at, waited, err := t.engine.takeLocked(now, &p.ask, p.room[:0], &patience)
	p.tr.Waited += waited
	if err != nil {
		return err
	}
	p.granted(draws, at, now.add(waited))
	if t.fleet == nil {
		return nil
	}
	err = p.share(ctx, &patience, waited)
	p.sent = t.engine.read()
	return err
}

// count notes that p waits or is under way.
func (p *passage) count() {
	p.record.entered++
	p.ask.learn.enter(1)
	p.inside = true
}

// granted notes what p was given, and when it goes on.
func (p *passage) granted(draws []draw, at, sent instant) {
	p.permit = permit{draws: draws, at: at, held: true}
	p.sent, p.tr.Grant = sent, p
}

// prepare fills in p.ask as far as the user's functions say, so no lock is held,
// and returns the host's record.
func (p *passage) prepare() (*record, error) {
	t, q := p.t, &p.ask
	host := hosts.Name(p.tr.Entry, q.r)
	home := t.of(p.tr.Entry, host)
	p.record = home
	if t.config.Partition != nil {
		if part := t.config.Partition(q.r); part != "" {
			p.record, p.part = t.partition(host, part)
			q.host = &home.scope
		}
	}
	q.scope = &p.record.scope
	cost, given := costFrom(q.r.Context())
	if !given && t.config.Cost != nil {
		cost = t.config.Cost(q.r)
	}
	if q.cost = cost; cost != nil {
		if err := cost.check(); err != nil {
			return nil, err
		}
	}
	return home, nil
}

// rank fills in p.ask what says whose turn it is among those that wait.
func (p *passage) rank(ctx context.Context) {
	q := &p.ask
	q.seq, q.priority = p.tr.Order, priorityFrom(ctx)
	if lane := p.t.config.Lane; lane != nil {
		q.lane = lane(q.r)
	}
}

// resolve finds the routes that the request matches and what is known of its
// kind. The engine's lock is held.
func (p *passage) resolve(now instant, home *record) {
	p.record.renew(now)
	route := p.ask.match(p.record.routes)
	p.ask.learn = p.t.kindOf(now, &p.ask, &home.scope, route)
}

// patience is how long the request may wait.
func (p *passage) patience(ctx context.Context) patience {
	full := maxWaitFrom(ctx, p.t.limits.maxWait)
	//lint:ignore SA1019 http.Client with a Timeout still sets it
	w := patience{ctx: ctx, cancel: p.ask.r.Cancel, most: full, full: full, queue: p.t.limits.maxQueue, onWait: p.t.config.OnWait}
	switch {
	case p.tr.Hedge:
		w.most = -1
	case full > 0:
		w.most = max(0, full-p.tr.Waited)
	}
	if p.tr.Caller != nil {
		w.hook = p.tr.Caller
	}
	return w
}
