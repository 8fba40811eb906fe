package outbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/plain"
)

// Verdict is what becomes of an entry that Drain sent.
type Verdict int

const (
	Default   Verdict = iota // as Transport.Drain says
	Delivered                // done: the entry is removed
	Later                    // it stays first of its queue, whose others wait behind it
	Dead                     // it is set aside, and its queue goes on
)

// Error is why an entry was not delivered. It never shows the entry's path or
// query.
type Error struct {
	ID, Host string
	Status   int   // of the answer; zero: there was none
	Err      error // nil if there was an answer

	RetryAfter time.Duration // the answer asked to be left alone for that long; zero: it did not
}

func (e *Error) Error() string {
	return fmt.Sprintf("outbox: %s: entry %s: %s", e.Host, e.ID, e.why())
}

// why is what is shown of the cause.
func (e *Error) why() string {
	if e.Err == nil {
		return answer(e.Status)
	}
	return plain.Text(e.Err)
}

func answer(status int) string { return fmt.Sprintf("answer %d", status) }

// Unwrap gives the cause: a *breaker.Error if the circuit is open.
func (e *Error) Unwrap() error { return e.Err }

// Timeout reports whether the cause was one.
func (e *Error) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.Err, &t) && t.Timeout()
}

// parcel is an entry on its way.
type parcel struct {
	Entry
	slot
	rec      *record
	requeued time.Time
}

func (p *parcel) failed(status int, err error) *Error {
	return &Error{ID: p.ID, Host: p.Host, Status: status, Err: err}
}

// send makes one try. The Error is nil only for Delivered.
func (t *Transport) send(ctx context.Context, p *parcel) (Verdict, *Error) {
	sending, cancel := context.WithTimeout(context.WithValue(ctx, drainKey{t}, true), t.s.Timeout)
	defer cancel()
	req, err := p.rec.request(sending)
	if err != nil {
		return Dead, p.failed(0, bare(err))
	}
	if t.s.Prepare != nil {
		if err := t.s.Prepare(req); err != nil {
			return Later, p.failed(0, fmt.Errorf("prepare: %w", err))
		}
	}
	resp, err := t.s.Client.Do(req)
	if err != nil && ctx.Err() != nil {
		return Later, p.failed(0, ctx.Err())
	}
	if err != nil {
		err = bare(err)
		return t.verdict(p, nil, err), p.failed(0, err)
	}
	defer discard(resp.Body)
	v := t.verdict(p, resp, nil)
	if v == Delivered {
		return v, nil
	}
	cause := p.failed(resp.StatusCode, nil)
	cause.RetryAfter = asked(resp)
	return v, cause
}

// asked is how long an answer asks to be left alone.
func asked(resp *http.Response) time.Duration {
	return headers.Parse(resp, time.Now()).RetryAfter.Value
}

// expired reports whether an entry is older than MaxAge.
func (t *Transport) expired(s slot, now time.Time) bool {
	return t.s.MaxAge > 0 && now.After(t.expiry(s))
}

// expiry is the last moment at which it is not.
func (t *Transport) expiry(s slot) time.Time { return time.Unix(0, s.kept).Add(t.s.MaxAge) }

func (t *Transport) verdict(p *parcel, resp *http.Response, err error) Verdict {
	if resp != nil {
		p.Status = resp.StatusCode
		if later(p.Status) && ownFault(p.Status) {
			p.Tries++
		}
	}
	if t.s.Verdict != nil {
		switch v := t.s.Verdict(p.Entry, resp, err); v {
		case Delivered, Later, Dead:
			return v
		}
	}
	switch {
	case err != nil && hopeless(err):
		return Dead
	case err != nil:
		return Later
	case p.Status < 300 || p.Status == http.StatusSeeOther:
		return Delivered
	case !later(p.Status), t.s.MaxTries > 0 && p.Tries >= t.s.MaxTries:
		return Dead
	}
	return Later
}

// later reports the answers after which the same request may yet succeed.
func later(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusConflict,
		http.StatusMisdirectedRequest, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// ownFault reports those of them that may be the entry's doing, rather than
// that of the server's load or of the credentials.
func ownFault(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusProxyAuthRequired, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return false
	}
	return true
}

// repeats lets the client follow a redirect only if it repeats the request at the same
// host and is protected as well. Any other redirect is an answer like the rest: a good
// answer of what it leads to says nothing about the entry, and the credentials that
// Prepare set are not meant for another host.
func repeats(next *http.Request, via []*http.Request) error {
	last := via[len(via)-1]
	if next.Method != last.Method || hosts.Key(next) != hosts.Key(last) ||
		next.URL.Scheme != last.URL.Scheme && next.URL.Scheme != "https" || len(via) >= 10 {
		return http.ErrUseLastResponse
	}
	return nil
}

// bare removes the URL, and with it the query, from an error of http.Client or
// url.Parse, also of a client below. It stops at the first error of another type,
// because callers look for that one. plain.Bare, which is for texts, goes on.
func bare(err error) error {
	for {
		u, ok := err.(*url.Error)
		if !ok || u.Err == nil {
			return err
		}
		err = u.Err
	}
}

// discard reads a little of what is left, to keep the connection, and closes.
func discard(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 64<<10)
	body.Close()
}
