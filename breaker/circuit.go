package breaker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
	"github.com/weirhttp/weir/internal/trip"
)

// circuit is one circuit. Everything below mu is guarded by it, and the cores
// are called under it only, so their callbacks may touch what it guards.
type circuit struct {
	of    *Circuits
	cfg   *settings
	host  string
	shard string // as it shows

	shut atomic.Bool // not closed: whoever comes must ask
	calm atomic.Bool // closed and nothing counted: a good result changes nothing

	mu         sync.Mutex
	state      State
	since      uint64    // epoch of the last change: older attempts no longer count
	changed    time.Time // when
	reason     string    // why
	retired    bool      // replaced by a circuit with other settings
	calls      *core     // nil until something bad happens and when nothing bad is left in the window
	slow       *core     // likewise; its failures are slow calls
	tripping   bool      // a rule of our own says that calls must trip now
	unanswered int       // failures in a row without any answer
	failed     int       // failures in a row, also of probes
	lastBad    time.Time // last failure or slow call

	chance    chance
	row       row
	probe     slot      // the newest attempt at the wire
	goodProbe uint64    // id of the newest that was good
	overtaken uint      // probes that others did not wait for, since one came back
	candidate slot      // the one request between Door and wire that may become it
	good      int       // probes
	slowGood  int       // of these, slow
	bad       int       // probes
	asked     time.Time // when a request last came while not closed

	allotment
	line line
	silences
	absences
	hurries
	guessed bool // not closed: on suspicion, see vigil
	changes
	tally
}

// slot is a place for one, with a lease: whoever is lost does not keep it.
type slot struct {
	id  uint64
	at  time.Time
	who *trip.Request // of the candidate
}

func (s slot) taken(now time.Time, lease time.Duration) bool {
	return s.id != 0 && now.Sub(s.at) < lease
}

// tally is what Stats tells beyond the state.
type tally struct {
	refused, probes, trips uint64
	fallbacks              uint64
}

// candidateLease is how long the Door waits for a candidate to reach the wire
// before it lets in another.
const candidateLease = time.Second

func newCircuit(of *Circuits, s *settings, host, shard string, since uint64) *circuit {
	c := &circuit{of: of, cfg: s, host: host, shard: shard, since: since}
	c.calm.Store(true)
	return c
}

// probeLease is how long a probe may stay away before another is let in. A
// slow one says nothing yet, and nobody who is faster must wait for it: the
// next may go as soon as this one has been away for OpenFor, and that doubles
// with each that does not come back either, so that a host that swallows
// requests gets few of them. Half the Window is at least an attempt's timeout.
func (c *circuit) probeLease() time.Duration {
	longest := c.cfg.Window / 2
	if c.overtaken > 30 || c.cfg.OpenFor > longest>>c.overtaken {
		return longest
	}
	return c.cfg.OpenFor << c.overtaken
}

// pass is the permission to send, or to go on towards the wire.
type pass struct {
	circuit   *circuit // nil: there was none, nothing bad was known
	cfg       *settings
	epoch     uint64
	probe     uint64 // id of the probe's slot
	candidate uint64 // id of the candidate's slot
	number    uint64 // in the row; zero: early
	uncounted bool   // whatever comes of it does not count
}

// try lets a request pass if the state allows it at once. mu is held.
func (c *circuit) try(a *ask, now time.Time) (pass, bool) {
	if c.state == Closed {
		return c.pass(), true
	}
	c.comes(now)
	if !c.bound(a.r) {
		return c.pass(), true
	}
	due := c.due(now)
	if c.cfg.RetriesOnly {
		return c.tryFirst(a, due, now)
	}
	if !due || a.trip.Hedge {
		return pass{}, false
	}
	if a.by == trip.Meter {
		if c.line.wire.Len() > 0 {
			return pass{}, false
		}
		return c.begin(a.trip, now)
	}
	if c.candidate.taken(now, candidateLease) || c.line.len() > 0 {
		return pass{}, false
	}
	return c.nominate(a.trip, now), true
}

// tryFirst is try for RetriesOnly: first attempts pass and do the probing.
func (c *circuit) tryFirst(a *ask, due bool, now time.Time) (pass, bool) {
	if a.by == trip.Door {
		return c.pass(), true
	}
	if a.trip.Number > 1 || a.trip.Hedge {
		return pass{}, false
	}
	if due {
		if p, ok := c.begin(a.trip, now); ok {
			return p, true
		}
	}
	p := c.pass()
	p.uncounted = true
	return p, true
}

func (c *circuit) pass() pass {
	return pass{circuit: c, cfg: c.cfg, epoch: c.of.epoch.Load()}
}

// nominate makes the request the Door's candidate.
func (c *circuit) nominate(t *trip.Trip, now time.Time) pass {
	p := c.pass()
	p.candidate = c.of.ids.Add(1)
	c.candidate = slot{p.candidate, now, t.Request}
	t.Probe = true
	return p
}

// begin makes the attempt the probe.
func (c *circuit) begin(t *trip.Trip, now time.Time) (pass, bool) {
	if c.state == Open {
		if c.calls.State() != gobreaker.StateHalfOpen {
			return pass{}, false
		}
		c.shift(HalfOpen, "the open period has ended", now, t.Caller)
		c.good, c.slowGood, c.bad, c.overtaken = 0, 0, 0, 0
	}
	if c.probe.id != 0 {
		c.overtaken++
	}
	if c.candidate.who == t.Request {
		c.candidate = slot{}
	}
	p := c.pass()
	p.probe = c.of.ids.Add(1)
	c.probe = slot{id: p.probe, at: now}
	c.probes++
	c.spend(now)
	t.Probe = true
	return p, true
}

// begins returns the number of an attempt in the row; zero: nobody counts, because all is well or
// the circuit is not closed.
func (c *circuit) begins(t *trip.Trip) uint64 {
	if c.calm.Load() || c.shut.Load() || c.cfg.classic {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.Order != 0 && t.Number <= 1 && t.Order < uint64(c.row.woke.Sub(t.Table().Epoch)) {
		c.row.joins()
	}
	return c.row.begins(time.Now())
}

// leave frees the slots of a pass whose bearer is done.
func (c *circuit) leave(p pass) {
	if p.probe != 0 && p.probe == c.probe.id {
		c.probe = slot{}
	}
	if p.candidate != 0 && p.candidate == c.candidate.id {
		c.candidate = slot{}
	}
}

// lose is leave for one who brings nothing back: the next probe may go at once.
func (c *circuit) lose(p pass) {
	if p.probe != 0 && p.probe == c.probe.id {
		c.refund()
	}
	c.leave(p)
}

// abandon frees the slots of a pass. It does nothing once they are free.
func (c *circuit) abandon(p pass) {
	c.mu.Lock()
	defer c.unlock()
	c.lose(p)
	c.dispatch(time.Now())
}

// report counts how an attempt ended and frees its slot.
func (c *circuit) report(p pass, v verdict, ctx context.Context) {
	c.mu.Lock()
	defer c.unlock()
	now := time.Now()
	c.leave(p)
	if !p.uncounted && !c.retired {
		if c.calm.Load() {
			c.row.reset(v.holders, now)
		}
		c.row.ends(p.number)
		c.judge(p, v, now, ctx)
	}
	c.dispatch(now)
}

// judge is report for an attempt that counts if it is not too old. What it
// says of whether the host lives is heard however old it is.
func (c *circuit) judge(p pass, v verdict, now time.Time, ctx context.Context) {
	if v.took > 0 {
		c.timed(v.took, now)
	}
	switch {
	case v.answered && c.state != Closed && c.only && !c.bound(v.r):
		c.hears(v.r, now)
		c.good, c.slowGood, c.bad = 0, 0, 0
		c.close("another route was answered", now, ctx)
		return
	case c.refutes(v):
		c.hears(v.r, now)
		c.good, c.slowGood, c.bad = 0, 0, 0
		guessed := c.guessed && p.probe == 0
		c.close("the host answers, only later than callers wait", now, ctx)
		if guessed { // it works on what it has, and those who wait are late
			c.line.gap, c.line.next = 0, now
		}
		return
	case v.answered:
		c.hears(v.r, now)
	case c.hurried(v, now):
		return
	case v.silent && c.own(v, now):
		return
	}
	if v.outcome == Failure {
		c.vain(v, now)
	}
	switch {
	case p.epoch < c.since:
		if c.guessed && v.outcome == Failure && !v.answered {
			c.confirmed(v, now)
		}
	case c.state == Closed:
		c.count(p, v, now, ctx)
	case p.probe != 0:
		if c.state == HalfOpen && (v.outcome != Failure || p.probe > c.goodProbe) { // what came later knows better
			if v.outcome == Success {
				c.goodProbe = max(c.goodProbe, p.probe)
			}
			c.countProbe(v, now, ctx)
		}
	case v.outcome == Failure && !v.silent: // of one that was not bound: it is not only silence
		c.only, c.noise = false, now
	}
}

// retire makes the circuit a closed one that nobody uses any more, and sends
// those who wait for it to its successor. It returns its epoch. If it is a change
// for a reason, announce is to be called when no lock is held.
func (c *circuit) retire(reason string) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	since := c.since
	c.retired = true
	c.rest()
	if reason != "" {
		c.shift(Closed, reason, time.Now(), context.Background())
	}
	c.state = Closed
	c.shut.Store(false)
	c.line.settleAll(errMoved)
	return since
}

// announce tells the hook of what has changed.
func (c *circuit) announce() {
	c.mu.Lock()
	c.unlock()
}

// idle reports that forgetting the circuit changes nothing: it is closed and
// nothing bad is in its window, or it is open and nobody has asked for it for
// a whole window after its open period.
func (c *circuit) idle(now time.Time) bool {
	if !c.mu.TryLock() {
		return false
	}
	defer c.mu.Unlock()
	last := c.lastBad
	for _, e := range c.routes {
		if e.until.After(now) {
			return false
		}
	}
	if c.state != Closed {
		last = c.latest
		if c.asked.After(last) {
			last = c.asked
		}
	}
	return c.line.len() == 0 && !c.probe.taken(now, c.probeLease()) && now.Sub(last) > c.cfg.Window
}
