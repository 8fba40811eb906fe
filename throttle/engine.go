package throttle

import (
	"sync"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// What budgets count with.
type instant = meter.Instant

const (
	never   = meter.Never
	unknown = meter.Unknown
)

// engine decides who may go. It is arithmetic on instants and one mutex; the
// methods of account, line, waiter and meter are called with that held, and
// never call a hook or anybody's code.
//
// A request draws on a list of accounts. Its units are taken from all of them
// in one step or from none, at the moment it is granted. If one is short it
// joins the lines of all accounts it was found short of, and stays in them
// until it is granted or gives up (see line). Whatever changes what an account
// can grant ends with mark and run, which plans everyone queued anew.
//
// What is learned of a server stands in accounts of its own, with meters of its
// own: a request draws on those of its kind (ask.learn) beside those of its
// budgets (scope.own), by the same rules. When they change, their owner marks
// them and calls run; when requests draw on others than before, redraw.
//
// A granted request goes on as a permit: answered is called when headers came,
// lost when the attempt failed, free when the body is done, back instead of both when
// nothing was sent, settle when its cost turned out to be another.
type engine struct {
	mu    sync.Mutex
	epoch time.Time
	last  instant
	clock meter.Wall
	walls int    // accounts that look at the wall's clock
	seq   uint64 // of the last waiter that brought no order of its own

	gate terms // of every scope's gate

	dirty   []*line // to be planned anew
	expiry  expiries
	timer   *time.Timer // for expiry
	wake    instant     // when timer fires
	waiting int
}

func newEngine() *engine {
	epoch := time.Now().Add(-1) // no instant is zero
	return &engine{epoch: epoch, clock: meter.Wall{Zero: epoch.UnixNano()}, last: 1, gate: terms{text: "pause"}}
}

// now reads the clock. Only now, taken under the lock, is ever compared with
// anything: time does not step back.
func (e *engine) now() instant {
	if e.walls > 0 {
		t := time.Now()
		e.last = max(e.last, instant(t.Sub(e.epoch)))
		e.clock.Zero = t.UnixNano() - int64(e.last)
		return e.last
	}
	e.last = max(e.last, e.read())
	return e.last
}

// read reads the clock without the lock.
func (e *engine) read() instant { return instant(time.Since(e.epoch)) }

// nowFrom is now as of a reading of the clock that was taken before the lock, if
// nothing later has been seen. It is for what has happened already; what is
// granted needs now.
func (e *engine) nowFrom(at instant) instant {
	if e.walls > 0 {
		return e.now()
	}
	e.last = max(e.last, at)
	return e.last
}

// at is the instant of t.
func (e *engine) at(now instant, t time.Time) instant { return now.Add(time.Until(t)) }

// mark notes that a's line must be looked at.
func (e *engine) mark(a *account) {
	if l := a.line; l != nil && !l.dirty {
		l.dirty = true
		e.dirty = append(e.dirty, l)
	}
}

// run grants what can be granted and sets the timers of the lines that wait.
func (e *engine) run(now instant) {
	for len(e.dirty) > 0 {
		last := len(e.dirty) - 1
		l := e.dirty[last]
		e.dirty = e.dirty[:last]
		l.dirty = false
		if l.size() > 0 {
			e.plan(now, l)
		}
	}
}

// plan grants from the head of l as long as something fits.
func (e *engine) plan(now instant, l *line) {
	for l.size() > 0 {
		w := l.pick()
		if e.try(now, w) || w.in(l.a) == nil {
			continue
		}
		if w.yields(now, l) {
			e.unclaim(w.in(l.a), false)
			continue
		}
		if o := l.oldest(); o != w && o.before(w) && w.stuck() && e.try(now, o) {
			continue
		}
		break
	}
	if l.size() == 0 {
		return
	}
	w := l.pick()
	t := w.opens(now, l)
	if t > now && e.sweep(now, l, w) {
		e.mark(l.a)
		return
	}
	if o := l.oldest(); o != w && w.stuck() {
		if u := o.opens(now, l); u > now && (u < t || t <= now) {
			t = u
		}
	}
	e.arm(now, l, t)
}

// arm sets the timer of l to t; if t is past, another line must move first.
func (e *engine) arm(now instant, l *line, t instant) {
	if t <= now || t == never {
		if l.timer != nil && l.wake != never {
			l.timer.Stop()
			l.wake = never
		}
		return
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(t.Until(now), func() { e.ring(l) })
	} else if l.wake != t {
		l.timer.Reset(t.Until(now))
	}
	l.wake = t
}

// ring is a line's timer.
func (e *engine) ring(l *line) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	l.wake = never
	e.mark(l.a)
	e.run(now)
}

// try grants w if all it needs is there and it is its turn everywhere. If not,
// it joins the lines of the accounts it is short of.
func (e *engine) try(now instant, w *waiter) bool {
	if !e.stand(now, w) {
		return false
	}
	for _, c := range w.claims {
		p := c.line.pick()
		if p != w && !(w.before(p) && p.stuck()) {
			return false
		}
	}
	if w.upTo > 1 {
		stretch(now, w.draws, w.upTo)
	}
	charge(now, w.draws, w.held())
	w.granted = true
	e.leave(w)
	w.done(now)
	return true
}

// stand puts w into the lines of the accounts that it is short of, or that
// others wait for, and reports whether it is short of none. One that waits for
// itself stands in no other line.
func (e *engine) stand(now instant, w *waiter) bool {
	if o := w.solo; o != nil && o.account.at(now, 1) > now {
		e.apart(w, o)
		return false
	}
	ok, passed := true, false
	for i := range w.draws {
		d := &w.draws[i]
		if d.n == 0 {
			continue
		}
		short := d.a.at(now, d.n) > now
		if short {
			ok = false
		}
		switch {
		case !short && d.a.line == nil || w.in(d.a) != nil:
		case !short && w.left == now:
			passed = true // w has just left it
		default:
			e.join(w, d)
		}
	}
	for i := 0; ok && passed && i < len(w.draws); i++ {
		if d := &w.draws[i]; d.n != 0 && d.a.line != nil && w.in(d.a) == nil {
			e.join(w, d)
		}
	}
	return ok
}

// apart leaves w in the line of o alone.
func (e *engine) apart(w *waiter, o *solo) {
	for i := len(w.claims) - 1; i >= 0; i-- {
		if k := w.claims[i]; k.line.a != &o.account {
			e.unclaim(k, false)
		}
	}
	if w.in(&o.account) == nil {
		e.join(w, &draw{a: &o.account, n: 1})
	}
}

// join puts w into the line of d's account.
func (e *engine) join(w *waiter, d *draw) {
	a := d.a
	if a.line == nil {
		a.line = &line{a: a, wake: never}
	}
	l := a.line
	var was *waiter
	if l.size() > 0 {
		was = l.pick()
	}
	l.add(w, d.n)
	if was != nil && was != w && l.pick() != was {
		for _, c := range was.claims { // others may pass it elsewhere now
			e.mark(c.line.a)
		}
	}
	e.mark(a)
}

// leave takes w out of all its lines.
func (e *engine) leave(w *waiter) {
	for len(w.claims) > 0 {
		e.unclaim(w.claims[len(w.claims)-1], w.granted)
	}
	e.unlist(w)
}

// unclaim takes a waiter out of one line.
func (e *engine) unclaim(k *claim, granted bool) {
	l := k.line
	l.remove(k, granted)
	w := k.w
	for i := range w.claims {
		if w.claims[i] == k {
			last := len(w.claims) - 1
			w.claims[i] = w.claims[last]
			w.claims = w.claims[:last]
			break
		}
	}
	if l.size() > 0 {
		e.mark(l.a)
		return
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	l.a.line = nil
}
