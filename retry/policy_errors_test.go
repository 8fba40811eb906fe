package retry_test

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/retry"
)

// The real net/http of this Go says what the policy's rows are told by.
func TestRealErrors(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) })
	quiet := log.New(io.Discard, "", 0)
	plain := httptest.NewUnstartedServer(ok)
	plain.Config.ErrorLog = quiet
	plain.Start()
	defer plain.Close()
	secure := httptest.NewUnstartedServer(ok)
	secure.Config.ErrorLog = quiet
	secure.EnableHTTP2 = true
	secure.StartTLS()
	defer secure.Close()
	rude, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer rude.Close()
	go func() {
		for {
			c, err := rude.Accept()
			if err != nil {
				return
			}
			io.ReadFull(c, make([]byte, 1)) // the client has begun
			c.Close()
		}
	}()
	const nobody = "http://127.0.0.1:1" // a port that no test is given
	for _, tt := range []struct {
		name    string
		url     string
		post    bool
		change  func(*http.Request)
		base    http.RoundTripper
		outcome retry.Outcome
		calls   int
		notSent bool
	}{
		{"good, HTTP/1", plain.URL, true, nil, nil, retry.Answered, 1, false},
		{"good, HTTP/2", secure.URL, true, nil, secure.Client().Transport, retry.Answered, 1, false},
		{"certificate of nobody known", secure.URL, false, nil, nil, retry.Permanent, 1, true},
		{"certificate of nobody known, POST", secure.URL, true, nil, nil, retry.Permanent, 1, true},
		{"TLS to a plain port", "https" + strings.TrimPrefix(plain.URL, "http"), false, nil, nil, retry.Permanent, 1, false},
		{"plain to a TLS port", "http" + strings.TrimPrefix(secure.URL, "https"), false, nil, nil, retry.Answered, 1, false},
		{"scheme", "ftp" + strings.TrimPrefix(plain.URL, "http"), false, nil, nil, retry.Permanent, 1, true},
		{"host", "http:///", false, nil, nil, retry.Permanent, 1, true},
		{"header", plain.URL, false, func(r *http.Request) { r.Header.Set("X", "a\nb") }, nil, retry.Permanent, 1, true},
		{"header of a POST", plain.URL, true, func(r *http.Request) { r.Header.Set("X", "a\nb") }, nil, retry.Permanent, 1, true},
		{"method", plain.URL, false, func(r *http.Request) { r.Method = "GE T" }, nil, retry.Permanent, 1, true},
		{"trailer", plain.URL, true, func(r *http.Request) { r.Trailer = http.Header{"X X": nil}; r.ContentLength = -1 }, nil, retry.Permanent, 1, true},
		{"length", plain.URL, true, func(r *http.Request) { r.ContentLength = 9; r.Method = "PUT" }, nil, retry.Permanent, 1, false},
		{"nobody listens", nobody, false, nil, nil, retry.NotProcessed, 3, true},
		{"nobody listens, POST", nobody, true, nil, nil, retry.NotProcessed, 3, true},
		{"closes during the handshake, POST", "https://" + rude.Addr().String(), true, nil, nil, retry.NotProcessed, 3, true},
		{"closes during the handshake, GET", "https://" + rude.Addr().String(), false, nil, nil, retry.Broken, 3, false},
		{"closes during the request, POST", "http://" + rude.Addr().String(), true, nil, nil, retry.Broken, 1, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base := tt.base
			if base == nil {
				base = &http.Transport{}
			}
			var seen retry.Attempt
			rt := newTransport(t, base, retry.Config{Backoff: fixed(0), OnAttempt: func(a retry.Attempt) { seen = a }})
			defer rt.CloseIdleConnections()
			method, body := "GET", ""
			if tt.post {
				method, body = "POST", "body"
			}
			r := request(t, method, tt.url, body)
			if tt.change != nil {
				tt.change(r)
			}
			resp, err := rt.RoundTrip(r)
			if resp != nil {
				resp.Body.Close()
			}
			if seen.Outcome != tt.outcome || seen.Number != tt.calls || errors.Is(err, notsent.Err) != tt.notSent {
				t.Errorf("got %v after %d attempts (%v), not sent: %v", seen.Outcome, seen.Number, err, errors.Is(err, notsent.Err))
			}
		})
	}
}
