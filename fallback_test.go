package weir_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// bodyOf is a body that notes that it was closed.
type bodyOf struct {
	io.Reader
	closed int
}

func (c *bodyOf) Close() error { c.closed++; return nil }

// Config.Fallback is asked once, last, about every error, whichever layer's it
// is, and about the answers that FallbackOn names, and about nothing else.
func TestFallbackForAnyFailure(t *testing.T) {
	reset := errors.New("connection reset")
	const stale = "from memory"
	for _, test := range []struct {
		name   string
		c      weir.Config
		status int // zero: the connection fails
		before int // requests made before
		ctx    func(context.Context) (context.Context, context.CancelFunc)
		asked  bool
		is     func(err error) bool
	}{
		{name: "a good answer", status: 200},
		{name: "an answer that nobody names", status: 404},
		{name: "one that FallbackOn names", status: 404, c: weir.Config{FallbackOn: func(r *http.Response) bool { return r.StatusCode == 404 }}, asked: true,
			is: func(err error) bool {
				var e *breaker.StatusError
				return errors.As(err, &e) && e.StatusCode == 404 && e.Host == "a.example"
			}},
		{name: "no answer", asked: true, is: func(err error) bool { return errors.Is(err, reset) }},
		{name: "a refusal of the throttle", status: 200, before: 1, asked: true,
			c: weir.Config{Throttle: throttle.Config{Default: throttle.MustParseBudget("1/h"), MaxWait: -1}},
			is: func(err error) bool {
				var e *throttle.Error
				return errors.As(err, &e) && errors.Is(err, weir.ErrNotSent)
			}},
		{name: "a refusal of the circuit", before: 5, asked: true, c: weir.Config{Retry: retry.Config{MaxAttempts: 1}},
			is: func(err error) bool { var e *breaker.Error; return errors.As(err, &e) }},
		{name: "what the breaker's own answered", before: 5, c: weir.Config{Breaker: breaker.Config{FallbackOn: breaker.OnFailure,
			Fallback: func(r *http.Request, _ error) (*http.Response, error) {
				return testnet.Answer(r, 203, nil, http.NoBody), nil
			}}}},
		{name: "a caller who left", status: 200, ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx, cancel
		}},
		{name: "a deadline that has passed", status: 200, asked: true, is: func(err error) bool { return errors.Is(err, context.DeadlineExceeded) },
			ctx: func(ctx context.Context) (context.Context, context.CancelFunc) {
				return context.WithDeadline(ctx, time.Now().Add(-time.Second))
			}},
	} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			body := &bodyOf{Reader: strings.NewReader("x")}
			base := testnet.Func(func(r *http.Request) (*http.Response, error) {
				if err := r.Context().Err(); err != nil {
					return nil, err
				}
				if test.status == 0 {
					return nil, reset
				}
				return testnet.Answer(r, test.status, nil, body), nil
			})
			var told error
			armed := false
			test.c.Fallback = func(r *http.Request, err error) (*http.Response, error) {
				if !armed {
					return nil, nil
				}
				asked++
				told = err
				return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(stale))}, nil
			}
			rt := must(weir.New(base, test.c))(t)
			for range test.before {
				if resp, err := rt.RoundTrip(get(t, "http://a.example/")); err == nil {
					resp.Body.Close()
				}
			}
			armed, body.closed = true, 0
			r := get(t, "http://a.example/x")
			if test.ctx != nil {
				ctx, cancel := test.ctx(t.Context())
				defer cancel()
				r = r.WithContext(ctx)
			}
			resp, err := rt.RoundTrip(r)
			if (asked == 1) != test.asked || asked > 1 {
				t.Fatalf("%s: asked %d times, %v", test.name, asked, err)
			}
			if !test.asked {
				if rt.Stats().Fallbacks != 0 || resp != nil && resp.Body != nil && body.closed > 0 {
					t.Errorf("%s: the answer was closed", test.name)
				}
				return
			}
			text, _ := io.ReadAll(resp.Body)
			if string(text) != stale || resp.Request != r || !test.is(told) || rt.Stats().Fallbacks != 1 {
				t.Errorf("%s: %q, told %v, %d counted", test.name, text, told, rt.Stats().Fallbacks)
			}
			if test.status != 0 && told != nil && strings.HasPrefix(test.name, "one that") && body.closed == 0 {
				t.Errorf("%s: the answer that was replaced is open", test.name)
			}
		})
	}
}

// What Fallback does not answer stays, an answer before an error; its own error
// never says that nothing was sent if something was.
func TestFallbackWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := fmt.Errorf("mirror: %w", weir.ErrNotSent)
		var status int
		var say error
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			if status == 0 {
				return nil, io.ErrUnexpectedEOF
			}
			return testnet.Answer(r, status, nil, http.NoBody), nil
		}), weir.Config{
			Fallback:   func(*http.Request, error) (*http.Response, error) { return nil, say },
			FallbackOn: func(r *http.Response) bool { return true },
			Retry:      retry.Config{MaxAttempts: 1},
		}))(t)
		for _, test := range []struct {
			status int
			say    error
		}{{500, nil}, {500, own}, {0, nil}, {0, own}} {
			status, say = test.status, test.say
			resp, err := rt.RoundTrip(get(t, "http://a.example/"))
			switch {
			case status != 0:
				if err != nil || resp.StatusCode != status {
					t.Errorf("%+v: %v, %v", test, resp, err)
				}
			case say == nil:
				if !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("%+v: %v", test, err)
				}
			default:
				if err == nil || err.Error() != own.Error() || errors.Is(err, weir.ErrNotSent) {
					t.Errorf("%+v: %v, not sent %t", test, err, errors.Is(err, weir.ErrNotSent))
				}
			}
		}
		if _, err := weir.New(nil, weir.Config{FallbackOn: func(*http.Response) bool { return true }}); err == nil {
			t.Error("FallbackOn without Fallback: no error")
		}
	})
}

// A Fallback that panics leaves no answer open.
func TestFallbackThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := &bodyOf{Reader: strings.NewReader("x")}
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) { return testnet.Answer(r, 404, nil, body), nil }), weir.Config{
			Fallback:   func(*http.Request, error) (*http.Response, error) { panic("mine") },
			FallbackOn: func(*http.Response) bool { return true },
		}))(t)
		defer func() {
			if recover() != "mine" || body.closed == 0 {
				t.Errorf("closed %d times", body.closed)
			}
		}()
		rt.RoundTrip(get(t, "http://a.example/"))
	})
}

// Every failure, whatever its cause, is answered from memory.
func ExampleConfig_fallback() {
	client := &http.Client{}
	transport, err := weir.New(testnet.Func(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("connection refused")
	}), weir.Config{
		Fallback: func(r *http.Request, err error) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("yesterday's news"))}, nil
		},
		FallbackOn: func(resp *http.Response) bool { return resp.StatusCode >= 500 },
		Retry:      retry.Config{MaxAttempts: 1},
	})
	if err != nil {
		panic(err)
	}
	client.Transport = transport
	resp, err := client.Get("http://news.example/")
	if err != nil {
		panic(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	fmt.Println(string(text))
	// Output: yesterday's news
}
