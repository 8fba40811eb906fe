package throttle_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// A slow start is a precaution. It lets calls wait, but it refuses none whose time to wait is
// over, and none that may not wait, as long as the host has refused nothing.
func TestASlowStartRefusesNobody(t *testing.T) {
	const latency = 100 * time.Millisecond
	for _, test := range []struct {
		name     string
		calls    int
		every    time.Duration
		config   throttle.Config
		deadline time.Duration // one call was answered before, so it is known how long that takes
		refuses  bool          // the host refuses the 20th call
		lost     bool          // calls are
	}{
		{name: "a burst that never waits", calls: 500, config: throttle.Config{MaxWait: -1}},
		{name: "a stream that never waits", calls: 500, every: 5 * time.Millisecond, config: throttle.Config{MaxWait: -1}},
		{name: "a budget", calls: 500, config: throttle.Config{MaxWait: -1, Default: throttle.MustParseBudget("1000/s burst 1000, 600 in flight")}},
		{name: "a budget that is spent", calls: 500, config: throttle.Config{MaxWait: -1, Default: throttle.MustParseBudget("1000/s burst 1000, 400 in flight")}, lost: true},
		{name: "a refusal", calls: 500, every: 5 * time.Millisecond, config: throttle.Config{MaxWait: -1}, refuses: true, lost: true},
		{name: "a short MaxWait", calls: 500, config: throttle.Config{MaxWait: 250 * time.Millisecond}},
		{name: "deadlines", calls: 500, deadline: 500 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var sent, lost atomic.Int32
				tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
					if sent.Add(1) == 20 && test.refuses {
						return testnet.Answer(r, 429, http.Header{"Retry-After": {"1"}}, nil), nil
					}
					if err := testnet.Wait(r.Context(), latency); err != nil {
						return nil, err
					}
					return testnet.Answer(r, 200, nil, nil), nil
				}), test.config)
				if test.deadline > 0 {
					mustGet(t, tr, "http://h/")
				}
				var wg sync.WaitGroup
				for i := range test.calls {
					wg.Go(func() {
						time.Sleep(time.Duration(i) * test.every)
						ctx := t.Context()
						if test.deadline > 0 {
							var cancel context.CancelFunc
							ctx, cancel = context.WithTimeout(ctx, test.deadline)
							defer cancel()
						}
						if _, err := testnet.Get(t, ctx, tr, "http://h/"); err != nil {
							lost.Add(1)
						}
					})
				}
				wg.Wait()
				if lost.Load() > 0 != test.lost {
					t.Errorf("%d of %d calls were lost", lost.Load(), test.calls)
				}
			})
		})
	}
}
