package outbox

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/throttle"
)

// Transport is an http.RoundTripper that keeps requests, to send them through
// its base until they are delivered. Make one with New and end it with Close;
// it is safe for concurrent use.
type Transport struct {
	base    http.RoundTripper
	s       settings
	file    *file
	waiting atomic.Int64 // len(order): zero spares requests the lock

	closing context.Context
	close   context.CancelFunc
	running sync.WaitGroup // rounds; Add under mu, unless closed

	mu       sync.Mutex
	stats    Stats
	reserved Stats // Pending and Bytes of what is being written
	queues   map[string]*queue
	idle     int      // of queues: with nothing in them
	order    []*queue // with something pending, in the order of their turns
	turn     int      // in order: whose it is
	flights  []*flight
	flying   [tries]int // flights by what came of their queue's try before
	settling int        // entries answered for good, of which the file does not say so yet
	wakes    uint64     // calls of Wake
	rounds   map[*round]struct{}
	closed   bool
}

// New opens or creates the outbox at c.Path around base; nil is
// http.DefaultTransport. It reads the whole file once and fails with ErrCorrupt
// in the chain if an entry's checksum is wrong or a page of the database makes
// no sense, and with ErrLocked if the file is open elsewhere. Pages have no
// checksums: a few changed bits in the table of one can hide entries. A file
// that is mostly free pages is written anew, small.
func New(base http.RoundTripper, c Config) (*Transport, error) {
	s, err := c.settle()
	if err != nil {
		return nil, err
	}
	if base == nil {
		base = http.DefaultTransport
	}
	if s.Client == nil {
		s.Client = &http.Client{Transport: base, CheckRedirect: repeats}
	}
	t := &Transport{base: base, s: s, queues: make(map[string]*queue), rounds: make(map[*round]struct{})}
	if t.file, err = openFile(s.Path); err != nil {
		return nil, err
	}
	if err := t.load(); err != nil {
		t.file.close()
		return nil, err
	}
	if err := t.file.shrink(); err != nil {
		t.file.close()
		return nil, err
	}
	t.closing, t.close = context.WithCancel(context.Background())
	return t, nil
}

// RoundTrip keeps requests that a pattern names, and answers them with 202 and their
// id. With Config.KeepFirst it keeps each of them. Otherwise it keeps those that the
// base could not deliver, and those whose queue holds older ones. All other requests
// get what the base returns. If a request cannot be kept, then with KeepFirst, or if
// its queue holds older ones, it is not sent and the caller gets an error. Otherwise
// the caller gets what the base returned.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.named(req) {
		return t.base.RoundTrip(req)
	}
	if t.s.KeepFirst {
		id, err := t.Enqueue(req)
		if err != nil {
			return nil, err
		}
		return accepted(req, id), nil
	}
	if !repeatable(req) || bodyLength(req) > t.s.MaxBody {
		return t.base.RoundTrip(req)
	}
	sent, body := t.outgoing(req)
	if body != nil {
		defer body.release()
	}
	if t.behind(sent) {
		id, err := t.keep(sent, body, nil)
		if err == nil {
			shut(req, body)
			return accepted(req, id), nil
		}
		if !errors.Is(err, ErrUnfit) && !errors.Is(err, ErrClosed) {
			shut(req, body)
			return nil, err
		}
	}
	return t.live(req, sent, body)
}

// live sends the request, and keeps it if that fails.
func (t *Transport) live(req, sent *http.Request, body *keeper) (*http.Response, error) {
	wakes := t.woken()
	resp, err := t.base.RoundTrip(sent)
	if !t.failed(req, resp, err) {
		return resp, err
	}
	f := &failure{wakes: wakes, cause: &Error{Host: hosts.Key(sent), Err: err}}
	if err == nil {
		f.cause.Status, f.cause.RetryAfter = resp.StatusCode, asked(resp)
	}
	id, missed := t.keep(sent, body, f)
	if missed != nil {
		return resp, err
	}
	if body != nil {
		body.shut()
	}
	if resp != nil {
		resp.Body.Close()
	}
	return accepted(req, id), nil
}

// drainKey marks what Drain sends, so that it is not kept again.
type drainKey struct{ t *Transport }

// named reports whether a pattern names req.
func (t *Transport) named(req *http.Request) bool {
	if req.URL == nil {
		return false
	}
	host := hosts.Key(req)
	for i := range t.s.patterns {
		p := &t.s.patterns[i]
		if (p.Method != "" || !safe(req.Method)) && p.Match(host, req) {
			return req.Context().Value(drainKey{t}) == nil
		}
	}
	return false
}

// behind reports whether entries wait in the queue of r.
func (t *Transport) behind(r *http.Request) bool {
	if t.waiting.Load() == 0 {
		return false
	}
	name := t.s.queueOf(r)
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.queues[name]
	return q != nil && len(q.pending) > 0 && !t.closed
}

// repeatable reports whether what the file keeps of req would be all of it:
// trailers and what follows an upgrade come later.
func repeatable(req *http.Request) bool {
	u := req.URL
	return u != nil && req.Header != nil && u.Host != "" && u.Opaque == "" && (u.Scheme == "http" || u.Scheme == "https") &&
		len(req.Trailer) == 0 && req.Header.Get("Upgrade") == "" &&
		(req.Method == "" || token(req.Method)) && req.Method != http.MethodConnect
}

// safe reports the methods that a pattern must name to have them kept.
func safe(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// outgoing is req as it is sent: with a key and, if its body cannot be read
// twice, with a body that remembers. req itself is not changed.
func (t *Transport) outgoing(req *http.Request) (*http.Request, *keeper) {
	sent := req
	if _, has := req.Header[t.s.KeyHeader]; !has {
		sent = req.WithContext(req.Context())
		sent.Header = req.Header.Clone()
		sent.Header.Set(t.s.KeyHeader, rand.Text())
	}
	if bodyLength(req) == 0 || req.GetBody != nil {
		return sent, nil
	}
	if sent == req {
		sent = req.WithContext(req.Context())
	}
	body := newKeeper(req.Body, t.s.MaxBody)
	sent.Body = body
	return sent, body
}

// failed reports whether the base's answer is one to keep the request for. A
// caller who gave up no longer wants it sent; one whose deadline passed does.
func (t *Transport) failed(req *http.Request, resp *http.Response, err error) bool {
	if err == nil {
		return slices.Contains(t.s.FailedStatus, resp.StatusCode)
	}
	if hopeless(err) {
		return false
	}
	ctx := req.Context()
	cancelled := ctx.Err() != nil
	select {
	//lint:ignore SA1019 http.Client.Timeout closes it, at the deadline, and old callers do
	case <-req.Cancel:
		cancelled = true
	default:
	}
	return !cancelled || late(ctx)
}

// hopeless reports a refusal by weir that no later try would escape: a cost
// above what its budget can ever hold.
func hopeless(err error) bool {
	var refusal *throttle.Error
	return errors.As(err, &refusal) && refusal.Reason == throttle.NeverFits
}

// late reports that ctx has a deadline and that it has passed.
func late(ctx context.Context) bool {
	d, ok := ctx.Deadline()
	return ok && !time.Now().Before(d)
}

// CloseIdleConnections forwards to the base.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Close ends each Drain and Run in progress and closes the file; the base stays
// open. From then on, requests that fail are not kept, and with Config.KeepFirst all
// requests that a pattern names fail. Close must not be called by a hook. Calling it
// again does nothing.
func (t *Transport) Close() error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.close()
	t.running.Wait()
	return t.file.named(t.file.close())
}
