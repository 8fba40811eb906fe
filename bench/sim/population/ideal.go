package population

import (
	"container/heap"
	"time"

	"github.com/weirhttp/weir/bench/sim/limit"
)

// A Plan is what an all-knowing client does: it knows the limiter, the network
// and the demand, is never refused, and has no call wait that could go. No
// client gets any number of calls accepted sooner, except by the luck of a
// faster way for a request that is sent twice.
type Plan struct {
	Calls []planned
	Span  time.Duration // until the last answer
	Mean  time.Duration // of the calls' times
}

// planned is what happens to one call.
type planned struct {
	want, arrives, done time.Duration
	waited              time.Duration // for room
	took                time.Duration // at the server
}

// Ideal makes the plan, by events: a call gets to the server as soon as its way
// allows, waits there in thought until its gate has room, and is sent so as to
// arrive at that instant.
func (c *Case) Ideal() *Plan { return c.planner().run() }

func (c *Case) planner() *planner {
	p := &planner{c: c, plan: &Plan{Calls: make([]planned, c.Demand.Calls)}}
	for _, g := range c.gates() {
		p.gates = append(p.gates, &gate{Limiter: g})
	}
	return p
}

func (p *planner) run() *Plan {
	c := p.c
	if c.Demand.Load > 0 {
		for k, want := range c.Demand.Wants {
			p.want(k, want)
		}
	} else {
		for range min(c.Demand.Workers, c.Demand.Calls) {
			p.next(0)
		}
	}
	for p.step() {
	}
	for _, s := range p.plan.Calls {
		p.plan.Span = max(p.plan.Span, s.done)
		p.plan.Mean += (s.done - s.want) / time.Duration(c.Demand.Calls)
	}
	return p.plan
}

// rate is how many calls a second arrive from the instant since on.
func (p *Plan) rate(since time.Duration) float64 {
	n, last := 0, since
	for _, s := range p.Calls {
		if s.arrives >= since {
			n, last = n+1, max(last, s.arrives)
		}
	}
	return float64(n) / max(1e-3, (last-since).Seconds())
}

type planner struct {
	c      *Case
	plan   *Plan
	gates  []*gate
	coming arrivals
	begun  int                // of a batch
	meet   func(arrival) bool // reports whether it dealt with an arrival itself; nil: it never does
}

// A gate is a limiter with the calls that are before it, in their order.
type gate struct {
	limit.Limiter
	queue []int
	wake  time.Duration // when to ask it again, if there is a queue
}

func (p *planner) want(k int, at time.Duration) {
	p.plan.Calls[k].want = at
	p.send(k, at)
}

func (p *planner) send(k int, at time.Duration) {
	up, _ := p.c.way(k, 0)
	p.push(arrival{at + up, at, k})
}

// next begins the next call of a batch.
func (p *planner) next(at time.Duration) {
	if p.begun < p.c.Demand.Calls {
		p.begun++
		p.want(p.begun-1, at)
	}
}

// step handles the earliest event, and reports whether there was one.
func (p *planner) step() bool {
	var first *gate
	for _, g := range p.gates {
		if len(g.queue) > 0 && (first == nil || g.wake < first.wake) {
			first = g
		}
	}
	if len(p.coming) > 0 && (first == nil || p.coming[0].at <= first.wake) {
		a := heap.Pop(&p.coming).(arrival)
		if a.call == workerFree {
			p.next(a.at)
			return true
		}
		if p.meet != nil && p.meet(a) {
			return true
		}
		g := p.gates[p.c.Demand.Routes[a.call]]
		if g.queue = append(g.queue, a.call); len(g.queue) == 1 {
			g.wake = a.at
		}
		p.plan.Calls[a.call].arrives = a.at
		return true
	}
	if first == nil {
		return false
	}
	if ready := first.Ready(first.wake); ready > first.wake {
		first.wake = ready
		return true
	}
	p.serve(first, first.queue[0])
	first.queue = first.queue[1:]
	return true
}

// serve has the gate accept a call.
func (p *planner) serve(g *gate, k int) {
	took, ok := g.best(g.wake)
	if !ok {
		panic("population: " + p.c.Replay() + ": the all-knowing client is refused")
	}
	p.plan.Calls[k].waited = g.wake - p.plan.Calls[k].arrives
	p.accepted(k, g.wake, took)
}

// accepted is told that a call is accepted, and that its limiter takes so long.
func (p *planner) accepted(k int, at, took time.Duration) {
	took += p.c.work(k)
	_, down := p.c.way(k, 0)
	s := &p.plan.Calls[k]
	s.arrives, s.took, s.done = at, took, at+took+down
	if p.c.Demand.Load == 0 {
		p.push(arrival{s.done, s.done, workerFree})
	}
}

func (p *planner) push(a arrival) { heap.Push(&p.coming, a) }

// best takes of several instances one that accepts: the all-knowing client has
// all the luck there is with a balancer.
func (g *gate) best(at time.Duration) (time.Duration, bool) {
	if b, ok := g.Limiter.(interface {
		Best(time.Duration) (time.Duration, bool)
	}); ok {
		return b.Best(at)
	}
	return g.Take(at)
}

// workerFree stands for the call of an arrival that is the end of another call:
// which call its worker takes next is known then.
const workerFree = -1

// arrival is a call that can be at the server from then on.
type arrival struct {
	at, sent time.Duration
	call     int
}

type arrivals []arrival

func (a arrivals) Len() int { return len(a) }
func (a arrivals) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].call < a[j].call
}
func (a arrivals) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *arrivals) Push(x any)   { *a = append(*a, x.(arrival)) }
func (a *arrivals) Pop() any {
	x := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return x
}
