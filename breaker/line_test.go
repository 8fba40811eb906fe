package breaker_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"pgregory.net/rapid"
)

// arrival is one request of a generated history.
type arrival struct {
	at      time.Duration
	limit   time.Duration // of its deadline; 0: none
	cancel  time.Duration // after which it is cancelled; 0: not
	atMeter bool          // it comes in behind the Door
	takes   time.Duration // at the base
}

// GoString is what rapid shows.
func (a arrival) GoString() string { return fmt.Sprintf("%+v", struct{ A any }{a.at}) }

// weather says when the host is down.
type weather struct{ from, to time.Duration }

// watchdog is a base that follows the weather and counts probes at a time.
type watchdog struct {
	start         time.Time
	down          []weather
	probes, worst atomic.Int64
}

func (w *watchdog) RoundTrip(r *http.Request) (*http.Response, error) {
	if trip.From(r.Context()).Probe {
		if n := w.probes.Add(1); n > w.worst.Load() {
			w.worst.Store(n)
		}
		defer w.probes.Add(-1)
	}
	at := time.Since(w.start)
	takes, _ := r.Context().Value(takesKey{}).(time.Duration)
	if err := testnet.Wait(r.Context(), takes); err != nil {
		return nil, err
	}
	for _, d := range w.down {
		if at >= d.from && at < d.to {
			return nil, errReset
		}
	}
	return testnet.Answer(r, 200, nil, nil), nil
}

type takesKey struct{}

// live plays a history and returns the first rule it breaks.
func live(t *testing.T, patience time.Duration, down []weather, list []arrival) error {
	cs := circuits(t, breaker.Config{Patience: patience, Consecutive: 2})
	base := &watchdog{start: time.Now(), down: down}
	meter := cs.Meter(base)
	doorAndMeter := cs.Door(meter)
	var mu sync.Mutex
	var broken error
	breaks := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		if broken == nil {
			broken = fmt.Errorf(format, args...)
		}
	}
	var all sync.WaitGroup
	for i, a := range list {
		all.Go(func() {
			time.Sleep(a.at)
			ctx := context.WithValue(t.Context(), takesKey{}, a.takes)
			var stop context.CancelFunc
			if a.limit > 0 {
				ctx, stop = context.WithTimeout(ctx, a.limit)
				defer stop()
			}
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			if a.cancel > 0 {
				time.AfterFunc(max(1, a.cancel), cancel)
			}
			rt := doorAndMeter
			if a.atMeter {
				rt = meter
			}
			begun := time.Now()
			_, err := send(ctx, rt)
			took := time.Since(begun)
			var e *breaker.Error
			refused := errors.As(err, &e)
			switch {
			case took > 2*patience+a.takes: // once at the Door and, if it was overtaken, at the wire
				breaks("request %d took %v", i, took)
			case a.limit > 0 && took > a.limit:
				breaks("request %d outlived its deadline: %v", i, took)
			case refused && notsent.Refused(err) == notsent.Nobody:
				breaks("request %d: %v says nobody refused it", i, err)
			case refused && took > 0 && a.limit == 0 && a.cancel == 0 && took < patience-11*time.Second:
				breaks("request %d was refused after %v: %v", i, took, err)
			}
		})
	}
	all.Wait()
	if n := base.worst.Load(); n > 1 {
		breaks("%d probes at a time", n)
	}
	time.Sleep(2 * time.Minute)
	for range 3 {
		get(doorAndMeter, site)
	}
	if s := cs.State("a.example"); s != breaker.Closed {
		breaks("it ends %v", s)
	}
	for _, s := range cs.Stats().Circuits {
		if s.Waiting != 0 {
			breaks("%d are still in line", s.Waiting)
		}
	}
	synctest.Wait()
	return broken
}

// The signal by which a throttle takes a wait over has a text of its own, in
// case it is seen.
func TestYieldText(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, _ := rig(t, breaker.Config{Patience: time.Minute})
		m := cs.Meter(h)
		h.set(down)
		for range 5 {
			get(m, site)
		}
		r, tr, _ := trip.Begin(httptest.NewRequest("GET", site, nil), trip.Throttle, trip.Below(m).Hosts)
		defer tr.End(nil)
		tr.Yields = true
		_, err := m.RoundTrip(r)
		if _, ok := err.(trip.Yield); !ok || !strings.HasPrefix(err.Error(), "breaker: ") || notsent.Refused(err) != notsent.Meter {
			t.Errorf("the Meter says %#v, %v", err, err)
		}
	})
}

// TestNoLineHasMoreThanOneProbe plays generated histories of outages and of requests that wait,
// are cancelled, or run out of time: there is never more than one probe, no
// request outlives its deadline or waits beyond Patience, and in the end the
// circuit is closed and nobody is left in line.
func TestNoLineHasMoreThanOneProbe(t *testing.T) {
	if f := flag.Lookup("rapid.seed"); f.Value.String() == "0" {
		f.Value.Set("20261122")
		defer f.Value.Set("0")
	}
	rapid.Check(t, func(rt *rapid.T) {
		ms := func(name string, most int) time.Duration {
			return time.Duration(rapid.IntRange(0, most).Draw(rt, name)) * time.Millisecond
		}
		patience := rapid.SampledFrom([]time.Duration{time.Second, 5 * time.Second, time.Minute}).Draw(rt, "Patience")
		var down []weather
		for at, i := time.Duration(0), 0; i < 3; i++ {
			from := at + ms("fine", 5000)
			at = from + ms("storm", 12000)
			down = append(down, weather{from, at})
		}
		list := make([]arrival, rapid.IntRange(1, 150).Draw(rt, "requests"))
		for i := range list {
			a := arrival{at: ms("at", 25000), takes: ms("takes", 200), atMeter: rapid.IntRange(0, 4).Draw(rt, "by") == 0}
			switch rapid.IntRange(0, 3).Draw(rt, "end") {
			case 0:
				a.limit = 10*time.Millisecond + ms("limit", 10000)
			case 1:
				a.cancel = time.Millisecond + ms("cancel", 10000)
			}
			list[i] = a
		}
		var err error
		synctest.Test(t, func(t *testing.T) { err = live(t, patience, down, list) })
		if err != nil {
			rt.Fatal(err)
		}
	})
}

// TestThoseInLineLeaveAtAThirdOfTheirRate: those in line go three times as far apart as they came, at most 100 ms,
// but sooner if the time of one would end before his turn, and never closer
// than they came.
func TestThoseInLineLeaveAtAThirdOfTheirRate(t *testing.T) {
	const farthest = 100 * time.Millisecond
	for _, x := range []struct {
		name     string
		n        int
		waited   time.Duration // by the first of them; they came evenly
		patience time.Duration
		limit    time.Duration // of their deadlines; 0: none
		gap      time.Duration
	}{
		{"much time", 1000, 10 * time.Second, time.Hour, 0, 30 * time.Millisecond},
		{"few", 10, 10 * time.Second, time.Hour, 0, farthest},
		{"two", 2, 10 * time.Second, time.Hour, 0, farthest},
		{"twice as long as they waited", 1000, 10 * time.Second, 20 * time.Second, 0, 20 * time.Millisecond},
		{"no time for that", 1000, 10 * time.Second, 11 * time.Second, 0, 11 * time.Millisecond},
		{"no time at all", 1000, 10 * time.Second, 10*time.Second + time.Millisecond, 0, 10 * time.Millisecond},
		// He gives up 50 ms before his deadline, and goes a second before that.
		{"a deadline, and time for an answer", 1000, 10 * time.Second, time.Hour, 20*time.Second + 50*time.Millisecond, 19 * time.Millisecond},
	} {
		bubble(t, func(t *testing.T) {
			cs, h, rt := rig(t, breaker.Config{Patience: x.patience, Probes: 1, OpenFor: time.Hour, MaxOpenFor: time.Hour, Window: 100 * time.Hour})
			open(t, cs, h, rt)
			gate := make(chan answer)
			h.set(func(r *http.Request) (*http.Response, error) { return (<-gate)(r) })
			go get(rt, site) // the probe
			synctest.Wait()
			var mu sync.Mutex
			var at []time.Time // when they were sent
			h.set(func(r *http.Request) (*http.Response, error) {
				mu.Lock()
				defer mu.Unlock()
				at = append(at, time.Now())
				return status(200)(r)
			})
			var all sync.WaitGroup
			for range x.n {
				all.Go(func() {
					ctx := t.Context()
					if x.limit > 0 {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, x.limit)
						defer cancel()
					}
					send(ctx, rt)
				})
				time.Sleep(x.waited / time.Duration(x.n))
			}
			gate <- status(200)
			all.Wait()
			if len(at) != x.n {
				t.Fatalf("%s: %d of %d were sent", x.name, len(at), x.n)
			}
			turns := min(x.n-1, x.n/20+1) // later ones may go before their turn, as their time is up
			gap := at[turns].Sub(at[0]) / time.Duration(turns)
			if (gap - x.gap).Abs() > 100*time.Microsecond {
				t.Errorf("%s: %v apart, want %v", x.name, gap, x.gap)
			}
		})
	}
}
