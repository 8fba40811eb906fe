package queue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// play is a domain in which requests come, wait, go and end by lot.
type play struct {
	t        *testing.T
	e        *queue.Domain
	group    queue.Group
	accounts []*queue.Account
	owed     map[*queue.Account]int64 // units that requests hold, by what they were granted
	passed   []pass
	classes  int // priorities
}

// A pass is a grant to a younger request when there was room for an older one.
type pass struct {
	at      meter.Instant
	younger uint64
	older   *queue.Waiter
}

// A player is one request of a play.
type player struct {
	*play
	queue.Request
	marker   queue.Account // comes first of its needs and so tells whose grant this is
	accounts []*queue.Account
	units    int64 // of each
}

// marker is a meter that knows whose units are charged.
type marker struct {
	meter.Open
	of *player
}

func (m marker) Take(now meter.Instant, _ int64, _ bool) meter.Token {
	m.of.inTurn(now)
	return 0
}

// ledger is a meter that keeps count of what is taken and given back.
type ledger struct {
	meter.Meter
	of *play
	a  *queue.Account
}

func (l ledger) Take(now meter.Instant, n int64, held bool) meter.Token {
	l.of.owed[l.a] += n
	return l.Meter.Take(now, n, held)
}

func (l ledger) Return(now meter.Instant, n int64, k meter.Token, granted, answered meter.Instant) {
	l.of.owed[l.a] -= n
	l.Meter.Return(now, n, k, granted, answered)
}

// rated is one of a configured rate, of which what is to come is certain.
type rated struct{ ledger }

func (r rated) Sure(now, from meter.Instant, ahead, n int64) meter.Instant {
	return r.Meter.(*meter.Rated).Sure(now, from, ahead, n)
}

func newPlay(t *testing.T) *play {
	p := &play{t: t, owed: make(map[*queue.Account]int64)}
	all := queue.NewDomains()
	p.e = all.New()
	p.group.Gate = all.NewGate()
	p.group.Gate.Group = &p.group
	return p
}

// account adds a limit of m's.
func (p *play) account(m meter.Meter, l *queue.Label) *queue.Account {
	a := &queue.Account{Label: l, Group: &p.group}
	count := ledger{m, p, a}
	if a.Meter = count; l.Rate != nil {
		a.Meter = rated{count}
	}
	p.accounts = append(p.accounts, a)
	return a
}

// rate is a limit of so many requests per time, all of which may go at once.
func (p *play) rate(limit int, per time.Duration) *queue.Account {
	r := meter.NewRate(meter.Spec{Limit: limit, Per: per, Burst: limit, Unit: meter.Requests})
	return p.account(meter.NewRated(1, r, nil), &queue.Label{Unit: meter.Requests, Text: fmt.Sprintf("%d/%v", limit, per), Rate: r})
}

// places is a limit on requests at a time.
func (p *play) places(n int64, toHeaders bool) *queue.Account {
	return p.account(&meter.InFlight{Limit: n}, &queue.Label{Text: fmt.Sprint(n, " at a time"), ToHeaders: toHeaders})
}

// player is a request that draws one unit of each of these.
func (p *play) player(now meter.Instant, of ...*queue.Account) *player {
	r := &player{play: p, accounts: of, units: 1}
	r.Request = queue.Request{Group: &p.group, Seq: p.e.Arrive(now), Held: true, By: r}
	r.marker = queue.Account{Meter: marker{of: r}, Label: &queue.Label{Unit: "markers"}, Group: &p.group}
	return r
}

func (r *player) Needs(_ meter.Instant, buf []queue.Need) []queue.Need {
	buf = append(buf, queue.Need{Account: &r.marker, N: 1})
	for _, a := range r.accounts {
		buf = append(buf, queue.Need{Account: a, N: r.units})
	}
	return buf
}

func (r *player) Doubts() bool { return false }

func (r *player) Barred(now meter.Instant) (meter.Instant, *queue.Account) { return now, nil }

// could reports whether there is room for all that one who waits draws on.
func could(now meter.Instant, w *queue.Waiter) bool {
	for _, d := range w.Needs {
		if d.Account.At(now, d.N) > now {
			return false
		}
	}
	return true
}

// share reports whether both draw on one of the play's accounts.
func (p *play) share(a, b []queue.Need) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Account == y.Account && x.Account != &p.group.Gate {
				return true
			}
		}
	}
	return false
}

// covers reports whether all of the play's accounts that b draws on are in a.
func (p *play) covers(a, b []queue.Need) bool {
	for _, y := range b {
		if slices.Contains(p.accounts, y.Account) && !slices.ContainsFunc(a, func(x queue.Need) bool { return x.Account == y.Account }) {
			return false
		}
	}
	return true
}

// waiting is all that wait.
func (p *play) waiting() (all []*queue.Waiter) {
	p.group.Walk(nil, func(w *queue.Waiter) bool { all = append(all, w); return true })
	return all
}

// leads reports whether nobody else whose turn it may be draws on one of w's
// accounts: no older one of its priority, and none of another, as these take turns.
func (p *play) leads(w *queue.Waiter, all []*queue.Waiter) bool {
	for _, v := range all {
		if v != w && (v.Priority != w.Priority || v.Seq < w.Seq) && p.share(v.Needs, w.Needs) {
			return false
		}
	}
	return true
}

// inTurn checks, as r's units are about to be charged, that there is room for them.
// It notes older requests of its class that draw on nothing else and could go as
// well: they have to go at this instant, too.
func (r *player) inTurn(now meter.Instant) {
	needs := r.Needs(now, nil)
	for _, d := range needs {
		if d.Account.At(now, d.N) > now {
			r.t.Errorf("number %d was granted, and there is no room at %s", r.Seq, d.Account.Label.Text)
		}
	}
	all := r.waiting()
	for _, w := range all {
		if w.Priority == r.Priority && w.Seq < r.Seq && r.covers(needs, w.Needs) && could(now, w) && r.leads(w, all) {
			r.passed = append(r.passed, pass{now, r.Seq, w})
		}
	}
}

// settled checks that nobody waits without a reason: there is no room for it, or
// somebody else who waits draws on one of its accounts.
func (p *play) settled() {
	synctest.Wait()
	p.e.Lock()
	defer p.e.Unlock()
	now := p.e.Now()
	if err := p.e.Check(); err != nil {
		p.t.Error(err)
	}
	for _, x := range p.passed {
		if x.older.At != x.at {
			p.t.Errorf("number %d was granted before %d, for which there was room as well", x.younger, x.older.Seq)
		}
	}
	p.passed = nil
	all := p.waiting()
	for _, w := range all {
		if could(now, w) && p.leads(w, all) {
			p.t.Errorf("number %d waits, of priority %d, though it is its turn and there is room", w.Seq, w.Priority)
		}
	}
}

// run makes a request of these accounts, from its arrival to its end.
func (p *play) run(r *rand.Rand, of []*queue.Account) {
	most := []time.Duration{time.Second, 20 * time.Second, 10 * time.Minute}[r.IntN(3)]
	priority, fate, settled := r.IntN(p.classes)-1, r.IntN(8), int64(r.IntN(4))
	upTo := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) } // to the nanosecond: what happens at one instant has no order
	trip, body, gives := upTo(3*time.Second/2), upTo(3*time.Second/2), upTo(20*time.Second)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if r.IntN(4) == 0 {
		defer time.AfterFunc(max(1, gives), cancel).Stop()
	}
	e := p.e.Lock()
	now := e.Now()
	q := p.player(now, of...)
	q.Priority = priority
	needs := q.Needs(now, nil)
	if !e.Enter(now, needs, &q.Request) {
		start, pa := now, &queue.Patience{Ctx: ctx, Most: most, Full: most, Queue: 1000}
		w, _, refused := e.Queue(now, &q.Request, needs, pa)
		e.Unlock()
		if refused != nil {
			if refused.Wait <= most {
				p.t.Errorf("refused for a wait of %v, and may wait %v", refused.Wait, most)
			}
			return
		}
		w.Await(pa)
		e = p.e.Lock()
		end := e.Finish(e.Now(), w, pa)
		waited := time.Duration(e.Now() - start)
		switch {
		case end.Granted && waited > most, end.Refused != nil && end.Refused.Wait+waited < most && ctx.Err() == nil:
			p.t.Errorf("waited for %v, may for %v: %+v %+v", waited, most, end, end.Refused)
		case !end.Granted && end.Refused == nil && ctx.Err() == nil:
			p.t.Errorf("ended after %v for no reason", waited)
		}
		if !end.Granted {
			e.Unlock()
			return
		}
		needs, now = w.Needs, w.At
	}
	permit := &queue.Permit{Needs: needs, Granted: now}
	e.Unlock()
	do := func(f func(e *queue.Domain, now meter.Instant)) {
		e := p.e.Lock()
		defer e.Unlock()
		f(e, e.Now())
	}
	if fate == 0 {
		do(func(e *queue.Domain, now meter.Instant) { e.Return(now, permit) })
		return
	}
	time.Sleep(trip)
	if fate == 1 {
		do(func(e *queue.Domain, now meter.Instant) { e.Lost(now, permit) })
		return
	}
	do(func(e *queue.Domain, now meter.Instant) { e.Answered(now, permit, fate == 2) })
	if fate == 3 {
		do(func(e *queue.Domain, now meter.Instant) {
			e.Settle(now, permit, map[string]int64{meter.Requests: settled})
		})
	}
	time.Sleep(body)
	do(func(e *queue.Domain, now meter.Instant) { e.Free(now, permit) })
}

// Whoever comes, waits, goes or gives up: units are granted where there is room and
// in turn, nobody waits who could go, every wait ends as it was told, and in the end
// nothing is held. Pauses come and go meanwhile.
func TestRequestsGoInTurnWhateverHappens(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			p := newPlay(t)
			p.classes = 1 + 2*int(seed%2)
			p.rate(1+r.IntN(8), time.Second+time.Duration(r.Int64N(1e10)))
			p.rate(1+r.IntN(8), time.Second+time.Duration(r.Int64N(1e10)))
			p.places(int64(1+r.IntN(4)), false)
			p.places(int64(1+r.IntN(4)), true)
			var wg sync.WaitGroup
			for range 150 {
				var of []*queue.Account
				for _, a := range p.accounts {
					if r.IntN(2) == 0 {
						of = append(of, a)
					}
				}
				mine := rand.New(rand.NewPCG(r.Uint64(), 0))
				wg.Go(func() { p.run(mine, of) })
				if r.IntN(20) == 0 {
					p.e.Lock()
					now := p.e.Now()
					a := append(p.accounts, &p.group.Gate)[r.IntN(5)]
					p.e.Pause(now, a, now.Add(time.Duration(r.Int64N(4e9))), now.Add(time.Duration(r.Int64N(2e9))), "a pause")
					p.e.Unlock()
				}
				if r.IntN(3) > 0 {
					time.Sleep(time.Duration(r.Int64N(8e8)))
				}
				p.settled()
			}
			wg.Wait()
			p.settled()
			time.Sleep(time.Hour)
			p.e.Lock()
			defer p.e.Unlock()
			for _, a := range p.accounts {
				if now := p.e.Now(); !a.Idle(now) || a.Waited() || a.Label.Unit == "" && p.owed[a] != 0 {
					t.Errorf("seed %d: at the end %s is not idle: %d held", seed, a.Label.Text, p.owed[a])
				}
			}
			if p.e.Waiting != 0 || p.group.Waiting != 0 {
				t.Errorf("%d wait at the end", p.e.Waiting)
			}
		})
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
