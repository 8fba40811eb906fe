package breaker_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/trip"
)

// leaving is the context of a caller who goes at one instant, while its timers and
// channels are late: Err knows before Done does.
type leaving struct {
	context.Context
	gone *atomic.Bool
}

func (l leaving) Err() error {
	if l.gone.Load() {
		return context.Canceled
	}
	return l.Context.Err()
}

// TestPatienceLeavesAsItIsLetIn: a place given to one whose caller has just gone
// goes to the next, at once.
func TestPatienceLeavesAsItIsLetIn(t *testing.T) {
	for _, layer := range []string{"door", "meter"} {
		bubble(t, func(t *testing.T) {
			cs, h, _ := rig(t, breaker.Config{Patience: time.Minute, OpenFor: 10 * time.Second})
			rt := cs.Meter(h)
			if layer == "door" {
				rt = cs.Door(rt)
			}
			h.set(down)
			for range 5 {
				get(rt, site)
			}
			h.set(status(200))
			until := cs.Stats().Circuits[0].NotBefore
			ctx := leaving{t.Context(), new(atomic.Bool)}
			left, came := make(chan error, 1), make(chan time.Time, 1)
			go func() {
				_, err := send(ctx, rt)
				left <- err
			}()
			synctest.Wait()
			go func() {
				send(t.Context(), rt)
				came <- time.Now()
			}()
			time.Sleep(time.Until(until) - 1)
			ctx.gone.Store(true)
			if err := <-left; !errors.Is(err, context.Canceled) || notsent.Refused(err) == notsent.Nobody || !time.Now().Equal(until) {
				t.Errorf("%s: the first got %v at %v, want to be let in at %v", layer, err, time.Now(), until)
			}
			if at := <-came; !at.Equal(until) {
				t.Errorf("%s: the second came %v later", layer, at.Sub(until))
			}
		})
	}
}

// TestHedgesNeitherWaitNorProbe: they take room now or never.
func TestHedgesNeitherWaitNorProbe(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{Patience: time.Minute})
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
	const maxWaiting = 10000
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{Patience: time.Minute, OpenFor: 10 * time.Second})
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

// TestPatienceCandidateThatLeaves: a candidate that never reaches the wire,
// or panics on the way, keeps nobody waiting for long.
func TestPatienceCandidateThatLeaves(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs := circuits(t, breaker.Config{Patience: time.Minute})
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
		if d := time.Since(start); d > 2*time.Second { // it has one to reach the wire
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
		cs := circuits(t, breaker.Config{Patience: time.Minute})
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
		want(t, cs, breaker.Open, "five failures")
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

// TestOutlookTellsTheWaitForTheCircuit is what retry and throttle are told.
func TestOutlookTellsTheWaitForTheCircuit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, patience := range []time.Duration{0, time.Minute} {
			cs, h, _ := rig(t, breaker.Config{Patience: patience, OpenFor: 10 * time.Second})
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
			cs.Force("a.example", breaker.Open)
			check("forced open", 0, 0, true)
			cs.Force("a.example", breaker.Closed)
			check("forced closed", 0, 0, false)
			tr.End(nil)
		}
	})
}

// yielding waits elsewhere, as a throttle does.
type yielding struct {
	base http.RoundTripper
	slow time.Duration
}

func (y *yielding) Link() trip.Link { return y.base.(trip.Linked).Link() }

func (y *yielding) RoundTrip(r *http.Request) (*http.Response, error) {
	for {
		time.Sleep(y.slow)
		tr := trip.From(r.Context())
		tr.Yields = true
		resp, err := y.base.RoundTrip(r)
		tr.Yields = false
		at, ok := err.(trip.Yield)
		if !ok {
			return resp, err
		}
		done, err := at.Wait(r, tr)
		if err != nil {
			return nil, err
		}
		defer done()
	}
}

// TestPatienceOvertaken: a request that was let in to probe, and finds at the
// wire that another did, does not keep the next one from being let in, and is
// still the first in line.
func TestPatienceOvertaken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var closed time.Time
		cs, h, _ := rig(t, breaker.Config{Patience: time.Minute, OnStateChange: func(c breaker.Change) { closed = c.At }})
		meter := cs.Meter(h)
		door := cs.Door(&yielding{meter, 50 * time.Millisecond})
		h.set(down)
		for range 5 {
			get(meter, site)
		}
		h.set(func(r *http.Request) (*http.Response, error) {
			time.Sleep(100 * time.Millisecond)
			return status(200)(r)
		})
		until := cs.Stats().Circuits[0].NotBefore
		var all sync.WaitGroup
		var mu sync.Mutex
		var order []int
		for i := range 5 {
			all.Go(func() {
				send(t.Context(), door)
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			})
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Until(until) + 10*time.Millisecond) // the first is on its way to the wire
		all.Go(func() { send(t.Context(), meter) })         // a retry, which is there already
		all.Wait()
		if !slices.IsSorted(order) {
			t.Errorf("served in order %v", order)
		}
		if d := closed.Sub(until); cs.State("a.example") != breaker.Closed || d > 700*time.Millisecond {
			t.Errorf("%v after %v, want closed after three probes of 150 ms, one after the other", cs.State("a.example"), d)
		}
	})
}
