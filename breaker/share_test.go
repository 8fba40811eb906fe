package breaker_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/weirhttp/weir/breaker"
)

// An outage of any length costs the host a hundredth of what it is spared, in
// probes that are OpenFor apart, and at least one per MaxOpenFor. It ends for the
// callers when a hundred more have come, or the MaxOpenFor has passed.
func TestProbesAreAShare(t *testing.T) {
	for _, rate := range []int{1, 5, 20, 100, 200, 1000} {
		for _, lasts := range []time.Duration{3 * time.Second, time.Minute, 10 * time.Minute} {
			if rate*int(lasts/time.Second) > 200000 {
				continue
			}
			bubble(t, func(t *testing.T) {
				name := fmt.Sprintf("%d/s, %v", rate, lasts)
				gap := time.Second / time.Duration(rate)
				cs, h, rt := rig(t, breaker.Config{})
				h.set(down)
				for range 5 {
					get(rt, site)
				}
				var probes []time.Time
				for start := time.Now(); time.Since(start) < lasts; time.Sleep(gap) {
					if get(rt, site); h.calls.Load() > int64(5+len(probes)) {
						probes = append(probes, time.Now())
					}
				}
				arrivals := rate * int(lasts/time.Second)
				if most := max(arrivals/100, 1+int(lasts/(48*time.Second))); len(probes) > most {
					t.Errorf("%s: %d probes, want at most %d", name, len(probes), most)
				}
				if least := int(lasts / (time.Minute + gap)); len(probes) < least {
					t.Errorf("%s: %d probes, want at least %d", name, len(probes), least)
				}
				for i := range probes[min(1, len(probes)):] {
					if d := probes[i+1].Sub(probes[i]); d < 250*time.Millisecond || d > time.Minute+gap {
						t.Errorf("%s: %v between two probes", name, d)
					}
				}
				back := time.Now()
				h.set(status(200))
				for cs.State("a.example") != breaker.Closed {
					get(rt, site)
					time.Sleep(gap)
				}
				if d, most := time.Since(back), max(300*time.Millisecond, min(100*gap, time.Minute))+5*gap; d > most {
					t.Errorf("%s: back after %v, want %v", name, d, most)
				}
			})
		}
	}
}

// A blip is over for a thin trickle of calls within 5 s, not within a MaxOpenFor.
func TestABlipIsSoonOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		h.set(down)
		for range 5 {
			get(rt, site)
		}
		h.set(status(200))
		start := time.Now()
		for cs.State("a.example") != breaker.Closed {
			time.Sleep(time.Second)
			get(rt, site)
		}
		if d := time.Since(start); d > 8*time.Second {
			t.Errorf("closed after %v", d)
		}
	})
}

// A refusal says when the next probe goes if calls come as they came, a probe
// that is lost does not use up its share, and one that failed after the host
// answered a later one well does not count.
func TestWhatProbesAreWorth(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		open(t, cs, h, rt)
		get(rt, site) // on credit: 200 until the next
		start := time.Now()
		var e *breaker.Error
		for range 150 {
			time.Sleep(100 * time.Millisecond)
			if _, err := get(rt, site); !errors.As(err, &e) {
				t.Fatal(err)
			}
		}
		if d := time.Since(start) + e.RetryAfter; d < 18*time.Second || d > 22*time.Second {
			t.Errorf("a probe was expected after %v, want 20s", d)
		}
		h.set(func(*http.Request) (*http.Response, error) { panic("lost") })
		calls := h.calls.Load()
		for range 60 {
			time.Sleep(100 * time.Millisecond)
			func() {
				defer func() { recover() }()
				get(rt, site)
			}()
		}
		if n := h.calls.Load() - calls; n < 5 {
			t.Errorf("%d probes after one was lost", n)
		}
	})
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		open(t, cs, h, rt)
		gate := make(chan bool)
		h.set(func(r *http.Request) (*http.Response, error) { <-gate; return down(r) })
		go get(rt, site)
		time.Sleep(time.Minute)
		h.set(status(200))
		get(rt, site)
		close(gate)
		time.Sleep(time.Millisecond)
		want(t, cs, breaker.HalfOpen, "an older probe failed")
		get(rt, site)
		get(rt, site)
		want(t, cs, breaker.Closed, "three good probes")
	})
}
