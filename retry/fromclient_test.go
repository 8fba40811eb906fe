package retry_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// answers answers with one status after the other, the last for good, and keeps
// what it was sent.
type answers struct {
	statuses []int // zero: the connection fails
	header   http.Header
	got      []*http.Request
	bodies   []string
	at       []time.Time
}

func (s *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body.Close()
		body = string(b)
	}
	n := min(len(s.got), len(s.statuses)-1)
	s.got, s.bodies, s.at = append(s.got, r), append(s.bodies, body), append(s.at, time.Now())
	if s.statuses[n] == 0 {
		return nil, errors.New("connection reset")
	}
	return testnet.Answer(r, s.statuses[n], s.header, io.NopCloser(strings.NewReader(fmt.Sprint("answer ", n)))), nil
}

// brought is a go-retryablehttp client as its users configure it.
func brought() *retryablehttp.Client {
	c := retryablehttp.NewClient()
	c.Logger = nil
	c.RetryMax, c.RetryWaitMin, c.RetryWaitMax = 3, 10*time.Millisecond, 50*time.Millisecond
	return c
}

// through sends one request by FromClient of c and returns what the caller sees.
func through(t *testing.T, c *retryablehttp.Client, s *answers, method, body string) (status int, text string, err error) {
	t.Helper()
	rt, err := retry.New(s, retry.FromClient(c))
	if err != nil {
		t.Fatal(err)
	}
	var b io.Reader
	if body != "" {
		b = io.MultiReader(strings.NewReader(body)) // nobody can have it again by itself
	}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://a.example/v1/foo", b)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := rt.RoundTrip(r)
	if err != nil {
		return 0, "", err
	}
	all, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	return resp.StatusCode, string(all), nil
}

// A configured client's requests are repeated as often, as late and as long as
// there, whatever kind of body they have.
func TestFromClientRepeats(t *testing.T) {
	for _, test := range []struct {
		name     string
		set      func(c *retryablehttp.Client)
		method   string
		body     string
		statuses []int
		attempts int
		status   int
		waits    []time.Duration
	}{
		{"failures and 500s until an answer", nil, "PUT", "hello", []int{0, 500, 502, 200}, 4, 200, []time.Duration{10, 20, 40}},
		{"no more than RetryMax retries", nil, "GET", "", []int{500}, 4, 500, []time.Duration{10, 20, 40}},
		{"a RetryMax of none", func(c *retryablehttp.Client) { c.RetryMax = 0 }, "GET", "", []int{500}, 1, 500, nil},
		{"a negative RetryMax", func(c *retryablehttp.Client) { c.RetryMax = -1 }, "GET", "", []int{500}, 1, 500, nil},
		{"waits of RetryWaitMax at most", func(c *retryablehttp.Client) { c.RetryMax = 5 }, "GET", "", []int{500}, 6, 500, []time.Duration{10, 20, 40, 50, 50}},
		{"an answer that is final", nil, "GET", "", []int{404}, 1, 404, nil},
		{"501, which is final", nil, "GET", "", []int{501}, 1, 501, nil},
		{"a Backoff of one's own", func(c *retryablehttp.Client) {
			c.Backoff = func(least, most time.Duration, n int, resp *http.Response) time.Duration {
				return least + most*time.Duration(n)
			}
		}, "GET", "", []int{500, 500, 500, 200}, 4, 200, []time.Duration{10, 60, 110}},
		{"a linear Backoff without jitter", func(c *retryablehttp.Client) {
			c.Backoff, c.RetryWaitMax = retryablehttp.LinearJitterBackoff, 10*time.Millisecond
		}, "GET", "", []int{500, 500, 200}, 3, 200, []time.Duration{10, 20}},
		{"a CheckRetry that stops", func(c *retryablehttp.Client) {
			c.CheckRetry = func(context.Context, *http.Response, error) (bool, error) { return false, nil }
		}, "GET", "", []int{500}, 1, 500, nil},
		{"a CheckRetry that wants another of a 404", func(c *retryablehttp.Client) {
			c.CheckRetry = func(_ context.Context, resp *http.Response, _ error) (bool, error) {
				return resp.StatusCode == 404, nil
			}
		}, "GET", "", []int{404, 200}, 2, 200, []time.Duration{10}},
		{"a POST that nobody has seen", nil, "POST", "hello", []int{429, 200}, 2, 200, nil},
		{"a POST that may have been processed: it is not sent twice, other than there", nil, "POST", "hello", []int{500, 200}, 1, 500, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, s := brought(), &answers{statuses: test.statuses}
			if test.set != nil {
				test.set(c)
			}
			status, _, err := through(t, c, s, test.method, test.body)
			if err != nil || status != test.status || len(s.got) != test.attempts {
				t.Fatalf("%s: %d after %d attempts, %v; want %d after %d", test.name, status, len(s.got), err, test.status, test.attempts)
			}
			for i, want := range test.waits {
				if got := s.at[i+1].Sub(s.at[i]); got != want*time.Millisecond {
					t.Errorf("%s: wait %d is %v, want %v", test.name, i, got, want*time.Millisecond)
				}
			}
			for i, b := range s.bodies {
				if b != test.body {
					t.Errorf("%s: attempt %d had the body %q", test.name, i, b)
				}
			}
		})
	}
}

// The server's wait is kept, as RateLimitLinearJitterBackoff and DefaultBackoff do.
func TestFromClientWaitsAsTheServerSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &answers{statuses: []int{503, 200}, header: http.Header{"Retry-After": {"7"}}}
		status, _, err := through(t, brought(), s, "GET", "")
		if err != nil || status != 200 || s.at[1].Sub(s.at[0]) < 7*time.Second {
			t.Errorf("%d after %v, %v", status, s.at[1].Sub(s.at[0]), err)
		}
	})
}

// What CheckRetry says of an outcome it will not have repeated is what the caller
// gets; it sees errors as http.Client shows them.
func TestFromClientEndsWithCheckRetrysError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mine := errors.New("mine")
		c, s := brought(), &answers{statuses: []int{500}}
		c.CheckRetry = func(context.Context, *http.Response, error) (bool, error) { return false, mine }
		if _, _, err := through(t, c, s, "GET", ""); !errors.Is(err, mine) || len(s.got) != 1 {
			t.Errorf("got %v after %d attempts", err, len(s.got))
		}
		c.ErrorHandler = func(resp *http.Response, err error, n int) (*http.Response, error) {
			if resp == nil || err != mine || n != 1 {
				t.Errorf("told %v, %v, %d", resp, err, n)
			}
			return resp, nil
		}
		status, text, err := through(t, c, &answers{statuses: []int{500}}, "GET", "")
		if status != 500 || text != "answer 0" || err != nil {
			t.Errorf("got %d, %q, %v", status, text, err)
		}
	})
}

// ErrorHandler has the last word when attempts have run out, and only then.
func TestFromClientGivesUpByErrorHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			statuses []int
			called   bool
			resp     bool
		}{{[]int{500}, true, true}, {[]int{0}, true, false}, {[]int{500, 200}, false, true}, {[]int{404}, false, true}} {
			c, s := brought(), &answers{statuses: test.statuses}
			calls := 0
			mine := errors.New("gave up")
			c.ErrorHandler = func(resp *http.Response, err error, n int) (*http.Response, error) {
				calls++
				if (resp != nil) != test.resp || (err != nil) == test.resp || n != 4 {
					t.Errorf("%v: told %v, %v, %d attempts", test.statuses, resp, err, n)
				}
				return nil, mine
			}
			_, _, err := through(t, c, s, "GET", "")
			if (calls == 1) != test.called || errors.Is(err, mine) != test.called {
				t.Errorf("%v: called %d times, %v", test.statuses, calls, err)
			}
			c.ErrorHandler = retryablehttp.PassthroughErrorHandler
			if status, _, err := through(t, c, &answers{statuses: test.statuses}, "GET", ""); test.resp != (err == nil) || test.resp && status == 0 {
				t.Errorf("%v: passed through as %d, %v", test.statuses, status, err)
			}
		}
	})
}

// PrepareRetry sees each retry, not the first attempt, and what it changes goes
// to the server and not into the caller's request; its error ends the request.
func TestFromClientPreparesRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := brought(), &answers{statuses: []int{500, 500, 200}}
		n := 0
		c.PrepareRetry = func(r *http.Request) error {
			n++
			r.Header.Set("Signature", fmt.Sprint(n))
			return nil
		}
		if status, _, err := through(t, c, s, "PUT", "hello"); status != 200 || err != nil {
			t.Fatal(status, err)
		}
		for i, want := range []string{"", "1", "2"} {
			if got := s.got[i].Header.Get("Signature"); got != want || s.bodies[i] != "hello" {
				t.Errorf("attempt %d: signature %q, body %q", i, got, s.bodies[i])
			}
		}
		mine := errors.New("no key")
		c.PrepareRetry = func(*http.Request) error { return mine }
		s = &answers{statuses: []int{500}}
		if _, _, err := through(t, c, s, "PUT", "hello"); !errors.Is(err, mine) || len(s.got) != 1 {
			t.Errorf("got %v after %d attempts", err, len(s.got))
		}
	})
}

// The caller's request stays as it was, its body is closed, whatever Prepare does.
func TestPrepareLeavesTheCallersRequestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := &closes{Reader: strings.NewReader("x")}
		r, _ := http.NewRequest("PUT", "http://a.example/", body)
		rt, err := retry.New(&answers{statuses: []int{200}}, retry.Config{Prepare: func(r *http.Request, before int) error {
			r.Header.Set("A", "b")
			r.URL.RawQuery += "&signature=1"
			return errors.New("no")
		}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rt.RoundTrip(r); err == nil || len(r.Header) != 0 || r.URL.RawQuery != "" || body.closed == 0 {
			t.Errorf("%v, header %v, query %q, closed %d times", err, r.Header, r.URL.RawQuery, body.closed)
		}
	})
}

type closes struct {
	io.Reader
	closed int
}

func (c *closes) Close() error { c.closed++; return nil }

// The log hooks are called for each attempt and each answer, with the client's
// logger, whichever kind it is; the hook may read the answer.
func TestFromClientCallsLogHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, leveled := range []bool{false, true} {
			var out bytes.Buffer
			c, s := brought(), &answers{statuses: []int{0, 500, 200}}
			c.Logger = printed{&out}
			if leveled {
				c.Logger = levels{&out}
			}
			c.RequestLogHook = func(l retryablehttp.Logger, r *http.Request, n int) {
				l.Printf("%s %s %d;", r.Method, r.URL.Path, n)
			}
			c.ResponseLogHook = func(l retryablehttp.Logger, resp *http.Response) {
				l.Printf("%d", resp.StatusCode)
				if resp.StatusCode != 200 {
					b, _ := io.ReadAll(resp.Body)
					l.Printf(" %s;", b)
				}
			}
			status, text, err := through(t, c, s, "GET", "")
			if status != 200 || text != "answer 2" || err != nil {
				t.Error(status, text, err)
			}
			if got, want := out.String(), "GET /v1/foo 0;GET /v1/foo 1;500 answer 1;GET /v1/foo 2;200"; got != want {
				t.Errorf("logged %q, want %q", got, want)
			}
		}
		c := brought()
		c.RequestLogHook = func(l retryablehttp.Logger, _ *http.Request, _ int) {
			if l != nil {
				t.Errorf("a logger of no client: %v", l)
			}
		}
		through(t, c, &answers{statuses: []int{200}}, "GET", "")
	})
}

type printed struct{ w io.Writer }

func (p printed) Printf(format string, args ...any) { fmt.Fprintf(p.w, format, args...) }

type levels struct{ w io.Writer }

func (l levels) Error(string, ...any)      {}
func (l levels) Info(msg string, _ ...any) { io.WriteString(l.w, msg) }
func (l levels) Debug(string, ...any)      {}
func (l levels) Warn(string, ...any)       {}

// A caller who cancels gets his error at once, in a wait too, and nobody is asked
// to give up for him.
func TestFromClientCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := brought()
		c.RetryWaitMin, c.RetryWaitMax = time.Minute, time.Minute
		c.ErrorHandler = func(*http.Response, error, int) (*http.Response, error) {
			t.Error("asked to give up")
			return nil, errors.New("gave up")
		}
		rt, err := retry.New(&answers{statuses: []int{0}}, retry.FromClient(c))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		r, _ := http.NewRequestWithContext(ctx, "GET", "http://a.example/", nil)
		start := time.Now()
		if _, err := rt.RoundTrip(r); !errors.Is(err, context.Canceled) || time.Since(start) != time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

// A GiveUp that says nothing is an error, and the last answer is closed.
func TestGiveUpWithoutAWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := &closes{Reader: strings.NewReader("x")}
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 500, nil, body), nil
		})
		for name, f := range map[string]func(*http.Response, error, int) (*http.Response, error){
			"nothing": func(*http.Response, error, int) (*http.Response, error) { return nil, nil },
			"another answer": func(r *http.Response, _ error, _ int) (*http.Response, error) {
				return testnet.Answer(r.Request, 200, nil, http.NoBody), nil
			},
			"both": func(r *http.Response, _ error, _ int) (*http.Response, error) { return r, errors.New("e") },
		} {
			body.closed = 0
			rt, err := retry.New(base, retry.Config{MaxAttempts: 1, GiveUp: f})
			if err != nil {
				t.Fatal(err)
			}
			r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://a.example/", nil)
			resp, err := rt.RoundTrip(r)
			if (resp == nil) == (err == nil) || (name == "another answer") != (err == nil) || body.closed == 0 {
				t.Errorf("%s: %v, %v, the last answer closed %d times", name, resp, err, body.closed)
			}
		}
	})
}

// An answer that GiveUp returns beside an error is closed, as is the last one.
func TestGiveUpWithAnAnswerAndAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last, other := &closes{Reader: strings.NewReader("x")}, &closes{Reader: strings.NewReader("y")}
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 500, nil, last), nil
		})
		no := errors.New("no")
		rt, err := retry.New(base, retry.Config{MaxAttempts: 1, GiveUp: func(r *http.Response, _ error, _ int) (*http.Response, error) {
			return testnet.Answer(r.Request, 200, nil, other), no
		}})
		if err != nil {
			t.Fatal(err)
		}
		r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://a.example/", nil)
		if resp, err := rt.RoundTrip(r); resp != nil || err != no || last.closed == 0 || other.closed != 1 {
			t.Errorf("%v, %v, closed %d and %d times", resp, err, last.closed, other.closed)
		}
	})
}

// seekable is a body that is read at an offset, and ends as end says.
type seekable struct {
	text *strings.Reader
	end  error
}

func (s seekable) Read(b []byte) (int, error) { return s.text.Read(b) }
func (s seekable) Close() error               { return nil }

func (s seekable) Seek(offset int64, whence int) (int64, error) { return s.text.Seek(offset, whence) }

func (s seekable) ReadAt(b []byte, off int64) (int, error) {
	n, err := s.text.ReadAt(b, off)
	if err != nil {
		err = s.end
	}
	return n, err
}

// A body that is read at an offset ends where it ends, each time it is sent, and
// its own error reaches the base.
func TestBodyAtAnOffsetEnds(t *testing.T) {
	broken := errors.New("broken disk")
	for _, end := range []error{io.EOF, broken} {
		synctest.Test(t, func(t *testing.T) {
			sent := 0
			base := testnet.Func(func(r *http.Request) (*http.Response, error) {
				defer r.Body.Close()
				sent++
				var got []byte
				for b, reads := make([]byte, 3), 0; ; reads++ {
					n, err := r.Body.Read(b)
					got = append(got, b[:n]...)
					if err == nil && reads < 100 {
						continue
					}
					if err != end || end == io.EOF && string(got) != "a body" {
						t.Errorf("attempt %d: read %q, %v, want %v", sent, got, err, end)
					}
					return testnet.Answer(r, 503, nil, http.NoBody), nil
				}
			})
			rt, err := retry.New(base, retry.Config{})
			if err != nil {
				t.Fatal(err)
			}
			r, _ := http.NewRequestWithContext(t.Context(), "PUT", "http://a.example/", nil)
			r.Body, r.ContentLength = seekable{strings.NewReader("a body"), end}, -1
			if resp, err := rt.RoundTrip(r); err != nil || resp.StatusCode != 503 || sent != 3 {
				t.Errorf("%v, %v after %d attempts", resp, err, sent)
			}
		})
	}
}

func ExampleFromClient() {
	old := retryablehttp.NewClient() // as it stands in your program
	old.RetryMax = 5
	rt, err := retry.New(nil, retry.FromClient(old))
	fmt.Println(rt != nil, err)
	// Output: true <nil>
}
