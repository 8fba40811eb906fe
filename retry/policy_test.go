package retry_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/retry"
)

// outcomeRow is a way in which attempts end, and how often a request is sent that they
// all end in, if four attempts are allowed: by what may happen twice.
type outcomeRow struct {
	name             string
	step             step
	get, keyed, post int
	wantOutcome      retry.Outcome
}

func outcomeRows() []outcomeRow {
	return []outcomeRow{
		{"200", step{status: 200}, 1, 1, 1, retry.Answered},
		{"301", step{status: 301}, 1, 1, 1, retry.Answered},
		{"404", step{status: 404}, 1, 1, 1, retry.Answered},
		{"408", step{status: 408}, 4, 4, 1, retry.SlowUpload},
		{"409", step{status: 409}, 1, 1, 1, retry.Conflict},
		{"409 asked for", step{status: 409, header: "X-Should-Retry: true"}, 4, 4, 1, retry.Conflict},
		{"421", step{status: 421}, 2, 2, 2, retry.Misdirected},
		{"425", step{status: 425}, 2, 2, 2, retry.TooEarly},
		{"429", step{status: 429}, 4, 4, 4, retry.Throttled},
		{"429 vetoed", step{status: 429, header: "X-Should-Retry: false"}, 1, 1, 1, retry.Throttled},
		{"500", step{status: 500}, 4, 4, 1, retry.ServerError},
		{"500 asked for", step{status: 500, header: "Stripe-Should-Retry: true"}, 4, 4, 1, retry.ServerError},
		{"500 vetoed", step{status: 500, header: "Stripe-Should-Retry: false"}, 1, 1, 1, retry.ServerError},
		{"501", step{status: 501}, 1, 1, 1, retry.NotSupported},
		{"502", step{status: 502}, 4, 4, 1, retry.BadGateway},
		{"503", step{status: 503}, 4, 4, 1, retry.Unavailable},
		{"503 with a wait", step{status: 503, header: "Retry-After: 1"}, 4, 4, 1, retry.Unavailable},
		{"504", step{status: 504}, 4, 4, 1, retry.BadGateway},
		{"505", step{status: 505}, 1, 1, 1, retry.NotSupported},
		{"511", step{status: 511}, 1, 1, 1, retry.NotSupported},
		{"520", step{status: 520}, 4, 4, 1, retry.ServerError},
		{"529", step{status: 529}, 4, 4, 1, retry.Unavailable},
		{"dial", step{err: &dialError}, 4, 4, 4, retry.NotProcessed},
		{"wrapped dial", step{err: fmt.Errorf("base: %w", &dialError)}, 4, 4, 4, retry.NotProcessed},
		{"reset", step{err: errReset}, 4, 4, 1, retry.Broken},
		{"read", step{err: &net.OpError{Op: "read", Err: errReset}}, 4, 4, 1, retry.Broken},
		{"refused stream", step{err: h2Error(7)}, 4, 4, 4, retry.NotProcessed},
		{"internal stream error", step{err: h2Error(2)}, 4, 4, 1, retry.Broken},
		{"bad certificate", step{err: &tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: new(x509.Certificate)}}}, 1, 1, 1, retry.Permanent},
		{"plain HTTP on a TLS port", step{err: tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}}, 1, 1, 1, retry.Permanent},
		{"bad scheme", step{err: errors.New(`unsupported protocol scheme "ftp"`)}, 1, 1, 1, retry.Permanent},
		{"bad header", step{err: errors.New(`net/http: invalid header field value for "X"`)}, 1, 1, 1, retry.Permanent},
		{"no host", step{err: errors.New("http: no Host in request URL")}, 1, 1, 1, retry.Permanent},
		{"body too short", step{err: errors.New("http: ContentLength=5 with Body length 3")}, 1, 1, 1, retry.Permanent},
		{"no such host", step{err: &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", IsNotFound: true}}}, 1, 1, 1, retry.Permanent},
		{"name server down", step{err: &net.OpError{Op: "dial", Err: &net.DNSError{Err: "server misbehaving", IsTemporary: true}}}, 4, 4, 4, retry.NotProcessed},
		{"client certificate demanded", step{err: &net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}}, 1, 1, 1, retry.Permanent},
		{"words of the policy in a URL", step{err: &url.Error{Op: "Get", URL: "http://a/?q=unsupported protocol scheme, invalid header", Err: errReset}}, 4, 4, 1, retry.Broken},
	}
}

// How often each outcome is sent, by what may happen twice: the table of the
// package comment.
func TestEachOutcomeIsSentAsOftenAsTheTableSays(t *testing.T) {
	for _, tt := range outcomeRows() {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			for kind, want := range map[string]int{"GET": tt.get, "keyed POST": tt.keyed, "POST": tt.post} {
				var last retry.Attempt
				c := retry.Config{MaxAttempts: 4, OnAttempt: func(a retry.Attempt) { last = a }}
				if got, _, _ := always(t, tt.step, c, requestOf(t, kind)); got != want {
					t.Errorf("%s: got %d attempts, want %d", kind, got, want)
				}
				if last.Outcome != tt.wantOutcome {
					t.Errorf("%s: got outcome %v, want %v", kind, last.Outcome, tt.wantOutcome)
				}
			}
		})
	}
}

// h2 has the shape of net/http's HTTP/2 stream error.
type h2 struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (h2) Error() string { return "stream error" }

// As fills whatever has the same fields, as net/http's does.
func (e h2) As(target any) bool {
	to, from := reflect.ValueOf(target).Elem(), reflect.ValueOf(e)
	ok := to.Kind() == reflect.Struct && from.Type().ConvertibleTo(to.Type())
	if ok {
		to.Set(from.Convert(to.Type()))
	}
	return ok
}

func h2Error(code uint32) error { return fmt.Errorf("http2: %w", h2{1, code, nil}) }

// Each method of RFC 9110, and what is not one.
func TestWhichMethodsAreIdempotent(t *testing.T) {
	for method, want := range map[string]bool{
		"": true, "GET": true, "HEAD": true, "OPTIONS": true, "TRACE": true, "PUT": true, "DELETE": true,
		"POST": false, "PATCH": false, "CONNECT": false, "get": false, "PROPFIND": false,
	} {
		if got := sentAgain(t, method, nil); got != want {
			t.Errorf("%q: got %v, want %v", method, got, want)
		}
	}
	for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key"} {
		if !sentAgain(t, "POST", http.Header{name: {"k"}}) {
			t.Errorf("%s is not seen", name)
		}
		if sentAgain(t, "POST", http.Header{name: {""}}) {
			t.Errorf("an empty %s counts", name)
		}
	}
}

// sentAgain reports whether a request that may have been processed is repeated.
func sentAgain(t *testing.T, method string, header http.Header) bool {
	r := request(t, "GET", "http://a.example/", "")
	r.Method = method
	if header != nil {
		r.Header = header
	}
	attempts, _, err := always(t, step{status: 500}, retry.Config{MaxAttempts: 2}, r)
	if err != nil {
		t.Fatal(err)
	}
	return attempts == 2
}

// The package comment shows the table that the code has.
func TestPolicyIsDocumented(t *testing.T) {
	b, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[retry.Outcome]string{
		retry.NotProcessed: "not processed: dial failed, refused stream", retry.Broken: "connection broken, attempt timed out",
		retry.TimedOut: "connection broken, attempt timed out", retry.SlowUpload: "408", retry.Conflict: "409", retry.Misdirected: "421, 425",
		retry.TooEarly: "421, 425", retry.Throttled: "429, and 4xx that mean it", retry.ServerError: "500, other 5xx",
		retry.NotSupported: "501, 505, 506, 508, 510, 511", retry.BadGateway: "502, 504", retry.Unavailable: "503, 529",
		retry.Permanent: "bad certificate, scheme, header, host", retry.CallerDone: "the caller left; refused by a layer of ours",
		retry.Refused: "the caller left; refused by a layer of ours", retry.Answered: "anything else",
	}
	// These three are held by tests of their own: of refusals, of callers that leave
	// and of attempt timeouts.
	ends := append(outcomeRows(), outcomeRow{name: "refused", get: 1, keyed: 1, post: 1, wantOutcome: retry.Refused},
		outcomeRow{name: "the caller left", get: 1, keyed: 1, post: 1, wantOutcome: retry.CallerDone},
		outcomeRow{name: "timed out", get: 4, keyed: 4, post: 1, wantOutcome: retry.TimedOut})
	seen := make(map[retry.Outcome]bool)
	for _, e := range ends {
		if strings.HasSuffix(e.step.header, "false") {
			continue // whatever the table says
		}
		attempts := map[string]int{"never": 1, "once": 2, "again": 4, "if_asked": 1}
		if strings.HasSuffix(e.step.header, "true") {
			attempts["if_asked"] = 4
		}
		columns := documented(string(b), rows[e.wantOutcome])
		if len(columns) != 2 || attempts[columns[0]] != e.get || attempts[columns[0]] != e.keyed || attempts[columns[1]] != e.post {
			t.Errorf("%s: the comment says %q of %q, of 4 attempts are made %d, %d if keyed, %d of a POST", e.name, columns, rows[e.wantOutcome], e.get, e.keyed, e.post)
		}
		seen[e.wantOutcome] = true
	}
	for o := range retry.Refused + 1 {
		if !seen[o] {
			t.Errorf("%v: how often it is sent is not known", o)
		}
	}
}

// documented returns the words that a comment says in the row of a table, "if asked"
// as one.
func documented(comment, row string) []string {
	for _, line := range strings.Split(comment, "\n") {
		if line, ok := strings.CutPrefix(line, "//\t"+row); ok && row != "" {
			return strings.Fields(strings.Replace(strings.TrimLeft(line, ","), "if asked", "if_asked", 1))
		}
	}
	return nil
}

// A 403 is a throttled answer if its headers or the throttle below say so, and
// one of them is enough.
func TestA403ThatThrottles(t *testing.T) {
	for _, test := range []struct {
		name, header string
		told         bool
		want         retry.Outcome
	}{
		{"neither", "X-Nothing: 1", false, retry.Answered},
		{"its headers", "Retry-After: 1; X-RateLimit-Remaining: 0; X-RateLimit-Limit: 60; X-RateLimit-Reset: 1", false, retry.Throttled},
		{"the throttle", "X-Nothing: 1", true, retry.Throttled},
	} {
		bubble(t, test.name, func(t *testing.T) {
			var first retry.Outcome
			layer := &fakeLayer{base: play(step{status: 403, header: test.header}, step{status: 200}), layer: trip.Throttle,
				after: func(resp *http.Response, tr *trip.Trip) { tr.Throttled = test.told && resp.StatusCode == 403 }}
			rt := newTransport(t, layer, retry.Config{OnAttempt: func(a retry.Attempt) {
				if a.Number == 1 {
					first = a.Outcome
				}
			}})
			get(t, rt, "GET")
			if first != test.want {
				t.Errorf("got %v, want %v", first, test.want)
			}
		})
	}
}
