package retry_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// event is one attempt of a generated schedule.
type event struct {
	step
	wait   time.Duration // Retry-After
	veto   bool
	size   int // of the answer's body
	answer *testnet.Body
	at     time.Duration
	got    string // the request's body
}

func drawEvent(t *rapid.T) *event {
	e := &event{}
	e.status = rapid.SampledFrom([]int{0, 0, 200, 404, 408, 421, 429, 429, 500, 501, 502, 503, 503, 504, 529}).Draw(t, "status")
	if e.status == 0 {
		e.err = rapid.SampledFrom([]error{errReset, &dialError}).Draw(t, "error")
		return e
	}
	if rapid.Bool().Draw(t, "waits") {
		e.wait = time.Duration(rapid.IntRange(0, 90).Draw(t, "Retry-After")) * time.Second
		e.header = fmt.Sprintf("Retry-After: %d", e.wait/time.Second)
	}
	if e.veto = rapid.IntRange(0, 9).Draw(t, "veto") == 0; e.veto {
		e.header = strings.TrimPrefix(e.header+"; X-Should-Retry: false", "; ")
	}
	e.size = rapid.SampledFrom([]int{0, 5, holdBytes, holdBytes + 1}).Draw(t, "size")
	e.answer = testnet.NewBody(strings.Repeat("x", e.size))
	e.body = e.answer
	return e
}

// mayFollow reports whether another attempt may follow e, by the rules that
// hold whatever the configuration: nothing is processed twice that must not
// be, a veto is obeyed, and what is final stays so.
func (e *event) mayFollow(safe bool) bool {
	switch {
	case e.veto:
		return false
	case e.err == errReset:
		return safe
	case e.err != nil, e.status == 429, e.status == 421:
		return true
	case e.status == 200, e.status == 404, e.status == 501:
		return false
	}
	return safe
}

func (e *event) whole() bool { return e.size <= holdBytes }

// The rules of the package comment hold for generated schedules.
func TestProperties(t *testing.T) {
	if f := flag.Lookup("rapid.seed"); f.Value.String() == "0" { // the same schedules each time, unless asked for others
		f.Value.Set("1")
		defer f.Value.Set("0")
	}
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(timeless{t}, func(t *rapid.T) {
			var made []*event
			most := rapid.IntRange(1, 5).Draw(t, "MaxAttempts")
			c := retry.Config{MaxAttempts: most, BufferBody: 4, Backoff: fixed(time.Duration(rapid.IntRange(0, 20).Draw(t, "backoff")) * time.Second)}
			method := rapid.SampledFrom([]string{"GET", "PUT", "POST"}).Draw(t, "method")
			keyed := rapid.Bool().Draw(t, "keyed")
			kind := rapid.SampledFrom([]string{"none", "GetBody", "kept", "one-shot"}).Draw(t, "body")
			deadline := time.Duration(rapid.SampledFrom([]int{0, 5, 30, 120}).Draw(t, "deadline")) * time.Second
			start := time.Now()
			base := testnet.Func(func(r *http.Request) (*http.Response, error) {
				e := drawEvent(t)
				e.at = time.Since(start)
				made = append(made, e)
				if r.Body != nil {
					b, _ := io.ReadAll(r.Body)
					r.Body.Close()
					e.got = string(b)
				}
				if e.err != nil {
					return nil, e.err
				}
				return (&script{steps: []step{e.step}}).RoundTrip(r)
			})
			rt, err := retry.New(base, c)
			if err != nil {
				t.Fatal(err)
			}
			r, own := drawnRequest(method, kind, keyed)
			ctx := background()
			if deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, deadline)
				defer cancel()
			}
			resp, err := rt.RoundTrip(r.WithContext(ctx))
			checkAttempts(t, made, most, keyed || method != "POST", kind, deadline)
			checkEnd(t, made, resp, err)
			if own != nil && own.Closes() != 1 {
				t.Errorf("the request's body was closed %d times", own.Closes())
			}
		})
	})
}

// timeless hides Deadline, which may not be asked in a bubble.
type timeless struct{ rapid.TB }

func drawnRequest(method, kind string, keyed bool) (*http.Request, *testnet.Body) {
	r, _ := http.NewRequest(method, "http://a.example/", nil)
	if keyed {
		r.Header.Set("Idempotency-Key", "k")
	}
	text := map[string]string{"none": "", "GetBody": "body", "kept": "kept", "one-shot": "long body"}[kind]
	if kind == "none" {
		return r, nil
	}
	own := testnet.NewBody(text)
	r.Body, r.ContentLength = own, int64(len(text))
	if kind == "GetBody" {
		r.GetBody = func() (io.ReadCloser, error) { return testnet.NewBody(text), nil }
	}
	return r, own
}

// checkAttempts holds each attempt against the one before it.
func checkAttempts(t *rapid.T, made []*event, most int, safe bool, kind string, deadline time.Duration) {
	if len(made) > most {
		t.Errorf("%d attempts, want at most %d", len(made), most)
	}
	misdirected := 0
	for i, e := range made[1:] {
		before := made[i]
		if !before.mayFollow(safe) {
			t.Errorf("an attempt follows %d (%v), safe: %v", before.status, before.err, safe)
		}
		if e.at-before.at < before.wait || before.wait > defaultMaxDelay {
			t.Errorf("an attempt %v after one that asked for %v", e.at-before.at, before.wait)
		}
		if deadline > 0 && e.at >= deadline {
			t.Errorf("an attempt at %v, the deadline is %v", e.at, deadline)
		}
		if e.got != before.got || kind == "one-shot" {
			t.Errorf("sent %q after %q", e.got, before.got)
		}
		if before.status == 421 {
			misdirected++
		}
		if before.answer != nil && before.answer.Closes() == 0 {
			t.Errorf("answer %d is open", i+1)
		}
	}
	if misdirected > 1 {
		t.Errorf("%d attempts because of a 421", misdirected)
	}
}

// checkEnd says what the request must end with: the last answer there was,
// unless it was too long to be kept and another attempt followed it.
func checkEnd(t *rapid.T, made []*event, resp *http.Response, err error) {
	var want *event
	for i, e := range made {
		if e.status != 0 {
			want = e
			if i < len(made)-1 && !e.whole() {
				want = nil
			}
		}
	}
	switch {
	case (resp == nil) == (err == nil):
		t.Errorf("got %v, %v", resp, err)
	case want == nil && resp != nil:
		t.Errorf("got %v, want an error", resp.StatusCode)
	case want != nil && resp == nil:
		t.Errorf("got %v, want %d", err, want.status)
	case want != nil:
		b, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || len(b) != want.size || resp.StatusCode != want.status {
			t.Errorf("got %d with %d bytes, %v; want %d with %d", resp.StatusCode, len(b), err, want.status, want.size)
		}
	}
}
