package population

import (
	"math"
	"net/http"
	"time"
)

// Taught is what a pupil makes of the case: a client that sends each call as soon as it is wanted
// until it first hears of the limit, by a refusal or by an answer that states the quota. From then
// on it knows what the all-knowing client knows, and it obeys what refusals ask for. Who does not
// know the server beforehand has to learn from more than that, so this is what time can be at best.
//
// It is no bound for refusals: who sends less at first than is wanted is refused less.
func (c *Case) Taught() Result {
	p := &pupil{planner: c.planner(), heard: math.MaxInt64}
	p.paused = make([]time.Duration, len(p.gates))
	p.meet = p.blind
	plan := p.run()
	return Result{Index: c.Index, Calls: c.Demand.Calls, Refused: p.refused, Time: c.over(c.Ideal(), plan.Span, plan.Mean), Found: -1}
}

// A pupil plans as the all-knowing client does once it has heard of the limit.
type pupil struct {
	*planner
	heard   time.Duration   // when it hears of the limit
	paused  []time.Duration // until when the refusals of each gate ask for silence
	refused int
}

// blind deals with an arrival that was sent before the client heard of the limit, and puts off one
// that was sent although a pause holds.
func (p *pupil) blind(a arrival) (met bool) {
	route := p.c.Demand.Routes[a.call]
	if a.sent >= p.heard {
		if until := p.paused[route]; a.sent < until {
			p.send(a.call, until)
			return true
		}
		return false
	}
	took, ok := p.gates[route].Take(a.at)
	stated := p.c.speak(&answer{State: p.gates[route].State(a.at), refused: !ok, now: time.Unix(0, 0).Add(a.at + p.c.Skew), header: http.Header{}})
	if ok {
		p.accepted(a.call, a.at, took)
		if p.c.Dialect.states && p.c.Everywhere {
			p.heard = min(p.heard, p.plan.Calls[a.call].done)
		}
		return true
	}
	_, down := p.c.way(a.call, 0)
	back := a.at + took + down
	p.refused++
	p.heard = min(p.heard, back)
	p.paused[route] = max(p.paused[route], a.at+stated)
	p.send(a.call, max(back, p.paused[route]))
	return true
}
