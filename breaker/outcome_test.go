package breaker_test

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
)

// outcomeOf is how a Meter with settings c judges one attempt of r at base.
func outcomeOf(t *testing.T, c breaker.Config, r *http.Request, base answer) breaker.Outcome {
	t.Helper()
	asked, attempts := c.Classify, 0
	c.Consecutive, c.Window = 100, time.Hour
	c.Classify = func(resp *http.Response, err error) breaker.Outcome {
		switch {
		case attempts == 1: // from a failure on, calls are counted
			return breaker.Failure
		case asked == nil:
			return breaker.Default
		}
		return asked(resp, err)
	}
	cs := circuits(t, c)
	m := cs.Meter(testnet.Func(func(r *http.Request) (*http.Response, error) {
		if attempts++; attempts == 1 {
			return nil, errReset
		}
		return base(r)
	}))
	first := r.WithContext(context.WithoutCancel(r.Context()))
	first.Body = nil
	m.RoundTrip(first)
	if resp, err := m.RoundTrip(r); err == nil {
		resp.Body.Close()
	}
	switch s := cs.Stats().Circuits[0]; {
	case s.Failures == 2:
		return breaker.Failure
	case s.Calls == 2:
		return breaker.Success
	default:
		return breaker.Ignore
	}
}

// TestOutcomesOfAnswers is the table of the documentation, for answers.
func TestOutcomesOfAnswers(t *testing.T) {
	for _, test := range []struct {
		code        int
		name, value string
		want        breaker.Outcome
	}{
		{101, "", "", breaker.Success}, {200, "", "", breaker.Success}, {204, "", "", breaker.Success}, {304, "", "", breaker.Success},
		{400, "", "", breaker.Success}, {401, "", "", breaker.Success}, {403, "", "", breaker.Success}, {404, "", "", breaker.Success},
		{408, "", "", breaker.Ignore}, {409, "", "", breaker.Success}, {425, "", "", breaker.Success},
		{429, "", "", breaker.Ignore}, {429, "Retry-After", "1", breaker.Ignore},
		{500, "", "", breaker.Failure}, {500, "Retry-After", "1", breaker.Failure},
		{501, "", "", breaker.Success}, {505, "", "", breaker.Success},
		{502, "", "", breaker.Failure}, {504, "", "", breaker.Failure}, {529, "", "", breaker.Failure}, {522, "", "", breaker.Failure},
		{503, "", "", breaker.Failure},
		{503, "Retry-After", "1", breaker.Ignore},
		{503, "Retry-After", "0", breaker.Ignore},
		{503, "Retry-After", "Sat, 01 Jan 2000 00:00:00 GMT", breaker.Ignore},
		{503, "Retry-After", "soon", breaker.Failure},
		{999, "", "", breaker.Success},
	} {
		r := httptest.NewRequest("GET", "http://a.example/", nil)
		if got := outcomeOf(t, breaker.Config{}, r, answerWith(test.code, test.name, test.value)); got != test.want {
			t.Errorf("%d %s %s: got %v, want %v", test.code, test.name, test.value, got, test.want)
		}
	}
}

// TestOutcomesOfErrors is the table of the documentation, for errors.
func TestOutcomesOfErrors(t *testing.T) {
	reset := &net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")}
	other := circuits(t, breaker.Config{})
	other.Force("a.example", breaker.Open)
	_, refusal := other.Meter(testnet.Func(status(200))).RoundTrip(httptest.NewRequest("GET", site, nil))
	if notsent.Refused(refusal) != notsent.Meter {
		t.Fatal(refusal)
	}
	for _, test := range []struct {
		name string
		edit func(r *http.Request)
		err  error
		want breaker.Outcome
	}{
		{"reset", nil, reset, breaker.Failure},
		{"end of file", nil, io.EOF, breaker.Failure},
		{"dial", nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}, breaker.Failure},
		{"DNS", nil, &net.DNSError{Err: "no such host", Name: "a.example"}, breaker.Failure},
		{"certificate", nil, x509.UnknownAuthorityError{}, breaker.Failure},
		{"a timeout below", nil, context.DeadlineExceeded, breaker.Failure},
		{"cancelled below", nil, context.Canceled, breaker.Ignore},
		{"refusal below", nil, refusal, breaker.Ignore},
		{"wrapped refusal below", nil, notsent.Wrap(refusal), breaker.Ignore},
		{"no host", func(r *http.Request) { r.URL.Host = "" }, errors.New("http: no Host in request URL"), breaker.Ignore},
		{"scheme", func(r *http.Request) { r.URL.Scheme = "gopher" }, errors.New("unsupported protocol scheme"), breaker.Ignore},
		{"method", func(r *http.Request) { r.Method = "G T" }, errors.New("net/http: invalid method"), breaker.Ignore},
		{"empty method", func(r *http.Request) { r.Method = "" }, reset, breaker.Failure},
		{"header name", func(r *http.Request) { r.Header["a b"] = nil }, errors.New("net/http: invalid header field name"), breaker.Ignore},
		{"header value", func(r *http.Request) { r.Header.Set("A", "x\n") }, errors.New("net/http: invalid header field value"), breaker.Ignore},
		{"header with tab", func(r *http.Request) { r.Header.Set("A", "x\ty\xff") }, reset, breaker.Failure},
		{"nil header", func(r *http.Request) { r.Header = nil }, errors.New("http: nil Request.Header"), breaker.Ignore},
	} {
		r := httptest.NewRequest("GET", "http://a.example/", nil)
		if test.edit != nil {
			test.edit(r)
		}
		if got := outcomeOf(t, breaker.Config{}, r, failing(test.err)); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}

// TestOutcomesOfEndings is the table of the documentation, for attempts that
// were ended from our side.
func TestOutcomesOfEndings(t *testing.T) {
	for _, test := range []struct {
		name  string
		limit time.Duration // of the caller's deadline; 0: none
		end   func(t *trip.Trip, cancel func())
		err   error
		want  breaker.Outcome
	}{
		{"cancelled", 0, func(t *trip.Trip, cancel func()) { cancel() }, context.Canceled, breaker.Ignore},
		{"cancelled late", 0, func(t *trip.Trip, cancel func()) { time.Sleep(time.Minute); cancel() }, context.Canceled, breaker.Ignore},
		{"cancelled with a cause of its own", 0, func(t *trip.Trip, cancel func()) { cancel() }, errReset, breaker.Ignore},
		{"short deadline", 999 * time.Millisecond, nil, context.DeadlineExceeded, breaker.Ignore},
		{"fair deadline", time.Second, nil, context.DeadlineExceeded, breaker.Failure},
		{"fair deadline on HTTP/2", time.Second, nil, context.Canceled, breaker.Failure},
		{"short deadline, an error of its own", 500 * time.Millisecond, nil, errReset, breaker.Ignore},
		{"deadline, long queued, short on the wire", time.Minute, func(t *trip.Trip, _ func()) {
			time.Sleep(time.Minute - time.Millisecond)
			t.Depart()
		}, context.DeadlineExceeded, breaker.Ignore},
		{"attempt timeout", 0, func(t *trip.Trip, _ func()) { t.SetCause(trip.AttemptTimeout) }, context.Canceled, breaker.Failure},
		{"attempt timeout of a process that stood still", 0, func(t *trip.Trip, _ func()) {
			t.SetCause(trip.AttemptTimeout)
			t.Stage = trip.Frozen
		}, context.Canceled, breaker.Ignore},
		{"reset while this process stood still", 0, func(t *trip.Trip, _ func()) { t.Stage = trip.Frozen }, errReset, breaker.Ignore},
		{"lost hedge", 0, func(t *trip.Trip, _ func()) { t.SetCause(trip.LostHedge) }, context.Canceled, breaker.Ignore},
		{"caller done", 0, func(t *trip.Trip, _ func()) { t.SetCause(trip.CallerDone) }, errReset, breaker.Ignore},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if test.limit > 0 {
					ctx, cancel = context.WithTimeout(ctx, test.limit)
					defer cancel()
				}
				r := httptest.NewRequest("GET", "http://a.example/", nil).WithContext(ctx)
				got := outcomeOf(t, breaker.Config{}, r, func(r *http.Request) (*http.Response, error) {
					if test.end != nil {
						test.end(trip.From(r.Context()), cancel)
					}
					if test.limit > 0 {
						<-ctx.Done()
					}
					return nil, test.err
				})
				if got != test.want {
					t.Errorf("got %v, want %v", got, test.want)
				}
			})
		})
	}
}

// early is a context whose deadline has passed and whose timer is late.
type early struct{ context.Context }

func (early) Deadline() (time.Time, bool) { return time.Now(), true }

// TestDialKnowsTheDeadlineFirst: a dialer compares clocks itself and may fail
// before the context says that it has ended.
func TestDialKnowsTheDeadlineFirst(t *testing.T) {
	r := httptest.NewRequest("GET", site, nil).WithContext(early{t.Context()})
	if got := outcomeOf(t, breaker.Config{}, r, failing(errReset)); got != breaker.Ignore {
		t.Errorf("got %v, want %v", got, breaker.Ignore)
	}
}

// TestClassifyIsAskedFirst is asked first, and Default leaves it to the table.
func TestClassifyIsAskedFirst(t *testing.T) {
	for _, say := range []breaker.Outcome{breaker.Default, breaker.Success, breaker.Failure, breaker.Ignore, 99} {
		want := say
		if say == breaker.Default || say == 99 {
			want = breaker.Failure
		}
		r := httptest.NewRequest("GET", "http://a.example/", nil)
		c := breaker.Config{Classify: func(resp *http.Response, err error) breaker.Outcome {
			if err != errReset {
				t.Errorf("Classify got %v", err)
			}
			return say
		}}
		if got := outcomeOf(t, c, r, failing(errReset)); got != want {
			t.Errorf("%v: got %v, want %v", say, got, want)
		}
		r = httptest.NewRequest("GET", "http://a.example/", nil)
		c.Classify = func(resp *http.Response, err error) breaker.Outcome { return say }
		if say == breaker.Default || say == 99 {
			want = breaker.Success
		}
		if got := outcomeOf(t, c, r, status(404)); got != want {
			t.Errorf("404, %v: got %v, want %v", say, got, want)
		}
	}
}

// TestClassifyMayBlameForAnything: also for an error that the table does not hold
// against the host, where there is no answer to look at.
func TestClassifyMayBlameForAnything(t *testing.T) {
	c := breaker.Config{Classify: func(*http.Response, error) breaker.Outcome { return breaker.Failure }}
	if got := outcomeOf(t, c, httptest.NewRequest("GET", "http://a.example/", nil), failing(context.Canceled)); got != breaker.Failure {
		t.Errorf("got %v, want %v", got, breaker.Failure)
	}
}

// TestBodyThatCannotBeRead is nobody's failure but the caller's.
func TestBodyThatCannotBeRead(t *testing.T) {
	base, _, stop := testnet.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
	}), false)
	defer stop()
	broken := io.MultiReader(strings.NewReader("half"), errReader{})
	r, _ := http.NewRequest("POST", "http://a.example/", testnet.BodyOf(broken))
	if got := outcomeOf(t, breaker.Config{}, r, base.RoundTrip); got != breaker.Ignore {
		t.Errorf("broken body: got %v, want %v", got, breaker.Ignore)
	}
	r, _ = http.NewRequest("POST", "http://a.example/", testnet.NewBody("whole"))
	if got := outcomeOf(t, breaker.Config{}, r, base.RoundTrip); got != breaker.Success {
		t.Errorf("good body: got %v, want %v", got, breaker.Success)
	}
	// A base that closes the body and makes a Read fail thereby is not the caller.
	r, _ = http.NewRequest("POST", "http://a.example/", testnet.NewBody("whole"))
	if got := outcomeOf(t, breaker.Config{}, r, func(r *http.Request) (*http.Response, error) {
		r.Body.Close()
		r.Body.Read(make([]byte, 1))
		return nil, errReset
	}); got != breaker.Failure {
		t.Errorf("reset while uploading: got %v, want %v", got, breaker.Failure)
	}
}

type errReader struct{}

func (errReader) Read([]byte) (int, error) { return 0, errors.New("disk on fire") }

func TestWhatIsAToken(t *testing.T) {
	for s, want := range map[string]bool{"": false, "GET": true, "X-a_b!": true, "a b": false, "a:b": false, "é": false, "a\x7f": false} {
		r := httptest.NewRequest("GET", site, nil)
		r.Header[s] = []string{"x"}
		wantOf := map[bool]breaker.Outcome{true: breaker.Failure, false: breaker.Ignore}[want] // the host's, or the caller's
		if got := outcomeOf(t, breaker.Config{}, r, failing(errReset)); got != wantOf {
			t.Errorf("a header %q: got %v, want %v", s, got, wantOf)
		}
		if s == "" {
			continue // a method that is left out is GET
		}
		r = httptest.NewRequest("GET", site, nil)
		r.Method = s
		if got := outcomeOf(t, breaker.Config{}, r, failing(errReset)); got != wantOf {
			t.Errorf("the method %q: got %v, want %v", s, got, wantOf)
		}
	}
}

// announcing is a body that fills in its request's trailers as it is read.
type announcing struct{ trailer http.Header }

func (a announcing) Read(p []byte) (int, error) {
	a.trailer["Sum"] = []string{"\x00"}
	return copy(p, "x"), nil
}

// Each Outcome has a word, and no other value has one.
func TestOutcomeWords(t *testing.T) {
	for o, want := range []string{"default", "success", "failure", "ignore", "invalid", "invalid"} {
		if got := breaker.Outcome(o).String(); got != want {
			t.Errorf("%d: %s, want %s", o, got, want)
		}
	}
}

// A limit that is spent says nothing about the host, whatever the status.
func TestThrottledServerErrors(t *testing.T) {
	for code, want := range map[string]breaker.Outcome{
		"ThrottlingException": breaker.Ignore, "ConcurrentLimitExceeded": breaker.Ignore, "ServiceUnavailable": breaker.Failure,
	} {
		r := httptest.NewRequest("GET", site, nil)
		if got := outcomeOf(t, breaker.Config{}, r, answerWith(503, "X-Amzn-ErrorType", code)); got != want {
			t.Errorf("503 %s: got %v, want %v", code, got, want)
		}
	}
}

// A header value with a control character is the caller's mistake.
func TestControlCharacters(t *testing.T) {
	for value, want := range map[string]breaker.Outcome{"x\x7f": breaker.Ignore, "x\x1f": breaker.Ignore, "x\x80": breaker.Failure, "x y": breaker.Failure} {
		r := httptest.NewRequest("GET", site, nil)
		r.Header["A"] = []string{value}
		if got := outcomeOf(t, breaker.Config{}, r, failing(errReset)); got != want {
			t.Errorf("%q: got %v, want %v", value, got, want)
		}
	}
}

// A request's trailers are its body's from the first Read on: a base may go on
// reading after it has returned.
func TestTrailersAreTheBodys(t *testing.T) {
	for _, test := range []struct {
		name string
		read bool
		want breaker.Outcome
	}{{"read", true, breaker.Failure}, {"unread", false, breaker.Ignore}} {
		r := httptest.NewRequest("POST", "http://a.example/", nil)
		r.Trailer = http.Header{"Sum": {"\x00"}}
		r.Body = io.NopCloser(announcing{r.Trailer})
		got := outcomeOf(t, breaker.Config{}, r, func(r *http.Request) (*http.Response, error) {
			if test.read {
				r.Body.Read(make([]byte, 1))
			}
			return nil, io.ErrUnexpectedEOF
		})
		if got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}
