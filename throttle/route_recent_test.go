package throttle_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// A host that turns away at least half of those who came lately is refusing,
// whatever the reason; one that turns away fewer, or did so a while ago, is not.
func TestRefusingIsNotOK(t *testing.T) {
	brief := func(t *testing.T, tr *throttle.Transport, n int) {
		for range n {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			if resp, err := get(t, ctx, tr, "http://a/"); err == nil {
				resp.Body.Close()
			}
			cancel()
		}
	}
	spent := http.Header{"X-Ratelimit-Limit": {"5000"}, "X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"3000"}}
	for _, tt := range []struct {
		name  string
		c     throttle.Config
		head  http.Header // of answers
		do    func(t *testing.T, tr *throttle.Transport)
		state throttle.State
	}{
		{"nothing is left and callers are in a hurry", throttle.Config{}, spent, func(t *testing.T, tr *throttle.Transport) { brief(t, tr, 50) }, throttle.StateRefusing},
		{"a budget is spent", throttle.Config{Default: throttle.MustParseBudget("1/h")}, nil, func(t *testing.T, tr *throttle.Transport) { brief(t, tr, 2) }, throttle.StateRefusing},
		{"paused by hand", throttle.Config{}, nil, func(t *testing.T, tr *throttle.Transport) {
			tr.Pause("a", time.Now().Add(time.Hour))
			brief(t, tr, 1)
		}, throttle.StateRefusing},
		{"paused, and nobody came", throttle.Config{}, nil, func(t *testing.T, tr *throttle.Transport) { tr.Pause("a", time.Now().Add(time.Hour)) }, throttle.StatePaused},
		{"deadlines pass in the queue", throttle.Config{Default: throttle.MustParseBudget("1 in flight")}, nil, func(t *testing.T, tr *throttle.Transport) {
			resp := mustGet(t, tr, "http://a/") // holds the place
			brief(t, tr, 2)
			resp.Body.Close()
		}, throttle.StateRefusing},
		{"fewer than half", throttle.Config{Default: throttle.MustParseBudget("5/h burst 5")}, nil, func(t *testing.T, tr *throttle.Transport) { brief(t, tr, 9) }, throttle.StateOK},
		{"half", throttle.Config{Default: throttle.MustParseBudget("5/h burst 5")}, nil, func(t *testing.T, tr *throttle.Transport) { brief(t, tr, 10) }, throttle.StateRefusing},
		{"nobody", throttle.Config{}, nil, func(t *testing.T, tr *throttle.Transport) { brief(t, tr, 10) }, throttle.StateOK},
		{"a moment ago", throttle.Config{Default: throttle.MustParseBudget("1/h")}, nil, func(t *testing.T, tr *throttle.Transport) {
			brief(t, tr, 50)
			time.Sleep(9 * time.Second)
		}, throttle.StateRefusing},
		{"a while ago", throttle.Config{Default: throttle.MustParseBudget("1/h")}, nil, func(t *testing.T, tr *throttle.Transport) {
			brief(t, tr, 50)
			time.Sleep(20 * time.Second)
		}, throttle.StateOK},
		{"and others since", throttle.Config{Default: throttle.MustParseBudget("10/m burst 10")}, nil, func(t *testing.T, tr *throttle.Transport) {
			brief(t, tr, 50)
			time.Sleep(time.Minute)
			brief(t, tr, 10)
		}, throttle.StateOK},
		{"first many were served", throttle.Config{Default: throttle.MustParseBudget("100/h burst 100")}, nil, func(t *testing.T, tr *throttle.Transport) {
			brief(t, tr, 100)
			brief(t, tr, 99)
		}, throttle.StateOK},
		{"long ago many were served", throttle.Config{Default: throttle.MustParseBudget("100/h burst 100")}, nil, func(t *testing.T, tr *throttle.Transport) {
			brief(t, tr, 100)
			time.Sleep(21 * time.Second)
			brief(t, tr, 1)
		}, throttle.StateRefusing},
		{"callers left by themselves", throttle.Config{Default: throttle.MustParseBudget("1 in flight")}, nil, func(t *testing.T, tr *throttle.Transport) {
			resp := mustGet(t, tr, "http://a/")
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			get(t, ctx, tr, "http://a/")
			resp.Body.Close()
		}, throttle.StateOK},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBase(func(r *http.Request) (*http.Response, error) {
					return testnet.Answer(r, 200, tt.head.Clone(), testnet.NewBody("x")), nil
				})
				tr := newTransport(t, b, tt.c)
				tt.do(t, tr)
				h := tr.Stats().Hosts[0]
				if h.State != tt.state {
					t.Errorf("%q, want %q: %d granted, %d refused", h.State, tt.state, h.Granted, h.Refused)
				}
			})
		})
	}
}

// Those who wait are not turned away: a host that refuses one and makes many
// wait is not refusing.
func TestWaitingIsNotRefusing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(slow(0)), throttle.Config{Default: throttle.MustParseBudget("1/m burst 1"), MaxQueue: 3, MaxWait: time.Hour})
		done := make(chan struct{})
		for range 5 { // one goes, three wait, one is refused
			go func() {
				if resp, err := get(t, t.Context(), tr, "http://a/"); err == nil {
					resp.Body.Close()
				}
				done <- struct{}{}
			}()
			synctest.Wait()
		}
		<-done
		if h := tr.Stats().Hosts[0]; h.State != throttle.StateWaiting || h.Queue != 3 || h.Refused != 1 {
			t.Errorf("%q with %d waiting and %d refused", h.State, h.Queue, h.Refused)
		}
		for range 4 {
			<-done
		}
	})
}

// A route that turns its requests away is refusing, and so is its host; the
// others are not. Routes add up to what the host says.
func TestRefusingRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(slow(0)), throttle.Config{Budgets: map[string]throttle.Budget{"GET a/search": throttle.MustParseBudget("1/h")}, MaxWait: -1})
		for i := range 20 {
			for _, path := range []string{"search", "items", fmt.Sprint("other", i%3)} {
				if resp, err := get(t, t.Context(), tr, "http://a/"+path); err == nil {
					resp.Body.Close()
				}
			}
		}
		h := tr.Stats().Hosts[0]
		var refused, granted int64
		for _, r := range h.Routes {
			want := throttle.StateOK
			if r.Route == "GET a/search" {
				want = throttle.StateRefusing
			}
			if r.State != want {
				t.Errorf("%s is %q, want %q", r.Route, r.State, want)
			}
			refused, granted = refused+r.Refused, granted+r.Granted
		}
		if h.State != throttle.StateRefusing || h.Refused != 19 || refused != h.Refused || granted != h.Granted {
			t.Errorf("the host is %q, %d of %d; its routes %d of %d", h.State, h.Refused, h.Granted, refused, granted)
		}
	})
}
