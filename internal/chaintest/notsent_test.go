package chaintest

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// TestAFailedDialAfterALostConnectionIsNoNotSent: net/http sends a replayable request again by
// itself when a kept connection is lost. If it cannot dial then, its error is that of a dial,
// though the request was on the wire before.
func TestAFailedDialAfterALostConnectionIsNoNotSent(t *testing.T) {
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen int
				var n *testnet.Net
				base, n, stop := testnet.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if seen++; seen == 2 {
						n.Refuse.Store(true)
						panic(http.ErrAbortHandler) // processed, and the connection closed without an answer
					}
				}), false)
				defer stop()
				rt := must(weir.New(base, weir.Config{}))(t)
				for i := range 2 {
					r := get(t, "http://h/")
					r.Method = method
					resp, err := rt.RoundTrip(r)
					if i == 0 {
						if err != nil {
							t.Fatal(err)
						}
						io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
						continue
					}
					if err == nil || errors.Is(err, weir.ErrNotSent) {
						t.Errorf("got %v, which claims that nothing was sent: %v, though the server saw %d requests", err, errors.Is(err, weir.ErrNotSent), seen)
					}
				}
			})
		})
	}
}

// TestNotSentOfAFallbacksOwnRequestIsNotTheCallers: if a Fallback says that its own request
// was not sent, that is not said of the request for which it answers.
func TestNotSentOfAFallbacksOwnRequestIsNotTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		other := must(weir.New(testnet.Func(stub), weir.Config{}))(t)
		other.Circuits().Force("other", breaker.Open)
		asked := 0
		var rt *weir.Transport
		rt = must(weir.New(broken(), weir.Config{
			Retry: retry.Config{Delay: forced(&rt)},
			Breaker: breaker.Config{Fallback: func(*http.Request, error) (*http.Response, error) {
				asked++
				return other.RoundTrip(get(t, "http://other/"))
			}},
		}))(t)
		_, err := rt.RoundTrip(get(t, "http://h/"))
		if asked != 1 || err == nil || errors.Is(err, weir.ErrNotSent) {
			t.Errorf("the Fallback was asked %d times, and the error is %v, which claims that nothing was sent: %v; want 1, an error, false", asked, err, errors.Is(err, weir.ErrNotSent))
		}
	})
}

// TestFallbackAfterSending: a Fallback answers also for a request of which an
// earlier attempt was sent.
func TestFallbackAfterSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rt *weir.Transport
		rt = must(weir.New(broken(), weir.Config{
			Retry: retry.Config{Delay: forced(&rt)},
			Breaker: breaker.Config{Fallback: func(r *http.Request, _ error) (*http.Response, error) {
				return stub(r)
			}},
		}))(t)
		if resp, err := rt.RoundTrip(get(t, "http://h/")); err != nil || resp.StatusCode != 200 {
			t.Errorf("%v, %v; want the Fallback's answer", resp, err)
		}
	})
}

// forced opens the circuit when the delay before the second attempt begins.
func forced(rt **weir.Transport) func(_, _ time.Duration, _ int, _ *http.Response) time.Duration {
	return func(_, _ time.Duration, _ int, _ *http.Response) time.Duration {
		(*rt).Circuits().Force("h", breaker.Open)
		return time.Second
	}
}

func broken() testnet.Func {
	return func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }
}

// TestNotSentOfChecksErrorIsNotTheCallers: if the error of Check says that nothing was
// sent, the caller's error does not say so.
func TestNotSentOfChecksErrorIsNotTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		inner := must(weir.New(testnet.Func(func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
		}), weir.Config{Retry: retry.Config{MaxAttempts: 1}}))(t)
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			if n++; n == 1 {
				return nil, io.ErrUnexpectedEOF
			}
			return inner.RoundTrip(r)
		})
		rt := must(weir.New(base, weir.Config{Retry: retry.Config{
			Check: retryOnce(&n),
		}}))(t)
		_, err := rt.RoundTrip(get(t, "http://h/"))
		if n != 2 || err == nil || errors.Is(err, weir.ErrNotSent) {
			t.Errorf("%d attempts ended with %v, which claims that nothing was sent: %v; want 2, an error, false", n, err, errors.Is(err, weir.ErrNotSent))
		}
	})
}

// TestNotSentOfAnInnerChainIsNotTheCallers: a chain below another may have sent something before it
// was refused.
func TestNotSentOfAnInnerChainIsNotTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inner *weir.Transport
		inner = must(weir.New(broken(), weir.Config{Retry: retry.Config{Delay: forced(&inner)}}))(t)
		outer := must(weir.New(inner, weir.Config{}))(t)
		_, err := outer.RoundTrip(get(t, "http://h/"))
		var refused *breaker.Error
		if !errors.As(err, &refused) || errors.Is(err, weir.ErrNotSent) {
			t.Errorf("got %v, which claims that nothing was sent: %v; want a breaker.Error, false", err, errors.Is(err, weir.ErrNotSent))
		}
		if h := outer.Stats().Throttle.Hosts; len(h) != 1 || h[0].Refunded != 0 {
			t.Errorf("refunded what was sent: %+v", h)
		}
	})
}

// several is an error that cannot be compared.
type several []error

func (s several) Error() string { return "several" }

// TestErrorsThatCannotBeComparedAreReturned: an error of a type that == cannot compare causes no panic.
func TestErrorsThatCannotBeComparedAreReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := must(weir.New(testnet.Func(func(*http.Request) (*http.Response, error) {
			return nil, several{io.EOF}
		}), weir.Config{}))(t)
		_, err := rt.RoundTrip(get(t, "http://h/"))
		var s several
		if !errors.As(err, &s) || !strings.Contains(err.Error(), "several") {
			t.Errorf("%v", err)
		}
	})
}

// TestTransportNotSent: ErrNotSent is reported if nothing of any attempt reached the
// network, and only then.
func TestTransportNotSent(t *testing.T) {
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for _, tt := range []struct {
		name string
		errs []error // of successive attempts; the last repeats
		want bool
	}{
		{"never connected", []error{dial}, true},
		{"reset once, then never connected", []error{io.ErrUnexpectedEOF, dial}, false},
		{"reset", []error{io.ErrUnexpectedEOF}, false},
	} {
		check(t, []rule{{name: tt.name, layers: looping, check: func(t *testing.T, l layer) {
			n := 0
			rt := l.wrap(t, testnet.Func(func(*http.Request) (*http.Response, error) {
				n++
				return nil, tt.errs[min(n, len(tt.errs))-1]
			}))
			_, err := rt.RoundTrip(get(t, "http://h/"))
			if got := errors.Is(err, weir.ErrNotSent); got != tt.want {
				t.Errorf("after %d attempts: %v: not sent %v, want %v", n, err, got, tt.want)
			}
			if !errors.Is(err, tt.errs[len(tt.errs)-1]) {
				t.Errorf("%v does not wrap the last attempt's error", err)
			}
		}}})
	}
}
