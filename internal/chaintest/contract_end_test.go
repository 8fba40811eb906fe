package chaintest

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

func cancelledBefore(t *testing.T, l layer) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	body := testnet.NewBody("x")
	base := testnet.Func(func(r *http.Request) (*http.Response, error) { // what http.Transport does
		r.Body.Close()
		return nil, r.Context().Err()
	})
	r := must(http.NewRequestWithContext(ctx, "POST", "http://h/", body))(t)
	resp, err := l.wrap(t, base).RoundTrip(r)
	if resp != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v; want context.Canceled", resp, err)
	}
	if body.Closes() == 0 {
		t.Error("the request's body was left open")
	}
}

func panics(t *testing.T, l layer) {
	n := 0
	rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		if n++; n <= 30 {
			panic("base")
		}
		return stub(r)
	}))
	for range 30 {
		func() {
			defer func() {
				if recover() != "base" {
					t.Error("the panic did not pass")
				}
			}()
			rt.RoundTrip(get(t, "http://h/"))
		}()
	}
	// A circuit may have counted them and open; it must come back by itself.
	time.Sleep(5 * time.Minute)
	resp, err := rt.RoundTrip(get(t, "http://h/"))
	if err != nil {
		t.Fatalf("after panics: %v", err)
	}
	resp.Body.Close()
}

func goexits(t *testing.T, l layer) {
	n := 0
	rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		if n++; n <= 30 {
			runtime.Goexit()
		}
		return stub(r)
	}))
	for range 30 {
		var wg sync.WaitGroup
		wg.Go(func() {
			rt.RoundTrip(get(t, "http://h/"))
		})
		wg.Wait()
	}
	time.Sleep(5 * time.Minute)
	resp, err := rt.RoundTrip(get(t, "http://h/"))
	if err != nil {
		t.Fatalf("after Goexit: %v", err)
	}
	resp.Body.Close()
}

func cancelCause(t *testing.T, l layer) {
	cause := errors.New("the caller changed its mind")
	ctx, cancel := context.WithCancelCause(t.Context())
	rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	}))
	time.AfterFunc(time.Second, func() { cancel(cause) })
	start := time.Now()
	resp, err := rt.RoundTrip(get(t, "http://h/").WithContext(ctx))
	if resp != nil || !errors.Is(err, cause) && !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v; want the caller's cause", resp, err)
	}
	if d := time.Since(start); d != time.Second {
		t.Errorf("returned after %v, want 1s", d)
	}
}
