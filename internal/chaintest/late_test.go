package chaintest

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// An attempt whose base panics or ends its goroutine is over: its context has
// ended, its body is closed, and nothing watches its caller's context.
func TestBaseThatPanicsEndsItsAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, limit := range []time.Duration{time.Minute, -1} {
			parent, cancel := context.WithCancel(t.Context())
			defer cancel()
			body := testnet.NewBody("x")
			var ctx context.Context
			w := retry.Wire(testnet.Func(func(r *http.Request) (*http.Response, error) {
				ctx = r.Context()
				panic(http.ErrAbortHandler)
			}), retry.Config{AttemptTimeout: limit, StallTimeout: limit})
			r, _ := http.NewRequestWithContext(parent, "PUT", "http://a.test/", body)
			func() {
				defer func() { recover() }()
				w.RoundTrip(r)
			}()
			synctest.Wait()
			if ctx.Err() == nil || body.Closes() == 0 {
				t.Errorf("limit %v: context %v, body closed %d times", limit, ctx.Err(), body.Closes())
			}
		}
	})
}

// lingering is a base that goes on with a request after it has returned, as
// HTTP/1 does that still writes, and asks all there is to ask.
type lingering struct {
	base http.RoundTripper
	wg   sync.WaitGroup
}

func (l *lingering) RoundTrip(r *http.Request) (*http.Response, error) {
	ask := func() {
		ctx := r.Context()
		httptrace.ContextClientTrace(ctx)
		ctx.Err()
		context.Cause(ctx)
		ctx.Deadline()
		_, _ = r.URL.String(), r.Header.Get("X")
		child, stop := context.WithCancel(context.WithoutCancel(ctx))
		child.Err()
		stop()
		context.AfterFunc(ctx, func() {})()
	}
	l.wg.Go(func() {
		for range 20 {
			ask()
		}
		<-r.Context().Done()
		if r.Context().Err() == nil || context.Cause(r.Context()) == nil {
			panic("done without an error")
		}
		ask()
	})
	return l.base.RoundTrip(r)
}

// Those who go on with a request or its answer after the end, or beside it,
// see one attempt only, over HTTP/1 and HTTP/2, with repeats and hedges.
func TestLateUsersSeeOneAttempt(t *testing.T) {
	var n atomic.Int64
	h := func(w http.ResponseWriter, r *http.Request) {
		switch i := n.Add(1); {
		case i%11 == 0:
			w.WriteHeader(http.StatusBadGateway)
		case i%7 == 0:
			w.WriteHeader(http.StatusNoContent)
		case i%13 == 0:
			panic(http.ErrAbortHandler)
		default:
			io.Copy(w, r.Body)
			io.WriteString(w, strings.Repeat("x", int(i%5)*1000))
		}
	}
	for _, h2 := range []bool{false, true} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(h))
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.EnableHTTP2 = h2
		s.StartTLS()
		base := &lingering{base: s.Client().Transport}
		w, err := weir.New(base, weir.Config{Retry: retry.Config{
			MaxAttempts: 3, BufferBody: 1 << 10, AttemptTimeout: time.Minute, Hedge: retry.Hedge{After: time.Millisecond},
			Allowance: retry.Allowance{Disable: true},
		}})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for g := range 64 {
			wg.Go(func() {
				for i := range 4 {
					lateUser(t, w, s.URL, g+i)
				}
			})
		}
		wg.Wait()
		base.wg.Wait()
		w.Close()
		s.Close()
	}
}

func lateUser(t *testing.T, w *weir.Transport, url string, i int) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var r *http.Request
	switch i % 4 {
	case 0:
		r, _ = http.NewRequestWithContext(ctx, "GET", url, nil)
	case 1:
		r, _ = http.NewRequestWithContext(ctx, "PUT", url, strings.NewReader("hello"))
	case 2:
		r, _ = http.NewRequestWithContext(ctx, "POST", url, io.MultiReader(strings.NewReader("hello")))
	case 3:
		r, _ = http.NewRequestWithContext(ctx, "PUT", url, io.LimitReader(strings.NewReader("hello"), 3))
	}
	resp, err := w.RoundTrip(r)
	if err != nil {
		if strings.Contains(err.Error(), "weir") && errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { io.Copy(io.Discard, resp.Body) })
	switch i % 3 {
	case 0:
		cancel(io.ErrClosedPipe)
	case 1:
		resp.Body.Close()
	}
	wg.Wait()
	resp.Body.Close()
	attempt := resp.Request.Context()
	select {
	case <-attempt.Done():
		if attempt.Err() == nil || context.Cause(attempt) == nil {
			t.Error("over without an error")
		}
	case <-time.After(time.Minute):
		t.Error("the body is closed and its attempt goes on")
	}
}
