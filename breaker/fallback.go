package breaker

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/notsent"
	"github.com/weirhttp/weir/internal/trip"
)

// StatusError is what a Fallback gets for a request that was answered, but not
// as its caller needs it: the host's own 5xx, or what FallbackOn names.
type StatusError struct {
	Host       string // canonical
	StatusCode int
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("breaker: %s: answered %d", e.Host, e.StatusCode)
}

// OnFailure is a Config.FallbackOn for every request that fails: that ends in an
// error or in a 5xx.
func OnFailure(resp *http.Response, err error) bool { return !served(resp, err) }

// served reports an answer that is none of a broken host.
func served(resp *http.Response, err error) bool {
	return err == nil && (resp == nil || resp.StatusCode < 500 || resp.StatusCode > 599)
}

// otherwise asks the Fallback to answer instead of what the request came to, if
// that is a refusal, a failure of a host whose circuit is not closed, or one that
// FallbackOn names.
func (d *door) otherwise(r *http.Request, t *trip.Trip, resp *http.Response, err error) (*http.Response, error) {
	host := hosts.Name(t.Entry, r)
	s := d.circuits.settings(host)
	keep := false
	defer func() {
		if !keep && resp != nil && resp.Body != nil { // it is replaced, or the user's function has panicked
			resp.Body.Close()
		}
	}()
	if s.Fallback == nil || !d.wanted(s, host, r, resp, err) || gone(r) {
		keep = true
		return resp, err
	}
	why := err
	if why == nil {
		why = &StatusError{host, resp.StatusCode}
	}
	other, failed := s.Fallback(r, why)
	switch {
	case other == nil && (failed == nil || resp != nil): // an answer is better than an error
		keep = true
		return resp, err
	case other == nil && t.Sent(): // what the fallback sent is not all
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
	d.circuits.fellBack(r)
	return other, nil
}

// wanted reports whether the Fallback is to be asked.
func (d *door) wanted(s *settings, host string, r *http.Request, resp *http.Response, err error) bool {
	if by := notsent.Refused(err); by == notsent.Door || by == notsent.Meter {
		return true
	}
	if !served(resp, err) && d.circuits.troubled(s, host, r) {
		return true
	}
	return s.FallbackOn != nil && s.FallbackOn(resp, err)
}

// troubled reports whether the circuit of r is not closed.
func (c *Circuits) troubled(s *settings, host string, r *http.Request) bool {
	if state, ok := c.held(host); ok {
		return state != Closed
	}
	e := c.home.Load().Acquire(hosts.Key(r), time.Now())
	defer e.Release()
	cir := c.find(e, s, r, false)
	return cir != nil && cir.shut.Load()
}

// gone reports that nobody waits for an answer any more. One whose deadline has
// passed may still have use for what is at hand.
func gone(r *http.Request) bool {
	ctx := r.Context()
	if err := ctx.Err(); err != nil {
		return err != context.DeadlineExceeded
	}
	if d, ok := ctx.Deadline(); ok && !time.Now().Before(d) { // http.Client closes Cancel at its timeout
		return false
	}
	return left(r)
}

// fellBack counts an answer of Fallback's. The trip of r has ended.
func (c *Circuits) fellBack(r *http.Request) {
	e := c.home.Load().Acquire(hosts.Key(r), time.Now())
	defer e.Release()
	host := hosts.Name(e, r)
	c.mu.Lock()
	h, forced := c.forced[host]
	if forced {
		h.fallbacks++
	}
	c.mu.Unlock()
	if forced {
		return
	}
	if cir := c.find(e, c.settings(host), r, true); cir != nil {
		cir.mu.Lock()
		cir.fallbacks++
		cir.mu.Unlock()
	}
}
