package retry_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// hole dials nothing, for ever, or after a time.
type hole struct {
	n     *testnet.Net
	after time.Duration // zero: for ever
}

func (h hole) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if h.after == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	testnet.Wait(ctx, h.after)
	return h.n.DialContext(ctx, network, addr)
}

// A dial that leads nowhere ends after AttemptTimeout, for those that dial and
// for those that wait until they may, and though others have connections.
func TestDialIntoTheVoid(t *testing.T) {
	for name, way := range ways {
		for _, most := range []int{0, 2} {
			bubble(t, fmt.Sprintf("%s, MaxConnsPerHost=%d", name, most), func(t *testing.T) {
				base := &http.Transport{DialContext: hole{}.DialContext, MaxConnsPerHost: most}
				rt := newTransport(t, way(base), retry.Config{AttemptTimeout: 3 * time.Second, MaxAttempts: 1})
				errs, took := each(t, rt, 6)
				for i, err := range errs {
					var late *retry.TimeoutError
					if !errors.As(err, &late) || took[i] != 3*time.Second {
						t.Errorf("%v after %v", err, took[i])
					}
				}
				base.CloseIdleConnections() // ends the dials
			})
		}
	}
}

// void is a net.Dialer that gets nowhere.
func void() *net.Dialer {
	return &net.Dialer{ControlContext: func(ctx context.Context, _, _ string, _ syscall.RawConn) error {
		<-ctx.Done()
		return ctx.Err()
	}}
}

// So does one into the void while others have connections: it is no queueing.
func TestDialIntoTheVoidBesideOthers(t *testing.T) {
	for name, way := range ways {
		bubble(t, name, func(t *testing.T) {
			base := &http.Transport{DialContext: void().DialContext}
			dials := way(base)
			rt := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
				if r.URL.Path == "/has" {
					return reporting{asks: true, gets: true, holds: time.Hour}.RoundTrip(r)
				}
				return dials.RoundTrip(r)
			}), retry.Config{MaxAttempts: 1, AttemptTimeout: 2 * time.Hour})
			var wg sync.WaitGroup
			wg.Go(func() { rt.RoundTrip(request(t, "GET", "http://127.0.0.1/has", "")) })
			synctest.Wait()
			if !hasConnection(rt.Link().Hosts, "127.0.0.1") {
				t.Error("the other has no connection")
			}
			r := request(t, "GET", "http://127.0.0.1/", "")
			start := time.Now()
			ctx, cancel := context.WithTimeout(retry.With(r.Context(), retry.Override{AttemptTimeout: 3 * time.Second}), time.Hour)
			defer cancel()
			_, err := rt.RoundTrip(r.WithContext(ctx))
			if took := time.Since(start); err == nil || took != 3*time.Second {
				t.Errorf("%v after %v", err, took)
			}
			wg.Wait()
			base.CloseIdleConnections()
		})
	}
}

// A connection that another attempt has left is not what an attempt dialled for
// so long: it has its whole time with it.
func TestConnectionOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base, _, stop := testnet.Server(t, slowly(2*time.Second), false)
		rt := newTransport(t, base, retry.Config{MaxAttempts: 1, AttemptTimeout: 3 * time.Second})
		var wg sync.WaitGroup
		wg.Go(func() { each(t, rt, 1) })
		synctest.Wait()
		base.DialContext = hole{}.DialContext
		if errs, took := each(t, rt, 1); errs[0] != nil || took[0] != 4*time.Second {
			t.Errorf("%v after %v", errs[0], took[0])
		}
		wg.Wait()
		stop()
	})
}

// AttemptTimeout is for dialling and the answer together; what an attempt spends
// in the queue before it dials is not.
func TestDiallingCounts(t *testing.T) {
	for _, tt := range []struct {
		dial, answer time.Duration
		ok           bool
	}{
		{2 * time.Second, 900 * time.Millisecond, true},
		{2 * time.Second, 1100 * time.Millisecond, false},
	} {
		bubble(t, fmt.Sprintf("dialled %v, answered in %v", tt.dial, tt.answer), func(t *testing.T) {
			base, n, stop := testnet.Server(t, slowly(tt.answer), false)
			base.DialContext = hole{n, tt.dial}.DialContext
			base.MaxConnsPerHost, base.DisableKeepAlives = 1, true
			rt := newTransport(t, base, retry.Config{AttemptTimeout: 3 * time.Second, MaxAttempts: 1})
			errs, took := each(t, rt, 10)
			for i, err := range errs {
				if ok := err == nil; ok != tt.ok {
					t.Errorf("%v after %v", err, took[i])
				}
			}
			stop()
		})
	}
}
