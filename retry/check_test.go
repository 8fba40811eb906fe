package retry_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/weirhttp/weir/retry"
)

// An error of Check ends the request, whether there was an answer or not.
func TestErrorOfCheckEndsTheRequest(t *testing.T) {
	errCheck := errors.New("enough")
	for name, s := range map[string]step{"an answer": {status: 500}, "none": {err: errReset}} {
		bubble(t, name, func(t *testing.T) {
			rt := newTransport(t, play(s), retry.Config{Check: func(context.Context, *http.Response, error) (bool, error) { return false, errCheck }})
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
			var reasons []retry.Reason
			s := play(step{err: errors.New("unsupported protocol scheme \"ftp\"")})
			rt := newTransport(t, s, retry.Config{
				Check:     func(context.Context, *http.Response, error) (bool, error) { return true, nil },
				OnAttempt: func(a retry.Attempt) { reasons = append(reasons, a.Reason) },
			})
			rt.RoundTrip(request(t, method, "http://a.example/", ""))
			if s.calls() != 1 || len(reasons) != 1 || reasons[0] != retry.Final {
				t.Errorf("%d attempts, %v", s.calls(), reasons)
			}
		})
	}
}

// No vote makes a POST repeatable, and the hook is told why there was no retry.
func TestUnsafeIsSaid(t *testing.T) {
	yes := func(context.Context, *http.Response, error) (bool, error) { return true, nil }
	for name, c := range map[string]retry.Config{"policy": {}, "Check": {Check: yes}} {
		bubble(t, name, func(t *testing.T) {
			var reasons []retry.Reason
			c.OnAttempt = func(a retry.Attempt) { reasons = append(reasons, a.Reason) }
			s := play(step{status: 500})
			resp, err := newTransport(t, s, c).RoundTrip(request(t, "POST", "http://a.example/", "x"))
			if err != nil || resp.StatusCode != 500 || s.calls() != 1 {
				t.Fatalf("%v, %v after %d attempts", resp, err, s.calls())
			}
			if len(reasons) != 1 || reasons[0] != retry.Unsafe {
				t.Errorf("reasons %v, want %v", reasons, retry.Unsafe)
			}
		})
	}
}
