package learn

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"
)

// A game is a server that has one limiter, and callers that wait for a Learner.
type game struct {
	l       Learner
	r       *rand.Rand
	limit   shape
	size    float64
	trip    Instant // and up to a quarter more on each way
	work    Instant // for so long the server works on what it accepts
	hint    Refusal // of refusals
	callers int

	st      state
	log     []entry
	now     Instant
	events  events
	idle    int
	served  []Instant // when they were sent
	refused int
	most    int // sent at one instant, while something was known
}

// An event is a request that arrives, or its answer.
type event struct {
	at, sent Instant
	answer   bool
	ok       bool
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (g *game) way() Instant {
	return g.trip/2 + Instant(g.r.Float64()*float64(g.trip)/8)
}

// play has all callers send as soon as they may, until then.
func (g *game) play(until Instant) {
	if g.now == 0 {
		g.now, g.idle = zero, g.callers
		g.st = g.limit.begin(zero)
	}
	for g.now < until {
		at := never
		together := 0
		for g.idle > 0 {
			if at = g.l.Next(g.now, g.idle).At; at > g.now {
				break
			}
			g.l.Sent(g.now)
			heap.Push(&g.events, event{at: g.now + g.way(), sent: g.now})
			g.idle--
			if together++; g.l.mind != nil {
				g.most = max(g.most, together)
			}
		}
		if len(g.events) > 0 && (g.idle == 0 || g.events[0].at <= at) {
			g.happen(heap.Pop(&g.events).(event))
		} else {
			g.now = min(at, until)
		}
	}
}

func (g *game) happen(e event) {
	g.now = max(g.now, e.at)
	switch {
	case !e.answer:
		g.limit.pass(&g.st, g.now, g.log, 0)
		if e.ok = g.st.barred <= g.now && g.limit.inUse(&g.st, g.now)+1 <= g.size+1e-6; e.ok {
			g.limit.add(&g.st, g.now, 1)
			g.log = append(g.log, entry{at: g.now, last: g.now, taken: 1})
			g.served = append(g.served, e.sent)
		} else {
			g.limit.refuses(&g.st, g.now, 0)
			g.refused++
		}
		e.at, e.answer = g.now+g.way(), true
		if e.ok {
			e.at += g.work
		}
		heap.Push(&g.events, e)
		return
	case e.ok:
		g.l.Accepted(g.now, e.sent)
	default:
		g.l.Refused(g.now, e.sent, g.hint)
	}
	g.idle++
}

// since is how many were served that were sent since then.
func (g *game) since(t Instant) (n int) {
	for _, s := range g.served {
		if s >= t {
			n++
		}
	}
	return n
}

func newGame(rate, size float64, trip time.Duration, callers int) *game {
	return &game{r: rand.New(rand.NewPCG(7, uint64(callers))), size: size, trip: Instant(trip), callers: callers,
		limit: shape{family: bucket, per: Instant(1e9 / rate)}}
}

// TestNoBeliefIsKeptByDoubt: a bucket that flows off within the doubt about arrivals
// explains every refusal by two that arrived together. It is not believed for that.
func TestNoBeliefIsKeptByDoubt(t *testing.T) {
	for _, c := range []struct{ rate, size float64 }{{500, 100}, {100, 50}, {50, 1}, {60, 1}} {
		g := newGame(c.rate, c.size, 30*time.Millisecond, 64)
		g.play(zero + 10*second)
		if n := float64(g.since(zero+5*second)) / 5; n < c.rate/2 {
			t.Errorf("%v/s of %v: %v/s are served, and %d were refused; %v", c.rate, c.size, n, g.refused, g.l.Words())
		}
	}
}

// TestASlowRateIsLeftBehind: when a limit rises, those who wait find it out, and not
// in bursts.
func TestASlowRateIsLeftBehind(t *testing.T) {
	for _, rise := range []float64{3, 10} {
		g := newGame(5, 5, 20*time.Millisecond, 50)
		g.play(zero + 30*second)
		g.limit.per = Instant(float64(g.limit.per) / rise)
		g.most = 0
		before := g.refused
		g.play(zero + 90*second)
		if n, want := float64(g.since(zero+80*second))/10, 5*rise; n < .7*want {
			t.Errorf("%v times as much: %v/s are served, want %v/s", rise, n, want)
		}
		if g.most > 8 || g.refused-before > g.since(zero+30*second)/5 {
			t.Errorf("%v times as much: %d sent at once, %d refused", rise, g.most, g.refused-before)
		}
	}
}

// TestALimitThatRisesIsLeftBehindForGood: refusals from before it rose do not bring the
// old one back.
func TestALimitThatRisesIsLeftBehindForGood(t *testing.T) {
	for i := range uint64(20) {
		rise := []float64{3, 10}[i%2]
		g := newGame(5, 5, 20*time.Millisecond, 50)
		g.r = rand.New(rand.NewPCG(i, 1))
		g.play(zero + 30*second)
		g.limit.per = Instant(float64(g.limit.per) / rise)
		g.play(zero + 90*second)
		if n, want := float64(g.since(zero+80*second))/10, 5*rise; n < .7*want {
			t.Errorf("seed %d, %v times as much: %v/s are served, want %v/s", i, rise, n, want)
		}
	}
}

// TestSlowDemandIsNoLimit: who sent one a second because nobody wanted more learns
// from a refusal that there is a limit, not that it is one a minute.
func TestSlowDemandIsNoLimit(t *testing.T) {
	for _, n := range []int{1, 5, 46, 300} {
		var l Learner
		now := zero
		for range n {
			l.Sent(now)
			l.Accepted(now+trip, now)
			now += second * 3 / 2
		}
		l.Sent(now)
		now += trip
		l.Refused(now, now-trip, waits(time.Second))
		p := l.Next(now+second, 2)
		if wait := time.Duration(p.At - now); wait > 3*time.Second {
			t.Errorf("after %d calls and one refusal that said a second, the next waits for %v: %v", n, wait, l.Words())
		}
	}
}

// TestTheFirstRefusalsDoNotStall: waits that nobody asked for grow with the time that
// has passed, not with the slowest limit that explains the refusals.
func TestTheFirstRefusalsDoNotStall(t *testing.T) {
	for _, per := range []Instant{second, 5 * second, 10 * second, 60 * second} {
		g := newGame(1, 3, 50*time.Millisecond, 14)
		g.limit = shape{family: windowFirst, per: per}
		g.play(zero + per + per*3/4)
		if n := g.since(zero + per/2); n < 1 {
			t.Errorf("3 per %v: nobody is served within three quarters of a window, after %d refusals", time.Duration(per), g.refused)
		}
		if g.refused > 40 {
			t.Errorf("3 per %v: %d refused", time.Duration(per), g.refused)
		}
	}
}
