package breaker

import (
	"net/http"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/trip"
)

// meter is what Circuits.Meter returns.
type meter struct {
	circuits    *Circuits
	base        http.RoundTripper
	below, link trip.Link
	innermost   bool
	onward      trip.Onward
	timed       bool // a Wire below says when an attempt reached the wire
}

// Meter wraps base, which should be the last before the wire, and judges
// every attempt by how it ends. It refuses attempts with an *Error while
// their host's circuit is open, and in half-open lets one through at a time.
// A nil base is http.DefaultTransport.
func (c *Circuits) Meter(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	m := &meter{circuits: c, base: base}
	m.below, m.link = c.adopt(base, trip.Meter)
	m.innermost, m.timed = m.below.Innermost(), m.below.Has[trip.Wire]
	m.onward = trip.NewOnward(base, trip.Meter, m.below.Hosts)
	return m
}

// Link tells the layer above about the chain from here down.
func (m *meter) Link() trip.Link { return m.link.At(m, m) }

// CloseIdleConnections forwards to the base.
func (m *meter) CloseIdleConnections() { trip.CloseIdle(m.base) }

func (m *meter) RoundTrip(r *http.Request) (_ *http.Response, err error) {
	t, made := m.onward.Begin(r)
	if made {
		defer func() { err = t.End(err) }()
	}
	return m.Enter(r, t)
}

// Enter is RoundTrip for the layer above.
func (m *meter) Enter(r *http.Request, t *trip.Trip) (*http.Response, error) {
	h := t.Host()
	s, epoch := m.circuits.calm(t)
	if s == nil || !m.timed || lifeOf(h).still(t) {
		return m.guard(r, t)
	}
	t.Probe = false
	q, body := watch(r)
	resp, err := m.onward.Send(q, t)
	if s.plainlyGood(resp, err) && !h.Has(hosts.Breaker) {
		hear(h, t, r, Success)
		return resp, nil
	}
	return m.doubt(t, s, epoch, q, body, resp, err)
}

// doubt judges an attempt that Enter sent and that is not plainly good. It stands apart
// because it takes much of a stack.
func (m *meter) doubt(t *trip.Trip, s *settings, epoch uint64, q *http.Request, body *watched, resp *http.Response, err error) (*http.Response, error) {
	return m.judge(t.Entry, pass{cfg: s, epoch: epoch}, &attempt{cfg: s, trip: t, r: q, resp: resp, err: err, body: body})
}

// guard is Enter where not all is well, or somebody has more to say.
func (m *meter) guard(r *http.Request, t *trip.Trip) (*http.Response, error) {
	e, own := m.circuits.hold(t, r)
	if own {
		defer e.Release()
	}
	p, err := m.circuits.enter(e, trip.Meter, t, r)
	switch {
	case err == errYield:
		return nil, &yield{m.circuits}
	case err != nil:
		return nil, err
	}
	if p.circuit != nil || p.cfg.Shard != nil { // it may have waited, or called a hook
		t.Unread()
	}
	t.Probe = p.probe != 0
	if p.circuit != nil && p.probe == 0 && !p.uncounted {
		p.number = p.circuit.begins(t)
	}
	if p.probe != 0 {
		defer p.circuit.abandon(p) // does nothing after a report; a base may panic or end its goroutine
	}
	a := attempt{cfg: p.cfg, trip: t}
	a.r, a.body = watch(r)
	if !m.timed {
		if _, limited := r.Context().Deadline(); limited || p.cfg.SlowCall > 0 { // who else would ask
			a.begun = time.Now()
		}
	}
	if m.innermost {
		t.MarkSent()
	}
	if m.timed && p.probe == 0 && !t.Hedge && a.body == nil && lifeOf(&e.Value).still(t) {
		if v := vigilOf(&e.Value); v != nil {
			defer v.end(v.begin(routeOf(r), t.Reading()))
		}
	}
	a.resp, a.err = m.onward.Send(a.r, t)
	return m.judge(e, p, &a)
}

// judge reports how an attempt has ended, and returns that.
func (m *meter) judge(e *hosts.Entry, p pass, a *attempt) (*http.Response, error) {
	judged := false
	defer func() { // Classify, Shard or the hook may panic or end the goroutine
		if !judged && a.resp != nil && a.resp.Body != nil {
			a.resp.Body.Close()
		}
	}()
	m.circuits.report(e, p, a)
	judged = true
	return a.resp, a.err
}

// Outlook is how long an attempt of r, coming here now, would wait for its
// circuit, and the refusal if it would be refused. Retry and throttle ask.
func (m *meter) Outlook(r *http.Request) (time.Duration, error) {
	t := trip.From(r.Context())
	if t == nil || t.Table() != m.below.Hosts {
		return trip.Outlook(m.base, r)
	}
	return m.Ahead(r, t)
}

// Ahead is Outlook for the layer of weir above this one.
func (m *meter) Ahead(r *http.Request, t *trip.Trip) (time.Duration, error) {
	e, own := m.circuits.hold(t, r)
	if own {
		defer e.Release()
	}
	t.Patience = trip.Impatient
	wait, err := m.circuits.outlook(e, t, r)
	if err != nil {
		return wait, err
	}
	below, err := m.onward.Outlook(r, t)
	return max(wait, below), err
}

// enter is admit. It closes the body of a request that does not pass, also if
// Shard or the hook panics, unless the request is to come again.
func (c *Circuits) enter(e *hosts.Entry, by trip.Layer, t *trip.Trip, r *http.Request) (p pass, err error) {
	watchful := by == trip.Meter && lifeOf(&e.Value).doubtful()
	if s, epoch := c.usual(e); s != nil && !watchful {
		return pass{cfg: s, epoch: epoch}, nil
	}
	passed := false
	defer func() {
		if !passed {
			trip.CloseBody(r)
		}
	}()
	if watchful {
		c.doubt(e, t, r)
	}
	p, err = c.admit(e, by, t, r)
	passed = err == nil || err == errYield
	return p, err
}

// calm is usual for a request whose host's record is the circuits' own.
func (c *Circuits) calm(t *trip.Trip) (s *settings, epoch uint64) {
	if t.Table() != c.home.Load() {
		return nil, 0
	}
	return c.usual(t.Entry)
}

// usual is admit for most requests: their host has no circuit, no host has settings
// of its own, and no operator has said anything about any. It returns what their
// pass consists of. For others s is nil.
func (c *Circuits) usual(e *hosts.Entry) (s *settings, epoch uint64) {
	s, epoch = c.book.Load().plain, c.epoch.Load()
	if c.nforced.Load() != 0 || e.Value.Has(hosts.Breaker) {
		return nil, 0
	}
	return s, epoch
}

// admit finds out whether a request may pass, and waits if it may.
func (c *Circuits) admit(e *hosts.Entry, by trip.Layer, t *trip.Trip, r *http.Request) (pass, error) {
	host := hosts.Name(e, r)
	for {
		s := c.settings(host)
		if forced, ok := c.held(host); ok {
			if forced == Open {
				return pass{}, c.refuse(host, by)
			}
			return pass{cfg: s, uncounted: true}, nil
		}
		if s.Disable {
			return pass{cfg: s, uncounted: true}, nil
		}
		epoch := c.epoch.Load() // before shut: see shift
		cir := c.find(e, s, r, false)
		if cir == nil || !cir.shut.Load() {
			return pass{circuit: cir, cfg: s, epoch: epoch}, nil
		}
		if p, err := cir.admit(&ask{by, t, r}); err != errMoved {
			return p, err
		}
	}
}

// outlook is admit without waiting and passing.
func (c *Circuits) outlook(e *hosts.Entry, t *trip.Trip, r *http.Request) (time.Duration, error) {
	host := hosts.Name(e, r)
	if forced, ok := c.held(host); ok {
		if forced == Open {
			return 0, &Error{Host: host, State: Open, by: refuser(trip.Meter)}
		}
		return 0, nil
	}
	s := c.settings(host)
	if s.Disable {
		return 0, nil
	}
	cir := c.find(e, s, r, false)
	if cir == nil || cir.calm.Load() && !cir.shut.Load() {
		return 0, nil
	}
	return cir.outlook(&ask{trip.Meter, t, r})
}

// report judges an attempt that has ended. An attempt of a host without a
// circuit, or with a calm one, costs nothing if it is good.
func (c *Circuits) report(e *hosts.Entry, p pass, a *attempt) {
	cir := p.circuit
	if p.uncounted && cir == nil {
		return
	}
	if cir == nil && e.Value.Occupant(hosts.Breaker) == nil && a.cfg.plainlyGood(a.resp, a.err) {
		hear(&e.Value, a.trip, a.r, Success)
		return
	}
	v := a.judge()
	if v.answered {
		hear(&e.Value, a.trip, a.r, v.outcome)
	}
	if cir == nil { // there may be one by now
		if c.settings(hosts.Name(e, a.r)) != p.cfg {
			return // and it may have other settings
		}
		cir = c.find(e, p.cfg, a.r, false)
	}
	if v.outcome != Failure && !v.slow && p.probe == 0 && (cir == nil || cir.calm.Load()) {
		return
	}
	if cir == nil {
		if _, ok := c.held(e.Key); ok {
			return
		}
		if cir = c.find(e, p.cfg, a.r, true); cir == nil {
			return
		}
	}
	v.r, v.holders = a.r, e.Holders()
	if v.outcome == Failure && p.cfg.Shard == nil { // one shard's life proves nothing of another's
		v.good, v.goodBy = lastGood(&e.Value)
		v.usual = vigilOf(&e.Value).slowest()
		if v.silent {
			v.heard, v.spoke = heard(&e.Value)
		}
	}
	cir.report(p, v, a.trip.Caller)
}

// plainlyGood spares the usual answer the table.
func (s *settings) plainlyGood(resp *http.Response, err error) bool {
	return err == nil && resp != nil && resp.StatusCode < 400 && s.Classify == nil && s.SlowCall == 0
}
