package chaintest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

func loopRules() []rule {
	rules := []rule{
		{name: "a GET is retried, a POST is not", check: methods},
		{name: "a key makes a POST repeatable", check: keyed},
		{name: "a 429 is repeated for any method", check: throttledPost},
		{name: "permanent errors make one attempt", check: permanent},
		{name: "text in a URL does not stop retries", check: urlText},
		{name: "the server's wait is a floor", check: retryAfterFloor},
		{name: "a wait beyond the deadline returns the answer at once, unread", check: beyondDeadline},
		{name: "a wait beyond the cap returns the answer at once, unread", check: beyondCap},
		{name: "cancelling during a wait ends it at once", check: cancelledWait},
		{name: "at most three attempts", check: threeAttempts},
		{name: "an outage is not amplified", check: notAmplified},
		{name: "a typed error survives Client.Timeout", check: clientTimeout},
	}
	for i := range rules {
		rules[i].layers = looping
	}
	return rules
}

func methods(t *testing.T, l layer) {
	for method, want := range map[string]int{"GET": 3, "HEAD": 3, "OPTIONS": 3, "PUT": 3, "DELETE": 3, "POST": 1, "PATCH": 1} {
		n := 0
		rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
			n++
			return nil, io.ErrUnexpectedEOF
		}))
		r := get(t, "http://h/")
		r.Method = method
		if _, err := rt.RoundTrip(r); !errors.Is(err, io.ErrUnexpectedEOF) || n != want {
			t.Errorf("%s: %d attempts, %v; want %d", method, n, err, want)
		}
	}
}

func keyed(t *testing.T, l layer) {
	n := 0
	rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		if n++; n == 1 {
			return nil, io.ErrUnexpectedEOF
		}
		return stub(r)
	}))
	r := must(http.NewRequest("POST", "http://h/", strings.NewReader("x")))(t)
	r.Header.Set("Idempotency-Key", "k")
	resp, err := rt.RoundTrip(r)
	if err != nil || n != 2 {
		t.Fatalf("%v after %d attempts", err, n)
	}
	resp.Body.Close()
}

func throttledPost(t *testing.T, l layer) {
	n := 0
	rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		if n++; n == 1 {
			return testnet.Answer(r, 429, http.Header{"Retry-After": {"1"}}, testnet.NewBody("slow down")), nil
		}
		return stub(r)
	}))
	resp, err := rt.RoundTrip(must(http.NewRequest("POST", "http://h/", strings.NewReader("x")))(t))
	if err != nil || resp.StatusCode != 200 || n != 2 {
		t.Fatalf("%v, %v after %d attempts", resp, err, n)
	}
	resp.Body.Close()
}

func permanent(t *testing.T, l layer) {
	for name, err := range map[string]error{
		"untrusted certificate": &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}},
		"scheme":                errors.New("unsupported protocol scheme \"gopher\""),
		"header":                fmt.Errorf("net/http: invalid header field name %q", "a b"),
		"trailer":               fmt.Errorf("net/http: invalid trailer field name %q", "a b"),
		"method":                fmt.Errorf("net/http: invalid method %q", "a b"),
		"no host":               errors.New("http: no Host in request URL"),
	} {
		n := 0
		rt := l.wrap(t, testnet.Func(func(*http.Request) (*http.Response, error) {
			n++
			return nil, err
		}))
		if _, got := rt.RoundTrip(get(t, "http://h/")); !errors.Is(got, err) || n != 1 {
			t.Errorf("%s: %d attempts, %v", name, n, got)
		}
	}
}

func urlText(t *testing.T, l layer) {
	n := 0
	rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		if n++; n == 1 {
			return nil, io.ErrUnexpectedEOF
		}
		return stub(r)
	}))
	resp, err := rt.RoundTrip(get(t, "http://h/?q=invalid+header&r=certificate%20is%20not%20trusted"))
	if err != nil || n != 2 {
		t.Fatalf("%v after %d attempts", err, n)
	}
	resp.Body.Close()
}

func retryAfterFloor(t *testing.T, l layer) {
	for _, status := range []int{429, 503} {
		for text, least := range map[string]time.Duration{
			"2":                         2 * time.Second,
			"1.5":                       1500 * time.Millisecond,
			"date, RFC 1123":            3 * time.Second,
			"date, RFC 850":             3 * time.Second,
			"date, asctime":             3 * time.Second,
			"0":                         0,
			"-5":                        0,
			"not a number":              0,
			"Wed, 01 Jan 1970 00:00:00": 0,
		} {
			var at []time.Time
			rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
				at = append(at, time.Now())
				if len(at) > 1 {
					return stub(r)
				}
				value, when := text, time.Now().Add(3*time.Second).UTC()
				switch text {
				case "date, RFC 1123":
					value = when.Format(http.TimeFormat)
				case "date, RFC 850":
					value = when.Format("Monday, 02-Jan-06 15:04:05 GMT")
				case "date, asctime":
					value = when.Format(time.ANSIC)
				}
				h := http.Header{"Retry-After": {value}, "Date": {time.Now().UTC().Format(http.TimeFormat)}}
				return testnet.Answer(r, status, h, nil), nil
			}))
			resp, err := rt.RoundTrip(get(t, "http://h/"))
			if err != nil || len(at) != 2 {
				t.Errorf("%d %q: %v after %d attempts", status, text, err, len(at))
				continue
			}
			resp.Body.Close()
			if d := at[1].Sub(at[0]); d < least || d > least+30*time.Second {
				t.Errorf("%d %q: again after %v, want at least %v and soon", status, text, d, least)
			}
		}
	}
}

// refusing answers 429 for ever and says to wait as long as header says.
func refusing(header string, body *testnet.Body, n *int) testnet.Func {
	return func(r *http.Request) (*http.Response, error) {
		*n++
		return testnet.Answer(r, 429, http.Header{"Retry-After": {header}}, body), nil
	}
}

func inHand(t *testing.T, resp *http.Response, err error, took time.Duration, n int) {
	t.Helper()
	if err != nil || resp.StatusCode != 429 || n != 1 || took > 0 {
		t.Fatalf("%v, %v after %d attempts and %v; want the 429 at once", resp, err, n, took)
	}
	if b, err := io.ReadAll(resp.Body); string(b) != "why" || err != nil {
		t.Errorf("body %q, %v", b, err)
	}
	resp.Body.Close()
}

func beyondDeadline(t *testing.T, l layer) {
	n, body := 0, testnet.NewBody("why")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	start := time.Now()
	resp, err := l.wrap(t, refusing("60", body, &n)).RoundTrip(get(t, "http://h/").WithContext(ctx))
	inHand(t, resp, err, time.Since(start), n)
}

func beyondCap(t *testing.T, l layer) {
	for _, header := range []string{"3600", "31536000", "9223372036854775807", "99999999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"} {
		n, body := 0, testnet.NewBody("why")
		start := time.Now()
		resp, err := l.wrap(t, refusing(header, body, &n)).RoundTrip(get(t, "http://h/"))
		inHand(t, resp, err, time.Since(start), n)
	}
}

func cancelledWait(t *testing.T, l layer) {
	n, body := 0, testnet.NewBody("why")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(3*time.Second, cancel)
	start := time.Now()
	r := must(http.NewRequestWithContext(ctx, "PUT", "http://h/", strings.NewReader("x")))(t)
	resp, err := l.wrap(t, refusing("20", body, &n)).RoundTrip(r)
	if err == nil {
		resp.Body.Close()
	} else if !errors.Is(err, context.Canceled) {
		t.Errorf("%v; want the caller's cancellation", err)
	}
	if d := time.Since(start); d != 3*time.Second || n != 1 {
		t.Errorf("ended after %v and %d attempts, want 3s and 1", d, n)
	}
}

func threeAttempts(t *testing.T, l layer) {
	n := 0
	rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		n++
		return testnet.Answer(r, 500, nil, testnet.NewBody(fmt.Sprint(n))), nil
	}))
	resp, err := rt.RoundTrip(get(t, "http://h/"))
	if err != nil || n != 3 {
		t.Fatalf("%v after %d attempts, want the third answer", err, n)
	}
	if b, _ := io.ReadAll(resp.Body); string(b) != "3" {
		t.Errorf("body of answer %q, want 3", b)
	}
	resp.Body.Close()
}

func notAmplified(t *testing.T, l layer) {
	n := 0
	rt := l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		n++
		return testnet.Answer(r, 500, nil, nil), nil
	}))
	for range 1000 {
		if resp, err := rt.RoundTrip(get(t, "http://h/")); err == nil {
			resp.Body.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n > 1100 {
		t.Errorf("%d attempts for 1000 requests to a dead host", n)
	}
}

func clientTimeout(t *testing.T, l layer) {
	n := 0
	client := &http.Client{Timeout: time.Second, Transport: l.wrap(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
		n++
		<-r.Context().Done()
		return nil, r.Context().Err()
	}))}
	_, err := client.Get("http://h/")
	var timeout interface{ Timeout() bool }
	if !errors.As(err, &timeout) || !timeout.Timeout() || n != 1 {
		t.Errorf("%v after %d attempts; want a timeout after one", err, n)
	}
}
