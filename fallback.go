package weir

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/notsent"
)

// fallback calls Config.Fallback and counts what it answered.
type fallback struct {
	answer   func(*http.Request, error) (*http.Response, error)
	on       func(*http.Response) bool
	answered atomic.Int64
}

func newFallback(c Config) *fallback {
	if c.Fallback == nil {
		return nil
	}
	return &fallback{answer: c.Fallback, on: c.FallbackOn}
}

// instead returns what the caller of r gets. The layers returned resp or err for it.
func (f *fallback) instead(r *http.Request, resp *http.Response, err error) (*http.Response, error) {
	keep := false
	defer func() {
		if !keep && resp != nil { // it is replaced, or the user's function has panicked
			resp.Body.Close()
		}
	}()
	if err == nil && (f.on == nil || !f.on(resp)) || cancelled(r) {
		keep = true
		return resp, err
	}
	why := err
	if why == nil {
		why = &breaker.StatusError{Host: hosts.Key(r), StatusCode: resp.StatusCode}
	}
	other, failed := f.answer(r, why)
	switch {
	case other == nil && (failed == nil || resp != nil): // an answer is better than an error
		keep = true
		return resp, err
	case other == nil && !errors.Is(err, ErrNotSent): // something may have been sent, even if the fallback sent nothing
		return nil, notsent.Deny(failed)
	case other == nil:
		return nil, failed
	}
	keep = other == resp
	if other.Body == nil {
		other.Body = http.NoBody
	}
	if other.Request == nil {
		other.Request = r
	}
	f.answered.Add(1)
	return other, nil
}

// cancelled reports whether the caller has cancelled r. A caller whose deadline has
// passed has not: it may still use an answer that is at hand.
func cancelled(r *http.Request) bool {
	ctx := r.Context()
	if err := ctx.Err(); err != nil {
		return !errors.Is(err, context.DeadlineExceeded)
	}
	if d, ok := ctx.Deadline(); ok && !time.Now().Before(d) { // http.Client closes Cancel at its timeout
		return false
	}
	select {
	case <-r.Cancel: //lint:ignore SA1019 old callers still set it
		return true
	default:
		return false
	}
}
