package breaker

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

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
