package breaker

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// takes is a host whose answers take a while.
func takes(d time.Duration) answer {
	return func(r *http.Request) (*http.Response, error) {
		if err := testnet.Wait(r.Context(), d); err != nil {
			return nil, err
		}
		return status(200)(r)
	}
}

// hurry makes one call in every with a long deadline, the others with a short one,
// and returns how many of the patient were not served.
func hurry(t *testing.T, rt http.RoundTripper, every int, lasts time.Duration) (lost, patient int64) {
	var served, all atomic.Int64
	load(t, rt, 10, lasts, func(i int) {
		d := 2 * time.Second
		if i%every == 0 {
			d = 20 * time.Second
			all.Add(1)
		}
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		resp, err := rt.RoundTrip(httptest.NewRequest("GET", site, nil).WithContext(ctx))
		if err == nil {
			resp.Body.Close()
			if i%every == 0 {
				served.Add(1)
			}
		}
	})
	return all.Load() - served.Load(), all.Load()
}

// Callers who wait for 2 s do not close a host whose answers take 3 s to those
// who wait for longer. What is lost comes before the first answer.
func TestHurriedCallersCloseNobodyOut(t *testing.T) {
	for _, every := range []int{2, 4, 10} {
		bubble(t, func(t *testing.T) {
			cs := circuits(t, Config{})
			lost, of := hurry(t, cs.Door(cs.Meter(testnet.Func(takes(3*time.Second)))), every, 5*time.Minute)
			if t.Logf("one in %d is patient: %d of %d lost", every, lost, of); lost*100 > of {
				t.Errorf("one in %d is patient: %d of %d lost", every, lost, of)
			}
		})
	}
}

// A host that answers nobody any more is found out by hurried callers, too.
func TestHurriedCallersNoticeADeadHost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, Config{})
		h.set(takes(3 * time.Second))
		hurry(t, rt, 4, 30*time.Second)
		h.set(takes(time.Hour))
		start := time.Now()
		go hurry(t, rt, 1000, 20*time.Second)
		for cs.State("a.example") != Open && time.Since(start) < time.Minute {
			time.Sleep(100 * time.Millisecond)
		}
		if d := time.Since(start); d > 8*time.Second {
			t.Errorf("noticed after %v", d)
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
	})
}
