package retry_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/retry"
)

// What a base that is watched shows of a failed POST decides: whether it may
// be sent again, and whether anything reached the network. A base that shows
// nothing is taken to have sent it.
func TestWhatABaseShowsDecidesAboutAPOST(t *testing.T) {
	for _, tt := range []struct {
		name              string
		asked, got, wrote bool
		unprocessed, sent bool
	}{
		{"nothing is known", false, false, false, false, true},
		{"no connection", true, false, false, true, false},
		{"a connection, and no header written", true, true, false, true, true},
		{"the header was written", true, true, true, false, true},
		{"traces without a beginning", false, true, false, false, true},
	} {
		for _, method := range []string{"POST", "PATCH"} {
			bubble(t, tt.name+", "+method, func(t *testing.T) {
				calls, theirs := 0, 0
				base := testnet.Func(func(r *http.Request) (*http.Response, error) {
					calls++
					trip.CloseBody(r)
					trace := httptrace.ContextClientTrace(r.Context())
					if tt.asked {
						trace.GetConn("a.example:80")
					}
					if tt.got {
						trace.GotConn(httptrace.GotConnInfo{})
					}
					if tt.wrote {
						trace.WroteHeaders()
					}
					return nil, errReset
				})
				w := retry.Wire(base, retry.Config{})
				r := request(t, method, "http://a.example/", "body")
				ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GetConn: func(string) { theirs++ }})
				r, tr, _ := trip.Begin(r.WithContext(ctx), trip.Retry, w.(trip.Linked).Link().Hosts)
				w.RoundTrip(r)
				if tr.Unprocessed != tt.unprocessed || tr.Sent() != tt.sent {
					t.Errorf("unprocessed %v, sent %v", tr.Unprocessed, tr.Sent())
				}
				tr.End(nil)
				if tt.asked && theirs != 1 {
					t.Error("the caller's own trace is lost")
				}
				calls = 0
				newTransport(t, base, retry.Config{MaxAttempts: 2}).RoundTrip(request(t, method, "http://a.example/", "body"))
				if want := map[bool]int{true: 2, false: 1}[tt.unprocessed]; calls != want {
					t.Errorf("%d attempts, want %d", calls, want)
				}
			})
		}
	}
}

// Nobody is watched more than needed: a full trace costs more than the attempt.
func TestLittleEvidenceForIdempotent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for method, want := range map[string]bool{"GET": false, "PUT": false, "DELETE": false, "POST": true} {
			base := testnet.Func(func(r *http.Request) (*http.Response, error) {
				trace := httptrace.ContextClientTrace(r.Context())
				if got := trace.WroteHeaders != nil; got != want || trace.GotConn == nil {
					t.Errorf("%s: watched to the end %v", method, got)
				}
				return nil, errReset
			})
			newTransport(t, base, retry.Config{MaxAttempts: 1}).RoundTrip(request(t, method, "http://a.example/", ""))
		}
	})
}

// A base that has sent the request and then failed at one of its own, of which
// nothing was sent, has sent the request: a POST is not sent again.
func TestNotSentOfAnotherRequest(t *testing.T) {
	for _, tt := range []struct {
		method string
		want   int // attempts
	}{{"POST", 1}, {"GET", 3}} {
		bubble(t, tt.method, func(t *testing.T) {
			seen := 0
			server, _, stop := testnet.Server(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen++ }), false)
			defer stop()
			base := testnet.Func(func(r *http.Request) (*http.Response, error) {
				resp, err := server.RoundTrip(r)
				if err != nil {
					return nil, err
				}
				resp.Body.Close()
				return nil, fmt.Errorf("telling others: %w", notsent.Wrap(errReset))
			})
			_, err := newTransport(t, base, retry.Config{}).RoundTrip(request(t, tt.method, "http://a.example/", "body"))
			if err == nil || errors.Is(err, notsent.Err) || seen != tt.want {
				t.Errorf("%v, not sent: %t; the server saw %d requests, want %d", err, errors.Is(err, notsent.Err), seen, tt.want)
			}
		})
	}
}

// A base that is a client of clients names several URLs, the words of which are
// neither shown nor taken for a reason not to try again.
func TestInnerURLsAreNeitherShownNorRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var err error = errReset
		for range 3 {
			err = fmt.Errorf("a client: %w", &url.Error{Op: "Post", URL: "http://b.example/?secret=unsupported protocol scheme", Err: err})
		}
		s := play(step{err: err})
		_, err = newTransport(t, s, retry.Config{}).RoundTrip(request(t, "GET", "http://a.example/", ""))
		if err == nil || s.calls() != 3 || strings.Contains(err.Error(), "secret") || !errors.Is(err, errReset) {
			t.Errorf("after %d attempts: %v", s.calls(), err)
		}
	})
}

// blocking is a connection whose next Write can be made to take its time, as on
// a link that stalls when the buffers are full.
type blocking struct {
	net.Conn
	next *atomic.Int64 // how long, in nanoseconds
}

func (b *blocking) Write(p []byte) (int, error) {
	testnet.Wait(context.Background(), time.Duration(b.next.Swap(0)))
	return b.Conn.Write(p)
}

// impatient is somebody's layer below that gives each request a time of its own.
func impatient(base http.RoundTripper, limit time.Duration) http.RoundTripper {
	return testnet.Func(func(r *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		return base.RoundTrip(r.WithContext(ctx))
	})
}

// What is blocked in a Write when its attempt is ended may go out later. Whoever
// ended it, a POST is not sent again.
func TestEndedWhileWriting(t *testing.T) {
	const held, limit = 450 * time.Millisecond, 300 * time.Millisecond
	for _, http2 := range []bool{false, true} {
		for name, end := range map[string]struct {
			c    retry.Config
			base func(http.RoundTripper) http.RoundTripper
		}{
			"by AttemptTimeout":         {c: retry.Config{AttemptTimeout: limit}},
			"by a layer below":          {base: func(b http.RoundTripper) http.RoundTripper { return impatient(b, limit) }},
			"by a layer below, tracing": {base: func(b http.RoundTripper) http.RoundTripper { return tracing(impatient(b, limit)) }},
		} {
			bubble(t, fmt.Sprintf("%s, http2=%v", name, http2), func(t *testing.T) {
				var next, handled atomic.Int64
				base, n, stop := testnet.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == "POST" {
						handled.Add(1)
					}
				}), http2)
				base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
					c, err := n.DialContext(ctx, network, addr)
					return &blocking{c, &next}, err
				}
				var below http.RoundTripper = base
				if end.base != nil {
					below = end.base(base)
				}
				rt := newTransport(t, below, end.c)
				for _, method := range []string{"GET", "POST"} {
					if method == "POST" {
						next.Store(int64(held))
					}
					resp, err := rt.RoundTrip(request(t, method, "http://a.example/", ""))
					if err == nil {
						text(t, resp)
					} else if errors.Is(err, notsent.Err) {
						t.Errorf("%v: it is said that nothing was sent", err)
					}
				}
				time.Sleep(time.Second)
				if got := handled.Load(); got > 1 {
					t.Errorf("the POST was handled %d times", got)
				}
				stop()
			})
		}
	}
}

// What the base says of an attempt proves what was sent, also without timeouts,
// and also of one that a timeout ended.
func TestProofOfWhatWasSent(t *testing.T) {
	for _, test := range []struct {
		name    string
		timeout time.Duration
		err     error
		unsent  bool
	}{
		{"no such request", -1, errors.New("net/http: invalid method"), true},
		{"reset", -1, errReset, false},
		{"dialing took too long", time.Second, &dialError, true},
		{"no answer for too long", time.Second, errReset, false},
	} {
		bubble(t, test.name, func(t *testing.T) {
			base := testnet.Func(func(r *http.Request) (*http.Response, error) {
				if test.timeout > 0 {
					<-r.Context().Done()
				}
				return nil, test.err
			})
			rt := newTransport(t, base, retry.Config{MaxAttempts: 1, AttemptTimeout: test.timeout, StallTimeout: -1})
			_, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
			if err == nil || errors.Is(err, notsent.Err) != test.unsent {
				t.Errorf("got %v; not sent: %t", err, !test.unsent)
			}
		})
	}
}

// An answer proves that its request was sent, also without timeouts: an error that
// comes instead of it, as it was too long to be kept, does not say otherwise.
func TestAnAnswerProvesThatItWasSent(t *testing.T) {
	for _, timeout := range []time.Duration{-1, time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			base := testnet.Func(func(r *http.Request) (*http.Response, error) {
				if n++; n > 1 {
					return nil, &dialError
				}
				resp := testnet.Answer(r, 503, nil, testnet.NewBody(strings.Repeat("x", holdBytes+1)))
				resp.ContentLength = holdBytes + 1
				return resp, nil
			})
			_, err := newTransport(t, base, retry.Config{AttemptTimeout: timeout, StallTimeout: -1}).RoundTrip(request(t, "GET", "http://a.example/", ""))
			if err == nil || n < 2 || errors.Is(err, notsent.Err) {
				t.Errorf("%v after %d attempts; not sent: %t", err, n, errors.Is(err, notsent.Err))
			}
		})
	}
}

// Each kind of distrust of the server's certificate is enough: the next attempt
// would fail as well, and the request was not sent.
func TestEachKindOfDistrustIsEnough(t *testing.T) {
	for _, end := range []error{
		&tls.CertificateVerificationError{Err: errReset}, x509.UnknownAuthorityError{},
		x509.CertificateInvalidError{}, x509.HostnameError{Certificate: new(x509.Certificate)},
	} {
		if attempts, _, err := always(t, step{err: end}, retry.Config{}, requestOf(t, "GET")); attempts != 1 || !errors.Is(err, notsent.Err) {
			t.Errorf("%T is taken for trust: %d attempts, %v", end, attempts, err)
		}
	}
	other := step{err: errors.New("tls: something else")}
	if attempts, _, err := always(t, other, retry.Config{}, requestOf(t, "GET")); attempts != 3 || errors.Is(err, notsent.Err) {
		t.Errorf("any error is taken for distrust: %d attempts, %v", attempts, err)
	}
}
