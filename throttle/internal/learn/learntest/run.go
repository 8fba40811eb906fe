package learntest

import (
	"container/heap"
	"math/rand/v2"
)

// An event is something that happens at an instant.
type event struct {
	at  Instant
	seq int
	do  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

// began is when the simulation begins: not at zero, which means "never" to some.
const began = Instant(1000e9)

// A job is one call.
type job struct {
	n        int
	begun    Instant
	queued   Instant // the last time it began to wait
	waited   Instant // before
	attempts int
	done     bool
}

// A Result is how a case went.
type Result struct {
	Case      *Case
	Lost      int
	Served    int
	Refusals  int
	Makespan  Instant
	Sojourn   float64 // sum of the calls', in seconds
	Stall     Instant // longest time without an acceptance while somebody waited
	Unsettled int     // calls that never ended: a fault of the client
}

// A run is one client's way through a case.
type run struct {
	c       *Case
	server  *server
	rng     *rand.Rand
	now     Instant
	queue   events
	seq     int
	started int
	r       Result
	open    int     // jobs that have begun and not ended
	quiet   Instant // the last acceptance, or since when somebody waits
	client  client
}

type client interface {
	begin(j *job)
}

func newRun(c *Case) *run {
	s := c.server.clone(c.Seed)
	shift(s)
	return &run{c: c, server: s, rng: rand.New(rand.NewPCG(c.Seed, 99)), now: began, quiet: began, r: Result{Case: c}}
}

// shift moves what a server has in absolute instants to the simulation's begin.
func shift(s *server) {
	if s.change > 0 {
		s.change += began
	}
	s.next = began
	for _, l := range s.limits {
		if b, ok := l.(*bucket); ok {
			b.at = began
		}
	}
}

func (r *run) at(t Instant, do func()) {
	r.seq++
	heap.Push(&r.queue, event{max(t, r.now), r.seq, do})
}

// trip is a way to the server or back.
func (r *run) trip() Instant {
	return r.c.trip/2 + Instant(r.rng.ExpFloat64()*float64(r.c.jitter)/2)
}

func (r *run) begin() {
	j := &job{n: r.started, begun: r.now}
	r.started++
	if r.open == 0 {
		r.quiet = r.now
	}
	r.open++
	r.client.begin(j)
}

// go_ runs the case to its end.
func (r *run) play() Result {
	if r.c.arrivals != nil {
		for _, a := range r.c.arrivals {
			r.at(began+a, r.begin)
		}
	} else {
		for range r.c.workers {
			r.at(began, r.begin)
		}
	}
	for steps := 0; len(r.queue) > 0 && steps < 3_000_000; steps++ {
		e := heap.Pop(&r.queue).(event)
		r.now = e.at
		e.do()
	}
	r.r.Unsettled = r.c.calls - r.r.Lost - r.r.Served
	return r.r
}

// send sends a job's next attempt; then tells how it was answered.
func (r *run) send(j *job, answered func(accepted bool, a *answer)) {
	j.attempts++
	r.at(r.now+r.trip(), func() {
		ok, cause := r.server.arrive(r.now)
		a := r.c.dialect.says(r.server, r.now, ok, cause, r.c.unix)
		back := r.trip()
		if ok {
			r.at(r.now+r.c.service, r.server.done)
			back += r.c.service
		} else {
			r.r.Refusals++
		}
		r.at(r.now+back, func() {
			if ok {
				r.accepted()
			}
			answered(ok, a)
		})
	})
}

func (r *run) accepted() {
	r.r.Stall = max(r.r.Stall, r.now-r.quiet)
	r.quiet = r.now
}

// end ends a job.
func (r *run) end(j *job, served bool) {
	if j.done {
		return
	}
	j.done = true
	r.open--
	if served {
		r.r.Served++
	} else {
		r.r.Lost++
	}
	r.r.Sojourn += float64(r.now-j.begun) / 1e9
	r.r.Makespan = r.now - began
	if r.c.arrivals == nil && r.started < r.c.calls {
		r.begin()
	}
}
