package breaker

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
)

// outage is a base that is down for a time, then up, and logs arrivals.
type outage struct {
	from, to time.Time
	takes    time.Duration
	mu       sync.Mutex
	at       []time.Time
}

func (o *outage) RoundTrip(r *http.Request) (*http.Response, error) {
	now := time.Now()
	o.mu.Lock()
	o.at = append(o.at, now)
	o.mu.Unlock()
	time.Sleep(o.takes)
	if !now.Before(o.from) && now.Before(o.to) {
		return testnet.Answer(r, 503, nil, nil), nil
	}
	return testnet.Answer(r, 200, nil, nil), nil
}

func (o *outage) arrivals(from, to time.Time) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, t := range o.at {
		if !t.Before(from) && t.Before(to) {
			n++
		}
	}
	return n
}

// retrier is as little of a retry layer as Patience needs: it repeats what
// failed, asks the outlook first, and does not count a failed probe.
type retrier struct {
	base  http.RoundTripper
	most  int
	table trip.Link
}

func (l *retrier) Link() trip.Link { return l.table.With(trip.Retry) }

func (l *retrier) RoundTrip(r *http.Request) (*http.Response, error) {
	r, t, made := trip.Begin(r, trip.Retry, l.table.Hosts)
	if made {
		panic("retrier needs a Door")
	}
	for counted := 0; ; {
		t.Next()
		t.At(trip.Retry)
		resp, err := l.base.RoundTrip(r)
		if notsent.Refused(err) != 0 || err == nil && resp.StatusCode < 500 {
			return resp, err
		}
		wait, refusal := trip.Outlook(l.base, r)
		if !(t.Probe && wait > 0) {
			counted++
		}
		if refusal != nil || counted == l.most {
			return resp, err
		}
		if err == nil {
			resp.Body.Close()
		}
		time.Sleep(max(wait, 100*time.Millisecond))
	}
}

func patientChain(t *testing.T, c Config, base http.RoundTripper) (*Circuits, http.RoundTripper) {
	cs := circuits(t, c)
	m := cs.Meter(base)
	return cs, cs.Door(&retrier{base: m, most: 3, table: trip.Below(m)})
}

// TestPatienceOutage: an outage shorter than the callers' deadlines costs no
// request an error, nobody waits longer than it lasted and a little more, the
// host sees few probes while it is down, and no herd afterwards.
func TestPatienceOutage(t *testing.T) {
	for _, lasts := range []time.Duration{700 * time.Millisecond, 3 * time.Second, 3500 * time.Millisecond, 9 * time.Second, 30 * time.Second} {
		t.Run(lasts.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				start := time.Now()
				o := &outage{from: start.Add(time.Second), to: start.Add(time.Second + lasts), takes: 5 * time.Millisecond}
				cs, rt := patientChain(t, Config{Patience: time.Minute}, o)
				var wrong, longest atomic.Int64
				var all sync.WaitGroup
				for time.Since(start) < lasts+5*time.Second { // 200 a second
					all.Go(func() {
						begun := time.Now()
						ctx, cancel := context.WithTimeout(t.Context(), lasts+2*time.Second)
						defer cancel()
						resp, err := rt.RoundTrip(httptest.NewRequest("GET", site, nil).WithContext(ctx))
						if err != nil || resp.StatusCode != 200 {
							wrong.Add(1)
						}
						if d := int64(time.Since(begun)); d > longest.Load() {
							longest.Store(d)
						}
					})
					time.Sleep(5 * time.Millisecond)
				}
				all.Wait()
				if wrong.Load() != 0 {
					t.Errorf("%d calls failed", wrong.Load())
				}
				if d := time.Duration(longest.Load()); d > lasts+2*time.Second {
					t.Errorf("a call took %v", d)
				}
				if n := o.arrivals(o.from, o.to); n > 60 {
					t.Errorf("%d attempts while down", n)
				}
				peak := 0
				for at := o.to; at.Before(o.to.Add(4 * time.Second)); at = at.Add(10 * time.Millisecond) {
					peak = max(peak, o.arrivals(at, at.Add(100*time.Millisecond)))
				}
				if peak > 80 {
					t.Errorf("%d attempts in 100 ms after the outage, 20 are usual", peak)
				}
				t.Logf("peak %d in 100 ms, %d attempts while down, longest call %v", peak, o.arrivals(o.from, o.to), time.Duration(longest.Load()))
				want(t, cs, Closed, "after it all")
			})
		})
	}
}

func send(ctx context.Context, rt http.RoundTripper) (*http.Response, error) {
	return rt.RoundTrip(httptest.NewRequest("GET", site, nil).WithContext(ctx))
}

// TestPatienceRefusals: what cannot wait is refused at once, with its reason.
func TestPatienceRefusals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, h, rt := rig(t, Config{Patience: 2 * time.Second, OpenFor: 10 * time.Second})
		h.set(down)
		for range 5 {
			get(rt, site)
		}
		start := time.Now()
		_, err := send(t.Context(), rt)
		var e *Error
		if !errors.As(err, &e) || e.Timeout() || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("longer than Patience: %v", err)
		}
		var cs *Circuits
		cs, h, rt = rig(t, Config{Patience: time.Minute, OpenFor: 10 * time.Second})
		h.set(down)
		for range 5 {
			get(rt, site)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err = send(ctx, rt)
		if !errors.As(err, &e) || !e.Timeout() || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, notsent.Err) {
			t.Errorf("longer than the deadline: %v", err)
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("refused after %v", d)
		}
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = send(ctx, rt)
		if d := time.Since(start); d != time.Second || !errors.As(err, &e) || e.Timeout() || !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v after %v", err, d)
		}
		mine := errors.New("my own reason")
		cctx, stop := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { stop(mine) })
		if _, err = send(cctx, rt); !errors.Is(err, mine) || !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled with a cause: %v", err)
		}
		r := httptest.NewRequest("GET", site, nil)
		old := make(chan struct{})
		//lint:ignore SA1019 callers may still use it
		r.Cancel = old
		time.AfterFunc(time.Second, func() { close(old) })
		if _, err = rt.RoundTrip(r); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled by the old channel: %v", err)
		}
		if got := cs.Stats().Circuits[0]; got.Waiting != 0 {
			t.Errorf("%d still in line", got.Waiting)
		}
	})
}

// TestPatienceGivesUpInTime: one whose wait turns out too long is refused
// when that is known, and before its deadline.
func TestPatienceGivesUpInTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, h, rt := rig(t, Config{Patience: time.Minute, OpenFor: time.Second, MaxOpenFor: 20 * time.Second})
		h.set(down)
		for range 5 {
			get(rt, site)
		}
		hung := make(chan bool)
		h.set(func(r *http.Request) (*http.Response, error) { <-hung; return nil, errReset })
		go get(rt, site) // the probe, which tells nothing for long
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		_, err := send(ctx, rt)
		if d := time.Since(start); d >= 5*time.Second || d < 4900*time.Millisecond || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			t.Errorf("gave up after %v: %v", d, err)
		}
		close(hung)
	})
}

// TestPatienceObeysTheServer: the server's Retry-After is not cut short for
// those whose time runs out, and those who cannot wait for it are refused at
// once.
func TestPatienceObeysTheServer(t *testing.T) {
	for _, code := range []int{500, 503} { // a failed probe, and one without a verdict
		bubble(t, func(t *testing.T) {
			cs, h, rt := rig(t, Config{Patience: time.Minute, MaxOpenFor: 10 * time.Second})
			open(t, cs, h, rt)
			gate := make(chan bool)
			h.set(func(r *http.Request) (*http.Response, error) {
				<-gate
				return answerWith(code, "Retry-After", "10")(r)
			})
			go get(rt, site)
			synctest.Wait()
			said := time.Now()
			wait := func(d time.Duration) (after time.Duration, err error) {
				ctx, cancel := context.WithTimeout(t.Context(), d)
				defer cancel()
				_, err = send(ctx, rt)
				return time.Since(said), err
			}
			var all sync.WaitGroup
			all.Go(func() {
				if after, err := wait(5 * time.Second); after != 0 || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%d: cannot wait so long: %v after %v", code, err, after)
				}
			})
			all.Go(func() {
				if after, err := wait(10500 * time.Millisecond); after < 10*time.Second || err != nil {
					t.Errorf("%d: can just wait so long: %v after %v", code, err, after)
				}
			})
			synctest.Wait()
			close(gate)
			h.set(status(200))
			all.Wait()
		})
	}
}

// TestPatienceLastChance: an open period that has grown is ended early for
// one who cannot wait so long, and nobody keeps it from trying.
func TestPatienceLastChance(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{Patience: time.Hour})
		open(t, cs, h, rt)
		for cs.Stats().Circuits[0].NotBefore.Before(time.Now().Add(30 * time.Second)) {
			due(t, cs)
			get(cs.Meter(h), site)
		}
		h.set(status(200))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		if _, err := send(ctx, rt); err != nil || time.Since(start) < 4*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if _, err := send(ctx, rt); err != nil || time.Since(start) > 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// TestPatienceEndsInTheRamp: one whose time runs out while the line is being
// released does not wait for its turn.
func TestPatienceEndsInTheRamp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{Patience: time.Minute, OpenFor: 10 * time.Second})
		h.set(down)
		for range 5 {
			get(rt, site)
		}
		h.set(status(200))
		for range 10 {
			go get(rt, site)
		}
		until := cs.Stats().Circuits[0].NotBefore
		time.Sleep(time.Until(until) - time.Second)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		if _, err := send(ctx, rt); err != nil || time.Since(start) > 2750*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		time.Sleep(time.Minute)
	})
}

// TestPatienceIsOneSum: however often a request has to wait for its circuit,
// it does so for no longer than Patience.
func TestPatienceIsOneSum(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var calls atomic.Int64
		_, rt := patientChain(t, Config{Patience: 3 * time.Second}, testnet.Func(func(r *http.Request) (*http.Response, error) {
			if calls.Add(1) > 1000 {
				panic("goes on for ever")
			}
			return status(500)(r)
		}))
		start := time.Now()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() { get(rt, site) })
		}
		all.Wait()
		if d := time.Since(start); d < 2*time.Second || d > 4*time.Second {
			t.Errorf("gave up after %v", d)
		}
	})
}

// TestPatienceSettledTooLate: a place given to one who has just gone goes to
// the next.
func TestPatienceSettledTooLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{Patience: time.Minute})
		open(t, cs, h, rt)
		r, tr, _ := trip.Begin(httptest.NewRequest("GET", site, nil), trip.Door, rt.(trip.Linked).Link().Hosts)
		defer tr.End(nil)
		c := cs.find(tr.Entry, cs.settings(""), r, false)
		for _, by := range []trip.Layer{trip.Door, trip.Meter} {
			w := &waiter{by: by, trip: tr, settled: make(chan struct{})}
			w.place = c.line.queue(by).PushBack(w)
			c.wake()
			if !w.done || w.pass.probe+w.pass.candidate == 0 {
				t.Fatalf("at the %v: %+v", by, w.pass)
			}
			if _, err := c.quit(&ask{by, tr, r}, w, true, context.Canceled, context.Canceled); notsent.Refused(err) == 0 {
				t.Errorf("%v", err)
			}
			if c.probe.id != 0 || c.candidate.id != 0 {
				t.Errorf("at the %v: the place is still taken", by)
			}
		}
	})
}

// TestHedgesNeitherWaitNorProbe: they take room now or never.
func TestHedgesNeitherWaitNorProbe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{Patience: time.Minute})
		open(t, cs, h, rt)
		m := cs.Meter(h)
		before := h.calls.Load()
		r, tr, _ := trip.Begin(httptest.NewRequest("GET", site, nil), trip.Retry, trip.Below(m).Hosts)
		defer tr.End(nil)
		tr.Hedge = true
		if _, err := m.RoundTrip(r); notsent.Refused(err) != notsent.Meter || h.calls.Load() != before {
			t.Errorf("%v", err)
		}
		if _, err := trip.Outlook(m, r); notsent.Refused(err) != notsent.Meter {
			t.Errorf("outlook: %v", err)
		}
	})
}

// TestPatienceBound: the line is bounded.
func TestPatienceBound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{Patience: time.Minute, OpenFor: 10 * time.Second})
		h.set(down)
		for range 5 {
			get(rt, site)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var refused atomic.Int64
		var all sync.WaitGroup
		for range maxWaiting + 7 {
			all.Go(func() {
				if _, err := send(ctx, rt); err != nil && ctx.Err() == nil {
					refused.Add(1)
				}
			})
		}
		synctest.Wait()
		if n := refused.Load(); n != 7 || cs.Stats().Circuits[0].Waiting != maxWaiting {
			t.Errorf("%d refused, %d in line", n, cs.Stats().Circuits[0].Waiting)
		}
		cancel()
		all.Wait()
	})
}

// TestPatienceOrder: the line is first come, first served, one probe at a
// time, then spread over as long as the first waited.
func TestPatienceOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{Patience: time.Minute, OpenFor: 10 * time.Second, Consecutive: 1})
		h.set(down)
		get(rt, site)
		h.set(status(200))
		until := cs.Stats().Circuits[0].NotBefore
		var mu sync.Mutex
		var order []int
		var at []time.Duration
		var all sync.WaitGroup
		for i := range 11 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				send(t.Context(), rt)
				mu.Lock()
				order, at = append(order, i), append(at, time.Since(until))
				mu.Unlock()
			})
		}
		all.Wait()
		for i := range order {
			if order[i] != i {
				t.Fatalf("served in order %v", order)
			}
		}
		for i := 3; i < len(at); i++ { // three probes at once, then the ramp
			if i > 3 && at[i]-at[i-1] < 500*time.Millisecond {
				t.Errorf("released at %v", at)
				break
			}
		}
		if at[2] != 0 || at[3] != 0 || at[10] > 12*time.Second {
			t.Errorf("released at %v", at)
		}
	})
}

// TestPatienceCandidateThatLeaves: a candidate that never reaches the wire,
// or panics on the way, keeps nobody waiting for long.
func TestPatienceCandidateThatLeaves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs := circuits(t, Config{Patience: time.Minute})
		h := &host{answer: down}
		meter := cs.Meter(h)
		var between atomic.Pointer[func()]
		rt := cs.Door(&middle{meter, &between})
		for range 5 {
			get(rt, site)
		}
		h.set(status(200))
		park := func() { time.Sleep(time.Hour) }
		between.Store(&park)
		go get(rt, site) // candidate, parked
		due(t, cs)
		time.Sleep(time.Millisecond)
		boom := func() { panic("between") }
		between.Store(&boom)
		start := time.Now()
		func() {
			defer func() { recover() }()
			get(rt, site)
		}()
		between.Store(nil)
		if code, err := get(rt, site); code != 200 {
			t.Error(err)
		}
		if d := time.Since(start); d > 2*candidateLease {
			t.Errorf("waited %v", d)
		}
		time.Sleep(2 * time.Hour)
	})
}

// middle is somebody else's layer between Door and Meter that still lets the
// trip through.
type middle struct {
	base http.RoundTripper
	do   *atomic.Pointer[func()]
}

func (m *middle) Link() trip.Link { return trip.Below(m.base) }

func (m *middle) RoundTrip(r *http.Request) (*http.Response, error) {
	if f := m.do.Load(); f != nil {
		(*f)()
	}
	return m.base.RoundTrip(r)
}

// TestPatienceAtTheMeter: those who were between Door and wire when the
// circuit opened wait there, and go first.
func TestPatienceAtTheMeter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs := circuits(t, Config{Patience: time.Minute})
		h := &host{answer: down}
		var between atomic.Pointer[func()]
		rt := cs.Door(&middle{cs.Meter(h), &between})
		pause := func() { time.Sleep(50 * time.Millisecond) }
		between.Store(&pause)
		var good atomic.Int64
		for range 20 { // on their way when it opens
			go func() {
				if code, _ := get(rt, site); code == 200 {
					good.Add(1)
				}
			}()
		}
		synctest.Wait()
		between.Store(nil)
		for range 5 {
			get(rt, site)
		}
		want(t, cs, Open, "five failures")
		h.set(status(200))
		time.Sleep(100 * time.Millisecond)
		if n := cs.Stats().Circuits[0].Waiting; n != 20 {
			t.Errorf("%d wait at the wire, want 20", n)
		}
		time.Sleep(5 * time.Second)
		if good.Load() != 20 {
			t.Errorf("%d of 20 went through", good.Load())
		}
	})
}

// TestOutlook is what retry and throttle are told.
func TestOutlook(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, patience := range []time.Duration{0, time.Minute} {
			cs, h, _ := rig(t, Config{Patience: patience, OpenFor: 10 * time.Second})
			m := cs.Meter(h)
			r, tr, _ := trip.Begin(httptest.NewRequest("GET", site, nil), trip.Retry, trip.Below(m).Hosts)
			check := func(when string, lo, hi time.Duration, refused bool) {
				t.Helper()
				wait, err := trip.Outlook(m, r)
				if wait < lo || wait > hi || (notsent.Refused(err) == notsent.Meter) != refused {
					t.Errorf("%s, Patience %v: %v, %v", when, patience, wait, err)
				}
			}
			check("no circuit", 0, 0, false)
			h.set(down)
			for range 5 {
				get(m, site)
			}
			check("open", 8*time.Second, 12*time.Second, patience == 0)
			due(t, cs)
			check("due", 0, 0, false)
			hung := make(chan bool)
			h.set(func(r *http.Request) (*http.Response, error) { <-hung; return status(200)(r) })
			go get(m, site)
			synctest.Wait()
			check("a probe under way", 0, 0, patience == 0)
			close(hung)
			synctest.Wait()
			check("between probes", 0, 0, false)
			cs.Force("a.example", Open)
			check("forced open", 0, 0, true)
			cs.Force("a.example", Closed)
			check("forced closed", 0, 0, false)
			tr.End(nil)
		}
	})
}
