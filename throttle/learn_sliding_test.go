package throttle

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/kind"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
	"github.com/weirhttp/weir/throttle/internal/stated"
)

// This looks inside, because its bound is of the learner alone: a Transport that does the
// same work is refused 12 to 18 times for 100 successes (six seeds), the learner at most 10.

// bout is a discrete-event run of one learner against a server, without an
// engine: requests to one endpoint, all there at the start.
type bout struct {
	now    instant
	events events
	l      *learner
	k      *endpoint
	r      *rand.Rand
	trip   time.Duration // one way; a quarter more or less

	workers, left int
	good, refused int
	serve         func(now instant) (status int, s headers.Signal)
	took          time.Duration
	under         int
	woken         instant
	leave         []func() // of those that wait
}

type event struct {
	at  instant
	seq int
	f   func()
}
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any     { x := (*e)[len(*e)-1]; *e = (*e)[:len(*e)-1]; return x }

func newBout(seed uint64, jobs, workers int) *bout {
	b := &bout{now: 1, r: rand.New(rand.NewPCG(seed, 5)), left: jobs, workers: workers, trip: 20 * time.Millisecond}
	b.l = newLearner(&learnTerms{Terms: stated.Terms{MaxPause: 5 * time.Minute}, words: newLearnWords(), jitter: b.r.Float64}, &scope{}, newHostStart(newLearnWords()))
	b.k = b.l.endpointOf(kind.Key{Method: "GET", Rest: "v1"}, b.now)
	join := crowdAt(&b.l.account)
	for range min(jobs, workers) {
		b.leave = append(b.leave, join())
	}
	return b
}

func (b *bout) at(d time.Duration, f func()) {
	heap.Push(&b.events, event{b.now.Add(d), len(b.events), f})
}

func (b *bout) way() time.Duration {
	return time.Duration(float64(b.trip) * (0.75 + 0.5*b.r.Float64()))
}

func (b *bout) meters() []meter.Meter {
	m := []meter.Meter{b.l.host, b.l, b.k}
	for _, q := range b.k.quotas {
		m = append(m, q)
	}
	return m
}

// fill starts all that may start.
func (b *bout) fill() {
	for b.left > 0 && b.under < b.workers {
		ready := b.now
		for _, m := range b.meters() {
			ready = max(ready, m.At(b.now, 1))
		}
		if ready > b.now {
			if ready != never && (b.woken <= b.now || ready < b.woken) {
				b.woken = ready
				b.at(ready.Until(b.now), b.fill)
			}
			return
		}
		b.send()
	}
}

func (b *bout) send() {
	b.left--
	b.under++
	if n := len(b.leave); n > b.left {
		b.leave[n-1]()
		b.leave = b.leave[:n-1]
	}
	ms := b.meters()
	marks, sent := make([]meter.Token, len(ms)), b.now
	g := &ticket{endpoint: b.k, sent: b.now, permit: new(placed)}
	for i, m := range ms {
		marks[i] = m.Take(b.now, 1, true)
		switch m := m.(type) {
		case *endpoint:
			g.permit.Needs = append(g.permit.Needs, queue.Need{Account: &m.account, Token: marks[i]})
		case *quota:
			g.permit.Needs = append(g.permit.Needs, queue.Need{Account: m.account, Token: marks[i]})
		}
	}
	b.at(b.way(), func() {
		status, s := b.serve(b.now)
		b.at(b.way(), func() {
			b.under--
			b.l.finish(b.now, g, replied, status, &s)
			for i, m := range ms {
				m.Answered(b.now, 1, marks[i], sent)
				if _, ok := m.(*quota); !ok {
					m.Return(b.now, 1, marks[i], sent, 0)
				}
			}
			if status == 200 {
				b.good++
				b.took = b.now.Until(1)
			} else {
				b.refused++
				b.left++
			}
			b.fill()
		})
	})
}

func (b *bout) run(t testing.TB, most time.Duration) {
	b.fill()
	for b.left+b.under > 0 {
		if len(b.events) == 0 {
			t.Fatalf("stuck at %v with %d to do", b.now.Until(1), b.left)
		}
		e := heap.Pop(&b.events).(event)
		b.now = e.at
		if b.now.Until(1) > most {
			return
		}
		e.f()
	}
}

// TestASlidingLogThatSaysNothing: a learner of a server that takes 600 requests in any
// minute, and says nothing of it, is refused one of ten times at most.
func TestASlidingLogThatSaysNothing(t *testing.T) {
	const jobs, ideal = 3000, 240.
	b := newBout(1, jobs, 64)
	var log []instant
	b.serve = func(now instant) (int, headers.Signal) {
		for len(log) > 0 && now.Until(log[0]) >= time.Minute {
			log = log[1:]
		}
		if len(log) == 600 {
			return 429, headers.Signal{Throttled: true, Kind: headers.Quota}
		}
		log = append(log, now)
		return 200, headers.Signal{}
	}
	b.run(t, 4*ideal*time.Second)
	took, wasted := b.took.Seconds()/ideal, float64(b.refused)/jobs
	if b.good < jobs || took > 1.6 || wasted > .1 {
		t.Errorf("%d of %d done, %.3f x ideal with %.3f refusals per success, want 1.6, 0.1", b.good, jobs, took, wasted)
	}
}
