package breaker

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/trip"
)

// A host that swallows requests is known by its failures only when the first
// timeout or deadline has passed, and gets all requests until then. But whoever
// waits for it can tell sooner: nobody has had an answer, also those who usually
// have one by now.
//
// So a request is due when it has been under way for four times as long as the
// slowest lately took on its route. When the host has answered nobody since
// five requests were sent that are due, its circuit opens on suspicion: those who
// come now wait, one in a hundred goes as a probe, and nobody is refused. The first
// answer to anybody refutes the suspicion, and those who wait go at once. Five
// failures confirm it; then it is an outage as any other.
//
// Where this errs, requests wait for an answer that others wait for as well, so
// it may cost each as long again as it takes, until the host's time to answer is
// known. It does not concern hosts and routes that have never answered, callers
// one after the other, and hosts of fewer than five calls a second: what these
// would send in vain is little.

const (
	// quietFor is for how long a host must have been heard by nobody before those
	// who come are kept watch over: a happy call pays nothing for this. It is
	// twice what heard may be behind by.
	quietFor = 2 * tick
	// overdue is how many times as long as the slowest of its route a request must
	// take to be due. Times are noted of one answer in many, so the slowest of all
	// may be twice as slow, and a pause of the host adds to that.
	overdue = 4
	// leastDue is when a request is due where all are quick. A lost packet is
	// repeated after 200 ms and again after 400 more; five requests have not all
	// lost one. With quietFor it is less than a second.
	leastDue = 500 * time.Millisecond
	// brisk is how quick an answer must be for its time not to matter.
	brisk = leastDue / overdue
	// crowd is how many must be due, as many as failures without an answer open
	// a circuit, and within rush they were sent.
	crowd = 5
	rush  = time.Second
	// maxPaces is how many routes' times are kept apart. Those beyond are one.
	maxPaces = 8
	// paceFor is for how long a slow answer counts: a route of which one call in
	// a thousand takes long has some in that time.
	paceFor = 10 * time.Minute
	// grain is how much later an attempt that succeeds must have been sent to be worth
	// noting for that. It is short for a burst, and nothing to those who call often.
	grain = time.Millisecond
)

// vigil is what is known of a host's time to answer, and who waits for it since
// it fell silent. Instants are counted from start. A host that was heard of once
// only has none: it would take as much memory as all else that is known of it here.
type vigil struct {
	start time.Time
	since time.Duration // of start, see news
	good  atomic.Int64  // when the newest attempt was sent that succeeded, or up to a grain before; zero: none has
	mu    sync.Mutex
	n     uint32 // of out
	kept  atomic.Bool
	out   [crowd]awaited // those that are due first; kept: there are any
	paces []pace         // by route; the last of maxPaces is that of all others
}

// pace is how long a route takes to answer at most, lately.
type pace struct {
	route       route
	slowest, at time.Duration
}

// awaited is a request under way that was sent since the host was last heard.
type awaited struct {
	route     route
	sent, due time.Duration
}

// pace returns what is known of a route; nil: nothing.
func (v *vigil) pace(r route) *pace {
	for i := range v.paces {
		if p := &v.paces[i]; p.route == r || i == maxPaces-1 {
			return p
		}
	}
	return nil
}

// slowest is how long any route takes to answer at most, lately; zero: nobody knows.
func (v *vigil) slowest() (d time.Duration) {
	if v == nil {
		return 0
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range v.paces {
		d = max(d, v.paces[i].slowest)
	}
	return d
}

// answered notes that the host answered a request of a route after took. Only a
// good answer says how long answers take.
func (v *vigil) answered(r route, took time.Duration, now time.Time, well bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.n = 0
	v.kept.Store(false)
	if !well {
		return
	}
	p, at := v.pace(r), now.Sub(v.start)
	if p == nil {
		v.paces = append(v.paces, pace{route: r})
		p = &v.paces[len(v.paces)-1]
	}
	if took >= p.slowest || at-p.at > paceFor {
		p.slowest, p.at = took, at
	}
}

// succeeded notes that an attempt did that was sent at an instant.
func (v *vigil) succeeded(at time.Duration) {
	for {
		good := v.good.Load()
		if at-time.Duration(good) < grain || v.good.CompareAndSwap(good, int64(at)) {
			return
		}
	}
}

// begin counts a request that is sent at now, if it is among those that are due
// first. It returns what end wants to know.
func (v *vigil) begin(r route, now time.Time) (a awaited) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p := v.pace(r)
	if p == nil {
		return a
	}
	sent := now.Sub(v.start)
	a = awaited{r, sent, sent + max(leastDue, overdue*p.slowest)}
	if v.n < crowd {
		v.out[v.n] = a
		v.n++
		v.kept.Store(true)
		return a
	}
	last := &v.out[0]
	for i := range v.out {
		if v.out[i].due > last.due {
			last = &v.out[i]
		}
	}
	if a.due < last.due {
		*last = a
	}
	return a
}

// end ends what begin began. Of several that are alike any will do.
func (v *vigil) end(a awaited) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i := range v.out[:v.n] {
		if v.out[i] == a {
			v.n--
			v.out[i] = v.out[v.n]
			v.kept.Store(v.n > 0)
			return
		}
	}
}

// silent reports whether the host is suspected to answer nobody, since when, and
// the route that all of those are of who are due; alone is false if they are of
// several.
func (v *vigil) silent(now time.Time) (since time.Time, r route, alone, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at, first := now.Sub(v.start), v.out[0]
	oldest, newest := first.sent, first.sent
	alone = true
	for _, a := range v.out {
		if v.n < crowd || at < a.due {
			return since, r, false, false
		}
		oldest, newest = min(oldest, a.sent), max(newest, a.sent)
		alone = alone && a.route == first.route
	}
	return v.start.Add(oldest), first.route, alone, newest-oldest <= rush
}

// still reports whether a host that answered before has lately been heard by
// nobody, so that its requests are watched.
func (l *life) still(t *trip.Trip) bool {
	if l == nil {
		return false
	}
	s := l.newest.Load()
	return s != nil && t.Since()-s.since-s.after >= quietFor
}

// doubtful reports whether requests to a host that has fallen silent are watched.
func (l *life) doubtful() bool {
	if l == nil {
		return false
	}
	v := l.vigil.Load()
	return v != nil && v.kept.Load()
}

// suspicious reports whether circuits with these settings open on suspicion: not
// if their user says what opens them, or that nobody waits.
func (s *settings) suspicious() bool {
	return !s.Disable && s.Shard == nil && s.Consecutive <= crowd && s.lenient()
}

// lenient reports whether requests may wait for a circuit, though nobody asked for
// it.
func (s *settings) lenient() bool {
	return !s.classic && !s.RetriesOnly && (s.Patience == 0 || s.Patience >= minOpenFor)
}

// doubt opens the circuit of a host that has fallen silent. It is called for a
// request that would be sent now.
func (c *Circuits) doubt(e *hosts.Entry, t *trip.Trip, r *http.Request) {
	since, route, alone, ok := vigilOf(&e.Value).silent(t.Reading())
	if !ok || e.Overflow {
		return
	}
	host := hosts.Name(e, r)
	s := c.settings(host)
	if _, forced := c.held(host); forced || !s.suspicious() {
		return
	}
	if cir := c.find(e, s, r, true); cir != nil {
		cir.suspect(since, route, alone, t)
	}
}

// suspect opens a closed circuit because nothing was answered since an instant.
func (c *circuit) suspect(since time.Time, r route, alone bool, t *trip.Trip) {
	c.mu.Lock()
	defer c.unlock()
	now := time.Now()
	if c.state != Closed || c.retired || !c.spoke.Before(since) {
		return
	}
	v := verdict{outcome: Failure, silent: true, route: r}
	if c.calls == nil {
		c.start()
	}
	c.tripping, c.reason = true, "no answer to anybody for "+now.Sub(since).Round(tick).String()
	tell(c.calls, true)
	c.calm.Store(false)
	c.open(v, now, t.Caller)
	c.guessed = true
	c.only = alone && c.note(r, now, now.Add(2*c.cfg.Window), true) != nil
	if c.cfg.Patience == 0 {
		c.earliest = now
	}
}

// confirmed counts the failure of an attempt that is older than the suspicion.
// Newcomers are refused from the fifth on; those who wait go on waiting.
func (c *circuit) confirmed(v verdict, now time.Time) {
	c.noted(v, now)
	if c.unanswered++; c.unanswered < crowd {
		return
	}
	c.guessed = false
	c.hasty = !c.sure.After(c.opened)
	c.hold, c.sounded = now.Add(c.waited), false
	c.reason = number(c.unanswered, "failure") + " in a row without an answer"
	if c.cfg.Fallback != nil {
		c.line.settleAll(errMoved)
	}
}
