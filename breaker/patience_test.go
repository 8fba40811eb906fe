package breaker_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/trip"
)

// TestPatienceRefusals: what cannot wait is refused at once, with its reason.
func TestPatienceRefusals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, h, rt := rig(t, breaker.Config{Patience: 2 * time.Second, OpenFor: 10 * time.Second})
		h.set(down)
		for range 5 {
			get(rt, site)
		}
		start := time.Now()
		_, err := send(t.Context(), rt)
		var e *breaker.Error
		if !errors.As(err, &e) || e.Timeout() || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("longer than Patience: %v", err)
		}
		var cs *breaker.Circuits
		cs, h, rt = rig(t, breaker.Config{Patience: time.Minute, OpenFor: 10 * time.Second})
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
		cs, h, rt := rig(t, breaker.Config{Patience: time.Minute, OpenFor: 6 * time.Second, MaxOpenFor: 20 * time.Second})
		h.set(down)
		for range 5 {
			get(rt, site)
		}
		due(t, cs)
		hung := make(chan bool)
		h.set(func(r *http.Request) (*http.Response, error) { <-hung; return nil, errReset })
		go get(rt, site) // the probe, which tells nothing for long; the next may go after OpenFor
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
			cs, h, rt := rig(t, breaker.Config{Patience: time.Minute, MaxOpenFor: 10 * time.Second})
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
		cs, h, rt := rig(t, breaker.Config{Patience: time.Hour})
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
		cs, h, rt := rig(t, breaker.Config{Patience: time.Minute, OpenFor: 10 * time.Second})
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

// TestPatienceRelease: under steady traffic the host gets at most one and a
// half times what arrives when it is back, or twice if Patience leaves no time for
// less, and everybody who waited is served.
func TestPatienceRelease(t *testing.T) {
	release(t, 5*time.Millisecond, 3500*time.Millisecond, 28)
	release(t, 20*time.Millisecond, 30*time.Second, 7+1)
	release(t, 20*time.Millisecond, 55*time.Second, 10+1)
}

func release(t *testing.T, every, outage time.Duration, most int) {
	bubble(t, func(t *testing.T) {
		_, h, rt := rig(t, breaker.Config{Patience: time.Minute})
		start := time.Now()
		var mu sync.Mutex
		var at []time.Duration
		h.set(func(r *http.Request) (*http.Response, error) {
			since := time.Since(start)
			if since < outage {
				return down(r)
			}
			mu.Lock()
			at = append(at, since)
			mu.Unlock()
			return status(200)(r)
		})
		var all sync.WaitGroup
		n, failed := 0, 0
		for ; time.Since(start) < 4*outage; time.Sleep(every) {
			n++
			all.Go(func() {
				if _, err := send(t.Context(), rt); err != nil {
					mu.Lock()
					failed++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		const width = 100 * time.Millisecond
		first, worst := 0, 0
		for i := range at {
			for at[i]-at[first] >= width {
				first++
			}
			worst = max(worst, i-first+1)
		}
		if worst > most {
			t.Errorf("%v: %d in %v, want at most %d", outage, worst, width, most)
		}
		if failed > 60 || len(at) < n-failed { // those before it opens, and its probes
			t.Errorf("%v: %d of %d failed, %d reached the host", outage, failed, n, len(at))
		}
	})
}

// TestPatienceOrder: the line is first come, first served, one probe at a
// time, then spread.
func TestPatienceOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{Patience: time.Minute, OpenFor: 10 * time.Second, Consecutive: 1})
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
			if at[i]-at[i-1] != 100*time.Millisecond {
				t.Errorf("released at %v", at)
				break
			}
		}
		if at[2] != 0 {
			t.Errorf("probes at %v", at)
		}
	})
}

// TestSilenceAndPatience: only those wait whose routes are bound, and those
// who ask do not stand in their line. An attempt's outlook says the same.
func TestSilenceAndPatience(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs := circuits(t, breaker.Config{Patience: time.Minute, OpenFor: time.Hour, MaxOpenFor: time.Hour})
		h := &host{answer: silentOn("/a")}
		m := cs.Meter(h)
		rt := cs.Door(m)
		asks(t, rt, "aaaaa")
		want(t, cs, breaker.Open, "five silences")
		outlook := func(path string) error {
			r, tr, _ := trip.Begin(httptest.NewRequest("GET", "http://a.example"+path, nil), trip.Retry, trip.Below(m).Hosts)
			defer tr.End(nil)
			_, err := trip.Outlook(m, r)
			return err
		}
		if a, q := outlook("/a"), outlook("/q"); !refused(a) || q != nil {
			t.Errorf("outlook of what was silent: %v; of what was not: %v", a, q)
		}
		cs.SetHost("a.example", breaker.Config{Patience: time.Minute})
		asks(t, rt, "aaaaa")
		h.set(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/a" {
				t.Error("what was silent is sent before its time")
			}
			return status(200)(r)
		})
		start := time.Now()
		done := make(chan error)
		go func() { _, err := get(rt, site+"a"); done <- err }()
		synctest.Wait()
		if err := patiently(t, rt, "/q"); err != nil || !time.Now().Equal(start) {
			t.Errorf("asked after %v: %v", time.Since(start), err)
		}
		h.set(status(200))
		if err := <-done; err != nil {
			t.Error(err)
		}
		want(t, cs, breaker.Closed, "another route was answered")
	})
}

// TestPatienceEndsWhereSilenceBinds: one that waits for a host that failed
// goes at once when a probe's silence shows that only its route may be bad.
func TestPatienceEndsWhereSilenceBinds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{Patience: time.Minute, OpenFor: 5 * time.Second})
		h.set(down)
		for range 5 {
			get(rt, site)
		}
		due(t, cs)
		h.set(silentOn("/a"))
		start := time.Now()
		go asks(t, rt, "a") // the probe
		synctest.Wait()
		if err := patiently(t, rt, "/q"); !refused(err) {
			t.Errorf("did not wait: %v", err) // it has 2 s, as the probe has
		}
		done := make(chan error)
		go func() { _, err := get(rt, site+"q"); done <- err }()
		if err := <-done; err != nil || time.Since(start) > 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		want(t, cs, breaker.Closed, "another route was answered")
	})
}
