package breaker_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/breaker"
)

// TestOpenPeriodsAreJittered: circuits that open together do not probe together.
func TestOpenPeriodsAreJittered(t *testing.T) {
	for _, x := range []struct {
		name              string
		openFor           time.Duration
		retryAfter        string
		shortest, longest time.Duration
		different         int // at least, of a hundred
	}{
		{"by a fifth", time.Second, "", time.Second, 1200 * time.Millisecond, 90},
		{"at the longest", time.Minute, "", 48 * time.Second, time.Minute, 90},
		{"with Retry-After", time.Second, "10", 10 * time.Second, 12 * time.Second, 90},
		{"with a huge Retry-After", time.Second, "999999999", time.Minute, time.Minute, 1},
	} {
		bubble(t, func(t *testing.T) {
			seen := make(map[time.Duration]bool)
			for range 100 {
				_, h, rt := rig(t, breaker.Config{OpenFor: x.openFor, MaxOpenFor: time.Minute})
				if h.set(status(500)); x.retryAfter != "" {
					h.set(answerWith(500, "Retry-After", x.retryAfter))
				}
				for range 20 {
					get(rt, site)
				}
				_, err := get(rt, site)
				var e *breaker.Error
				if !errors.As(err, &e) || e.RetryAfter < x.shortest || e.RetryAfter > x.longest {
					t.Fatalf("%s: %v", x.name, err)
				}
				seen[e.RetryAfter] = true
			}
			if len(seen) < x.different {
				t.Errorf("%s: %d different periods of 100", x.name, len(seen))
			}
		})
	}
}

func TestOpenPeriodHeedsRetryAfter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		h.set(answerWith(500, "Retry-After", "20"))
		for range 20 {
			get(rt, site)
		}
		_, err := get(rt, site)
		var e *breaker.Error
		if !errors.As(err, &e) || e.RetryAfter < 20*time.Second || e.RetryAfter > 24*time.Second {
			t.Errorf("opened by Retry-After 20: %v", err)
		}
		due(t, cs)
		h.set(answerWith(503, "Retry-After", "30"))
		get(rt, site)
		want(t, cs, breaker.HalfOpen, "a probe was throttled")
		if _, err = get(rt, site); !errors.As(err, &e) || e.RetryAfter != 30*time.Second || e.State != breaker.HalfOpen {
			t.Errorf("probe answered Retry-After 30: %v", err)
		}
		h.set(answerWith(503, "Retry-After", "86400"))
		time.Sleep(30 * time.Second)
		get(rt, site)
		if _, err = get(rt, site); !errors.As(err, &e) || e.RetryAfter != time.Minute {
			t.Errorf("a day: %v", err)
		}
		_, h, rt = rig(t, breaker.Config{Consecutive: 1, Classify: func(*http.Response, error) breaker.Outcome { return breaker.Failure }})
		h.set(answerWith(429, "Retry-After", "20"))
		for range 4 {
			get(rt, site)
		}
		if _, err = get(rt, site); !errors.As(err, &e) || e.RetryAfter < 20*time.Second {
			t.Errorf("429, classified as failure: %v", err)
		}
	})
}

// TestSlowProbesHoldNobodyUp: the next probe goes when its hundred requests
// have been turned away, whether the one before is back or not.
func TestSlowProbesHoldNobodyUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{OpenFor: time.Second, Window: time.Minute})
		open(t, cs, h, rt)
		start := time.Now()
		gate := make(chan answer)
		h.set(func(r *http.Request) (*http.Response, error) { return (<-gate)(r) })
		var sent []time.Duration
		for time.Since(start) < 100*time.Second {
			go get(rt, site)
			synctest.Wait()
			if n := int(h.calls.Load()) - 5; n > len(sent) {
				sent = append(sent, time.Since(start))
			}
			time.Sleep(100 * time.Millisecond)
		}
		if len(sent) != 9 {
			t.Fatalf("sent at %v", sent)
		}
		for i, at := range sent { // the first was on credit: it counts for two
			want := time.Duration(0)
			if i > 0 {
				want = time.Duration(i+1) * 10100 * time.Millisecond
			}
			if (at - want).Abs() > 200*time.Millisecond {
				t.Fatalf("number %d was sent at %v, want %v", i, at, want)
			}
		}
		h.set(status(200))
		time.Sleep(time.Minute)
		for range 3 {
			if _, err := get(rt, site); err != nil {
				t.Error(err)
			}
		}
		want(t, cs, breaker.Closed, "three good probes beside nine slow ones")
		for range sent {
			gate <- down
		}
		synctest.Wait()
		want(t, cs, breaker.Closed, "the slow ones are of an earlier time")
	})
}
