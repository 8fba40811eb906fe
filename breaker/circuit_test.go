package breaker

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// TestOpenPeriodsAreJittered: circuits that open together do not probe together.
func TestOpenPeriodsAreJittered(t *testing.T) {
	seen := make(map[time.Duration]bool)
	for range 100 {
		d := jitter(time.Second, 0, time.Minute)
		if d < 800*time.Millisecond || d > 1200*time.Millisecond {
			t.Fatalf("%v", d)
		}
		seen[d] = true
		if d = jitter(time.Minute, 0, time.Minute); d < 48*time.Second || d > time.Minute {
			t.Fatalf("at the longest: %v", d)
		}
		if d = jitter(time.Second, 10*time.Second, time.Minute); d < 10*time.Second || d > 12*time.Second {
			t.Fatalf("with Retry-After: %v", d)
		}
		if d = jitter(time.Second, 1<<62, time.Minute); d != time.Minute {
			t.Fatalf("with a huge Retry-After: %v", d)
		}
	}
	if len(seen) < 90 {
		t.Errorf("%d different periods of 100", len(seen))
	}
}

func TestOpenPeriodHeedsRetryAfter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{})
		h.set(answerWith(500, "Retry-After", "20"))
		for range 20 {
			get(rt, site)
		}
		_, err := get(rt, site)
		var e *Error
		if !errors.As(err, &e) || e.RetryAfter < 20*time.Second || e.RetryAfter > 24*time.Second {
			t.Errorf("opened by Retry-After 20: %v", err)
		}
		due(t, cs)
		h.set(answerWith(503, "Retry-After", "30"))
		get(rt, site)
		want(t, cs, HalfOpen, "a probe was throttled")
		if _, err = get(rt, site); !errors.As(err, &e) || e.RetryAfter != 30*time.Second || e.State != HalfOpen {
			t.Errorf("probe answered Retry-After 30: %v", err)
		}
		h.set(answerWith(503, "Retry-After", "86400"))
		time.Sleep(30 * time.Second)
		get(rt, site)
		if _, err = get(rt, site); !errors.As(err, &e) || e.RetryAfter != time.Minute {
			t.Errorf("a day: %v", err)
		}
		_, h, rt = rig(t, Config{Consecutive: 1, Classify: func(*http.Response, error) Outcome { return Failure }})
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
		cs, h, rt := rig(t, Config{OpenFor: time.Second, Window: time.Minute})
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
		want(t, cs, Closed, "three good probes beside nine slow ones")
		for range sent {
			gate <- down
		}
		synctest.Wait()
		want(t, cs, Closed, "the slow ones are of an earlier time")
	})
}
