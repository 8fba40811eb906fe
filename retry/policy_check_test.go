package retry_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/weirhttp/weir/retry"
)

// yes is a Check that wants another attempt, whatever happened.
func yes(context.Context, *http.Response, error) (bool, error) { return true, nil }

// An error of Check ends the request, whether there was an answer or not.
func TestErrorOfCheckEndsTheRequest(t *testing.T) {
	errCheck := errors.New("enough")
	c := retry.Config{Check: func(context.Context, *http.Response, error) (bool, error) { return false, errCheck }}
	for _, end := range []step{{status: 500}, {err: errReset}} {
		if attempts, status, err := always(t, end, c, requestOf(t, "GET")); attempts != 1 || status != 0 || !errors.Is(err, errCheck) {
			t.Errorf("%+v: got %d, %v after %d attempts", end, status, err, attempts)
		}
	}
}

// No vote makes a permanent failure worth another attempt, or unsafe.
func TestCheckCannotRepeatThePermanent(t *testing.T) {
	for _, kind := range []string{"GET", "POST"} {
		var reasons []retry.Reason
		c := retry.Config{Check: yes, OnAttempt: func(a retry.Attempt) { reasons = append(reasons, a.Reason) }}
		end := step{err: errors.New(`unsupported protocol scheme "ftp"`)}
		if attempts, _, _ := always(t, end, c, requestOf(t, kind)); attempts != 1 || len(reasons) != 1 || reasons[0] != retry.Final {
			t.Errorf("%s: %d attempts, %v", kind, attempts, reasons)
		}
	}
}

// No vote makes a POST repeatable, and the hook is told why there was no retry.
func TestUnsafeIsSaid(t *testing.T) {
	for name, c := range map[string]retry.Config{"policy": {}, "Check": {Check: yes}} {
		var reasons []retry.Reason
		c.OnAttempt = func(a retry.Attempt) { reasons = append(reasons, a.Reason) }
		attempts, status, err := always(t, step{status: 500}, c, requestOf(t, "POST"))
		if attempts != 1 || status != 500 || len(reasons) != 1 || reasons[0] != retry.Unsafe {
			t.Errorf("%s: %d, %v after %d attempts; reasons %v, want %v", name, status, err, attempts, reasons, retry.Unsafe)
		}
	}
}
