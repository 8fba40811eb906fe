package outbox

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/notsent"
)

// Transport is an http.RoundTripper that keeps requests its base could not
// deliver. Make one with New and end it with Close; it is safe for concurrent
// use.
type Transport struct {
	base http.RoundTripper
	s    settings
	file *file
	wake chan struct{} // holds one

	drain   chan struct{} // held by the Drain that runs
	closing context.Context
	close   context.CancelFunc

	mu    sync.Mutex
	stats Stats
}

// New opens or creates the outbox at c.Path around base; nil is
// http.DefaultTransport. It reads the whole file once and fails with ErrCorrupt
// in the chain if an entry's checksum is wrong or a page of the database makes
// no sense, and with ErrLocked if the file is open elsewhere. Pages have no
// checksums: a few changed bits in the table of one can hide entries.
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
	t := &Transport{base: base, s: s, wake: make(chan struct{}, 1), drain: make(chan struct{}, 1)}
	if t.file, err = openFile(s.Path); err != nil {
		return nil, err
	}
	if err := t.count(); err != nil {
		t.file.close()
		return nil, err
	}
	t.closing, t.close = context.WithCancel(context.Background())
	return t, nil
}

// RoundTrip sends the request through the base, with an idempotency key if a
// pattern names it. If it then fails, it is kept and the answer is 202 with its
// id; if it cannot be kept, the caller gets what the base returned.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.keeps(req) {
		return t.base.RoundTrip(req)
	}
	sent, body := t.outgoing(req)
	if body != nil {
		defer body.release()
	}
	resp, err := t.base.RoundTrip(sent)
	if !t.failed(req, resp, err) {
		return resp, err
	}
	id, ok := t.keep(sent, body)
	if !ok {
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

// keeps reports whether req is to be kept if it fails.
func (t *Transport) keeps(req *http.Request) bool {
	if !repeatable(req) || bodyLength(req) > t.s.MaxBody {
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
	var refusal notsent.Refusal
	if !errors.As(err, &refusal) {
		return false
	}
	t, ok := refusal.(interface{ Temporary() bool })
	return ok && !t.Temporary()
}

// late reports that ctx has a deadline and that it has passed.
func late(ctx context.Context) bool {
	d, ok := ctx.Deadline()
	return ok && !time.Now().Before(d)
}

// keep writes the request to the file and returns its id.
func (t *Transport) keep(r *http.Request, k *keeper) (string, bool) {
	if t.full() { // before any time is spent on the body
		return "", t.missed(&t.stats.Full)
	}
	body, ok := t.body(r, k)
	if !ok {
		return "", t.missed(&t.stats.Unfit)
	}
	rec := t.s.newRecord(r, body, time.Now())
	value, err := rec.encode()
	if err != nil || !rec.same(r) {
		return "", t.missed(&t.stats.Unfit)
	}
	if !t.reserve(int64(len(value))) {
		return "", t.missed(&t.stats.Full)
	}
	var id uint64
	err = t.file.write(func(tx *bolt.Tx) (err error) {
		b := tx.Bucket([]byte("pending"))
		if id, err = b.NextSequence(); err != nil {
			return err
		}
		return b.Put(key(id), value)
	})
	if err != nil {
		t.unreserve(int64(len(value)))
		return "", t.missed(&t.stats.Errors)
	}
	t.mu.Lock()
	t.stats.Kept++
	t.mu.Unlock()
	return formatID(id), true
}

// body returns all of r's body, which is at most MaxBody long.
func (t *Transport) body(r *http.Request, k *keeper) ([]byte, bool) {
	ctx := r.Context()
	if late(ctx) {
		ctx = context.WithoutCancel(ctx) // restWait still holds
	}
	switch {
	case k != nil:
		return k.all(ctx, bodyLength(r))
	case bodyLength(r) == 0:
		return nil, true
	}
	return again(ctx, r, t.s.MaxBody)
}

// CloseIdleConnections forwards to the base.
func (t *Transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Close ends a Drain and a Run in progress and closes the file; the base stays
// open. Requests that fail from then on are not kept. It must not be called by
// a hook; calling it again does nothing.
func (t *Transport) Close() error {
	t.close()
	t.drain <- struct{}{} // the Drain that runs, if any, has returned
	defer func() { <-t.drain }()
	return t.file.named(t.file.close())
}
