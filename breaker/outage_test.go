package breaker_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhttp/weir/breaker"
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
		if t.Patience != trip.Patient {
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

func patientChain(t *testing.T, c breaker.Config, base http.RoundTripper) (*breaker.Circuits, http.RoundTripper) {
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
				cs, rt := patientChain(t, breaker.Config{Patience: time.Minute}, o)
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
				spared := 200*int(lasts/time.Second) + 200
				if n := o.arrivals(o.from.Add(time.Second), o.to); n > 4+spared/100 { // and 4 that were on their way, or had no more time
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
				want(t, cs, breaker.Closed, "after it all")
			})
		})
	}
}

// TestPatienceIsOneSum: however often a request has to wait for its circuit,
// it does so for no longer than Patience.
func TestPatienceIsOneSum(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var calls atomic.Int64
		_, rt := patientChain(t, breaker.Config{Patience: 3 * time.Second}, testnet.Func(func(r *http.Request) (*http.Response, error) {
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
