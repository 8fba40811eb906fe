package breaker_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/notsent"
)

// TestLateResultsHaveNoVote sends five calls before the outage that end well
// during half-open, and fifty that end badly after it has closed.
func TestLateResultsHaveNoVote(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		gate := make(chan answer)
		h.set(func(r *http.Request) (*http.Response, error) { return (<-gate)(r) })
		for range 55 {
			go get(rt, site)
		}
		synctest.Wait()
		open(t, cs, h, rt)
		h.set(status(200))
		get(rt, site)
		want(t, cs, breaker.HalfOpen, "one probe")
		for range 5 {
			gate <- status(200)
		}
		synctest.Wait()
		want(t, cs, breaker.HalfOpen, "five late successes")
		get(rt, site)
		get(rt, site)
		want(t, cs, breaker.Closed, "three probes")
		for range 50 {
			gate <- down
		}
		synctest.Wait()
		want(t, cs, breaker.Closed, "fifty late failures")
	})
}

func TestCancelledProbeDoesNotClose(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{Probes: 1})
		open(t, cs, h, rt)
		h.set(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		for range 10 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Millisecond, cancel)
			rt.RoundTrip(httptest.NewRequest("GET", site, nil).WithContext(ctx))
			want(t, cs, breaker.HalfOpen, "a cancelled probe")
		}
		h.set(status(200))
		get(rt, site)
		want(t, cs, breaker.Closed, "a good probe after cancelled ones")
	})
}

func TestPanickingProbeWedgesNothing(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("base") }, "Goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cs, h, rt := rig(t, breaker.Config{})
				open(t, cs, h, rt)
				for range 10 {
					h.set(func(r *http.Request) (*http.Response, error) { end(); return nil, nil })
					done := make(chan bool)
					go func() {
						defer close(done)
						defer func() { recover() }()
						get(rt, site)
					}()
					<-done
					want(t, cs, breaker.HalfOpen, "after "+name)
				}
				h.set(status(200))
				for range 3 {
					if _, err := get(rt, site); err != nil {
						t.Fatal(err)
					}
				}
				want(t, cs, breaker.Closed, "good probes")
			})
		})
	}
}

// TestHungProbeWedgesNothing has a probe that never comes back.
func TestHungProbeWedgesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		open(t, cs, h, rt)
		gate := make(chan answer)
		h.set(func(r *http.Request) (*http.Response, error) { return (<-gate)(r) })
		for range 10 { // more than Probes: lost ones use up nothing
			go get(rt, site)
			synctest.Wait()
			if _, err := get(rt, site); notsent.Refused(err) != notsent.Door {
				t.Fatalf("beside a probe: %v", err)
			}
			time.Sleep(time.Minute)
		}
		h.set(status(200))
		for range 3 {
			if _, err := get(rt, site); err != nil {
				t.Fatal(err)
			}
		}
		want(t, cs, breaker.Closed, "good probes beside lost ones")
		for range 10 {
			gate <- down
		}
		synctest.Wait()
		want(t, cs, breaker.Closed, "lost probes came back")
	})
}

// TestProbeOfAnotherTimeHoldsNoPlace: a lost probe comes back and closes
// the circuit while another is out; when it opens again that one is history.
func TestProbeOfAnotherTimeHoldsNoPlace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{Probes: 1})
		open(t, cs, h, rt)
		first, second := make(chan bool), make(chan bool)
		h.set(func(r *http.Request) (*http.Response, error) { <-first; return status(200)(r) })
		go get(rt, site)
		time.Sleep(time.Minute)
		h.set(func(r *http.Request) (*http.Response, error) { <-second; return status(200)(r) })
		go get(rt, site)
		synctest.Wait()
		close(first)
		synctest.Wait()
		want(t, cs, breaker.Closed, "the lost probe was good")
		open(t, cs, h, rt)
		h.set(status(200))
		if code, err := get(rt, site); code != 200 {
			t.Errorf("a new probe: %v", err)
		}
		close(second)
	})
}

// TestSlowProbesCount has probes that take longer than their lease:
// their results count all the same.
func TestSlowProbesCount(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{Window: 10 * time.Second})
		open(t, cs, h, rt)
		h.set(func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Minute)
			return status(200)(r)
		})
		for range 3 {
			get(rt, site)
		}
		want(t, cs, breaker.Closed, "three slow probes")
	})
}

func TestHalfOpenLetsFewIn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		open(t, cs, h, rt)
		now, most := 0, 0
		mu := make(chan bool, 1)
		h.set(func(r *http.Request) (*http.Response, error) {
			mu <- true
			now++
			most = max(most, now)
			<-mu
			time.Sleep(time.Millisecond)
			mu <- true
			now--
			<-mu
			return answerWith(503, "Retry-After", "0")(r) // never closes
		})
		before := h.calls.Load()
		done := make(chan bool)
		for i := range 500 {
			go func() {
				time.Sleep(time.Duration(i) * 100 * time.Microsecond)
				get(rt, site)
				done <- true
			}()
		}
		for range 500 {
			<-done
		}
		if most != 1 || h.calls.Load() == before {
			t.Errorf("%d probes at a time, %d in all", most, h.calls.Load()-before)
		}
	})
}
