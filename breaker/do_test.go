package breaker_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/breaker"
)

// Do opens the circuit of a name as requests open a host's, refuses without
// calling, and closes it by probes.
func TestDoOpensAndClosesByName(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var saw []breaker.Change
		cs := circuits(t, breaker.Config{OnStateChange: func(c breaker.Change) { saw = append(saw, c) }})
		type key struct{}
		ctx := context.WithValue(t.Context(), key{}, "mine")
		down := errors.New("connection refused")
		calls, broken := 0, true
		query := func(ctx context.Context) error {
			if calls++; ctx.Value(key{}) != "mine" {
				t.Error("not the caller's context")
			}
			if broken {
				return down
			}
			return nil
		}
		for range 5 {
			if err := cs.Do(ctx, "Orders-DB", query); err != down {
				t.Fatalf("got %v, want the error of the call itself", err)
			}
		}
		wantOf(t, cs, "orders-db", breaker.Open)
		err := cs.Do(ctx, "orders-db", query)
		var refused *breaker.Error
		if !errors.As(err, &refused) || refused.Host != "orders-db" || refused.RetryAfter <= 0 || calls != 5 {
			t.Errorf("got %v after %d calls", err, calls)
		}
		if err := cs.Do(ctx, "other", func(context.Context) error { return nil }); err != nil {
			t.Errorf("another name: %v", err)
		}
		broken = false
		for range 20 {
			time.Sleep(time.Second)
			cs.Do(ctx, "orders-db", query)
		}
		wantOf(t, cs, "orders-db", breaker.Closed)
		if len(saw) != 3 || saw[0].Host != "orders-db" || saw[2].To != breaker.Closed {
			t.Errorf("told of %+v", saw)
		}
		if err := cs.Do(ctx, "", query); err == nil {
			t.Error("no name and no error")
		}
	})
}

// wantOf checks the state of any name.
func wantOf(t *testing.T, cs *breaker.Circuits, name string, s breaker.State) {
	t.Helper()
	if got := cs.State(name); got != s {
		t.Errorf("%s is %v, want %v", name, got, s)
	}
}

// A caller that leaves blames nobody, nor does what Classify ignores; a deadline
// that passes after more than a second does.
func TestDoBlamesNobodyForACallerWhoLeaves(t *testing.T) {
	none := errors.New("no such row")
	for _, test := range []struct {
		name string
		f    func(ctx context.Context) error
		ctx  func(ctx context.Context) (context.Context, context.CancelFunc)
		want breaker.State
	}{
		{"ignored by Classify", func(context.Context) error { return none }, context.WithCancel, breaker.Closed},
		{"cancelled", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		}, breaker.Closed},
		{"in a hurry", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 100*time.Millisecond)
		}, breaker.Closed},
		{"failed", func(context.Context) error { return errors.New("reset") }, context.WithCancel, breaker.Open},
	} {
		bubble(t, func(t *testing.T) {
			cs := circuits(t, breaker.Config{Classify: func(resp *http.Response, err error) breaker.Outcome {
				if errors.Is(err, none) {
					return breaker.Ignore
				}
				return breaker.Default
			}})
			for range 8 {
				ctx, cancel := test.ctx(t.Context())
				cs.Do(ctx, "db", test.f)
				cancel()
			}
			wantOf(t, cs, "db", test.want)
		})
	}
}

// Patience, forced states, and panics are as they are for requests.
func TestDoWaitsAndObeysForce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs := circuits(t, breaker.Config{Patience: time.Minute})
		cs.Force("db", breaker.Open)
		done := make(chan error)
		called := false
		go func() {
			done <- cs.Do(t.Context(), "db", func(context.Context) error { called = true; return nil })
		}()
		synctest.Wait()
		if err := <-done; err == nil || called {
			t.Errorf("called while forced open, %v", err)
		}
		cs.Release("db")
		fail := func(context.Context) error { return errors.New("down") }
		for range 5 {
			cs.Do(t.Context(), "db", fail)
		}
		wantOf(t, cs, "db", breaker.Open)
		start := time.Now()
		if err := cs.Do(t.Context(), "db", func(context.Context) error { return nil }); err != nil || time.Since(start) == 0 {
			t.Errorf("got %v after %v, want a wait", err, time.Since(start))
		}
		for range 5 {
			cs.Do(t.Context(), "db", func(context.Context) error { return nil })
		}
		func() {
			defer func() {
				if recover() != "mine" {
					t.Error("the panic of the call is gone")
				}
			}()
			cs.Do(t.Context(), "db", func(context.Context) error { panic("mine") })
		}()
		if err := cs.Do(t.Context(), "db", func(context.Context) error { return nil }); err != nil {
			t.Errorf("after a panic: %v", err)
		}
	})
}

// A Transport's Circuits serve both: a name has no part in its hosts.
func TestDoBesideRequests(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cs, h, rt := rig(t, breaker.Config{})
		h.set(status(200))
		for range 6 {
			cs.Do(t.Context(), "db", func(context.Context) error { return errors.New("down") })
		}
		wantOf(t, cs, "db", breaker.Open)
		if _, err := get(rt, site); err != nil {
			t.Error(err)
		}
		wantOf(t, cs, "a.example", breaker.Closed)
		asked := false
		other := circuits(t, breaker.Config{Fallback: func(*http.Request, error) (*http.Response, error) { asked = true; return nil, nil }, FallbackOn: breaker.OnFailure})
		other.Do(t.Context(), "db", func(context.Context) error { return errors.New("down") })
		if asked {
			t.Error("Fallback was asked about a call that is no request")
		}
	})
}
