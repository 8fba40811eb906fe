package breaker

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlowProbesHoldNobodyUp: the next probe goes when one has been away for
// OpenFor, and that doubles as long as none comes back.
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
		wants := []time.Duration{0, 1, 3, 7, 15, 31, 61, 91} // at most half a Window apart
		if len(sent) != len(wants) {
			t.Fatalf("sent at %v", sent)
		}
		for i := range wants {
			if sent[i] != wants[i]*time.Second {
				t.Fatalf("sent at %v", sent)
			}
		}
		h.set(status(200))
		time.Sleep(30 * time.Second)
		for range 3 {
			if _, err := get(rt, site); err != nil {
				t.Error(err)
			}
		}
		want(t, cs, Closed, "three good probes beside eight slow ones")
		for range wants {
			gate <- down
		}
		synctest.Wait()
		want(t, cs, Closed, "the slow ones are of an earlier time")
	})
}
