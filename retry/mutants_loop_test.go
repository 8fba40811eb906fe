package retry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
)

// Each value of the enumerations has words of its own, and no other value has.
func TestWords(t *testing.T) {
	seen := make(map[string]bool)
	check := func(kind, got string, valid bool) {
		t.Helper()
		if valid == (got == "invalid") || valid && got == "" || seen[kind+got] && valid {
			t.Errorf("%s: %q", kind, got)
		}
		seen[kind+got] = true
	}
	for o := range outcomes + 2 {
		check("outcome ", o.String(), o < outcomes)
	}
	for r := range reasons + 2 {
		check("reason ", r.String(), r < reasons)
	}
	for f := range Queue + 3 {
		check("wait ", f.String(), f <= Queue)
	}
	if !(&TimeoutError{}).Temporary() {
		t.Error("a timeout is said to last")
	}
}

// Without one of the two timeouts the other holds.
func TestOneTimeoutAlone(t *testing.T) {
	for name, c := range map[string]Config{
		"headers": {MaxAttempts: 1, AttemptTimeout: time.Second, StallTimeout: -1},
		"body":    {MaxAttempts: 1, AttemptTimeout: -1, StallTimeout: time.Second},
	} {
		bubble(t, name, func(t *testing.T) {
			base := testnet.Func(func(r *http.Request) (*http.Response, error) {
				if name == "body" {
					return testnet.Answer(r, 200, nil, &stalled{r.Context()}), nil
				}
				<-r.Context().Done()
				return nil, r.Context().Err()
			})
			start := time.Now()
			resp, err := newTransport(t, base, c).RoundTrip(request(t, "GET", "http://a.example/", ""))
			if name == "body" {
				if err != nil {
					t.Fatal(err)
				}
				_, err = resp.Body.Read(make([]byte, 1))
			}
			var late *TimeoutError
			if !errors.As(err, &late) || late.Body != (name == "body") || time.Since(start) != time.Second {
				t.Errorf("got %v after %v", err, time.Since(start))
			}
		})
	}
}

// stalled is a body whose Read lasts until its request's end.
type stalled struct{ ctx context.Context }

func (s *stalled) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}
func (s *stalled) Close() error { return nil }

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
			rt := newTransport(t, base, Config{MaxAttempts: 1, AttemptTimeout: test.timeout, StallTimeout: -1})
			_, err := rt.RoundTrip(request(t, "GET", "http://a.example/", ""))
			if err == nil || errors.Is(err, notsent.Err) != test.unsent {
				t.Errorf("got %v; not sent: %t", err, !test.unsent)
			}
		})
	}
}

// begun is a Backoff that must be begun before it is asked.
type begun struct{ resets, asked int }

func (c *begun) Reset() { c.resets++ }
func (c *begun) NextBackOff() time.Duration {
	c.asked++
	return 0
}

// Each request that is retried begins its Backoff anew, once.
func TestBackoffIsBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made []*begun
		rt := newTransport(t, play(step{status: 500}), Config{MaxAttempts: 3, Backoff: func() backoff.BackOff {
			made = append(made, new(begun))
			return made[len(made)-1]
		}})
		for range 2 {
			get(t, rt, "GET")
		}
		if len(made) != 2 || *made[0] != (begun{1, 2}) || *made[1] != (begun{1, 2}) {
			t.Errorf("%d: %+v, %+v", len(made), made[0], made[len(made)-1])
		}
	})
}

// An error of Check ends the request, whether there was an answer or not.
func TestErrorOfCheckEndsTheRequest(t *testing.T) {
	errCheck := errors.New("enough")
	for name, s := range map[string]step{"an answer": {status: 500}, "none": {err: errReset}} {
		bubble(t, name, func(t *testing.T) {
			rt := newTransport(t, play(s), Config{Check: func(context.Context, *http.Response, error) (bool, error) { return false, errCheck }})
			if resp, err := rt.RoundTrip(request(t, "GET", "http://a.example/", "")); resp != nil || !errors.Is(err, errCheck) {
				t.Errorf("got %v, %v", resp, err)
			}
		})
	}
}

// No vote makes a permanent failure worth another attempt, or unsafe.
func TestCheckCannotRepeatThePermanent(t *testing.T) {
	for _, method := range []string{"GET", "POST"} {
		bubble(t, method, func(t *testing.T) {
			var reasons []Reason
			s := play(step{err: errors.New("unsupported protocol scheme \"ftp\"")})
			rt := newTransport(t, s, Config{
				Check:     func(context.Context, *http.Response, error) (bool, error) { return true, nil },
				OnAttempt: func(a Attempt) { reasons = append(reasons, a.Reason) },
			})
			rt.RoundTrip(request(t, method, "http://a.example/", ""))
			if s.calls() != 1 || len(reasons) != 1 || reasons[0] != Final {
				t.Errorf("%d attempts, %v", s.calls(), reasons)
			}
		})
	}
}

// A 403 is a throttled answer if its headers or the throttle below say so, and
// one of them is enough.
func TestA403ThatThrottles(t *testing.T) {
	for _, test := range []struct {
		name, header string
		told         bool
		want         Outcome
	}{
		{"neither", "X-Nothing: 1", false, Answered},
		{"its headers", "Retry-After: 1; X-RateLimit-Remaining: 0; X-RateLimit-Limit: 60; X-RateLimit-Reset: 1", false, Throttled},
		{"the throttle", "X-Nothing: 1", true, Throttled},
	} {
		bubble(t, test.name, func(t *testing.T) {
			var first Outcome
			layer := &fakeLayer{base: play(step{status: 403, header: test.header}, step{status: 200}), layer: trip.Throttle,
				after: func(resp *http.Response, tr *trip.Trip) { tr.Throttled = test.told && resp.StatusCode == 403 }}
			rt := newTransport(t, layer, Config{OnAttempt: func(a Attempt) {
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

// lend is a body without GetBody, kept up to limit bytes.
func lend(t *testing.T, limit int64, body io.ReadCloser) *replay {
	t.Helper()
	r := request(t, "PUT", "http://a.example/", "")
	r.Body = body
	return newReplay(r, limit)
}

// A body is closed once: with the last share of a request that is over, not
// before, and it is not lent again after that.
func TestABodyIsClosedWithItsLastShare(t *testing.T) {
	for _, limit := range []int64{0, 100} {
		body := testnet.NewBody("body")
		p := lend(t, limit, body)
		s := p.next()
		s.Close()
		if body.Closes() != 0 || !p.again() {
			t.Fatalf("limit %d: an untouched share closed the body (%d), again %t", limit, body.Closes(), p.again())
		}
		s = p.next()
		p.finish()
		if body.Closes() != 0 || p.again() || p.next() != nil {
			t.Errorf("limit %d: over, but its share is out: %d closes, again %t", limit, body.Closes(), p.again())
		}
		s.Close()
		s.Close()
		if body.Closes() != 1 || p.again() {
			t.Errorf("limit %d: %d closes, again %t", limit, body.Closes(), p.again())
		}
	}
}

// A share that waits for an earlier one's Read of the source is freed by its
// Close, and the body is read on by the next.
func TestClosedShareWaitsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from, to := io.Pipe()
		p := lend(t, 100, from)
		first := p.next()
		go first.Read(make([]byte, 4))
		synctest.Wait()
		second := p.next()
		var err error
		go func() { _, err = second.Read(make([]byte, 4)) }()
		synctest.Wait()
		second.Close()
		synctest.Wait()
		if err != errSealed {
			t.Fatalf("got %v of a share that was closed while it waited", err)
		}
		third := p.next()
		to.Write([]byte("body"))
		to.Close()
		if b, err := io.ReadAll(third); string(b) != "body" || err != nil {
			t.Errorf("the third got %q, %v", b, err)
		}
		third.Close()
		p.finish()
	})
}

// Only a body of known length that is kept whole gets a GetBody, and that ends
// with the request.
func TestGetBodyEndsWithTheRequest(t *testing.T) {
	for _, length := range []int64{-1, 0, 4} {
		synctest.Test(t, func(t *testing.T) {
			r := request(t, "PUT", "http://a.example/", "")
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader("body")), length
			s := play(step{status: 200})
			resp, err := newTransport(t, s, Config{BufferBody: 100}).RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			again := s.reqs[0].GetBody
			if (again != nil) != (length > 0) {
				t.Fatalf("length %d: GetBody %t", length, again != nil)
			}
			if again != nil {
				if b, err := again(); b != nil || err != errGone {
					t.Errorf("after the request it gives %v, %v", b, err)
				}
			}
		})
	}
}
