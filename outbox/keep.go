package outbox

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/weirhttp/weir/internal/hosts"
)

var (
	// ErrFull is in the chain of the error of a request that was not kept,
	// and not sent, because MaxEntries or MaxBytes is reached.
	ErrFull = errors.New("full")

	// ErrUnfit is in the chain of the error of a request that was not kept,
	// and not sent, because it could not be sent later as it is: its body is
	// longer than MaxBody or cannot be read to its end, or it has trailers, an
	// Upgrade header, or a URL or header that no transport would send.
	ErrUnfit = errors.New("request cannot be kept")
)

// Enqueue keeps the request, whether a pattern names it or not, and returns its
// id when it is on the disk: from then on it is sent, by Drain or Run, until it
// is delivered or set aside, and nothing of it has been sent before. The body is
// read to its end, for as long as the request's context lasts, and closed.
// Without an id the request is not kept and the error says why: ErrFull, ErrUnfit,
// ErrClosed, what is wrong with the file, or what ended the context.
//
// Calls that come together share one sync of the disk.
func (t *Transport) Enqueue(req *http.Request) (id string, err error) {
	if req.URL == nil || !repeatable(req) {
		if req.Body != nil {
			req.Body.Close()
		}
		return "", t.missed(&t.stats.Unfit, unfit(req, errors.New("it has trailers, an Upgrade header, the method CONNECT or an invalid one, or a URL that is not of http or https")))
	}
	sent, body := t.outgoing(req)
	defer shut(req, body)
	return t.keep(sent, body, nil)
}

// failure is what came of a request before it was kept.
type failure struct {
	wakes uint64 // Transport.wakes before it was sent
	cause *Error // without an ID: it has none yet
}

// keep writes r, with a key and its body in k if it can be read only once, to
// the file and returns its id. f is nil if it was not sent before.
func (t *Transport) keep(r *http.Request, k *keeper, f *failure) (string, error) {
	if err := t.full(0); err != nil { // before any time is spent on the body
		return "", t.missed(&t.stats.Full, err)
	}
	body, err := t.body(r, k, f != nil)
	if err != nil {
		return "", t.missed(&t.stats.Unfit, unfit(r, err))
	}
	rec := t.s.newRecord(r, body, time.Now())
	value, err := rec.encode()
	if err != nil || !rec.same(r) {
		return "", t.missed(&t.stats.Unfit, unfit(r, errors.New("its method, URL or header is not valid")))
	}
	if err := t.reserve(int64(len(value))); err != nil {
		return "", t.missed(&t.stats.Full, err)
	}
	return t.write(rec, value, f)
}

// write is keep's end: room for value is reserved.
func (t *Transport) write(rec *record, value []byte, f *failure) (string, error) {
	c := change{queue: rec.queue, kept: rec.Kept.UnixNano(), size: int64(len(value)), to: pending}
	err := t.file.grow(func(tx *bolt.Tx) (err error) {
		b := tx.Bucket([]byte("pending"))
		if c.id, err = b.NextSequence(); err != nil {
			return err
		}
		return put(b, c.id, value)
	}, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.unreserve(c.size)
		t.stats.Kept++
		if q := t.apply(c); f != nil && len(q.pending) == 1 {
			f.cause.ID = formatID(c.id)
			q.stuck(f.wakes, f.cause)
			if f.cause.Err != nil {
				q.last = silent
			}
		}
		t.signal()
	})
	if err != nil {
		t.mu.Lock()
		t.unreserve(c.size)
		t.mu.Unlock()
		return "", t.missed(&t.stats.Errors, err)
	}
	return formatID(c.id), nil
}

// body returns all of r's body, which is at most MaxBody long. After a failure
// the rest is waited for no longer than restWait, also if the deadline has
// passed.
func (t *Transport) body(r *http.Request, k *keeper, failed bool) ([]byte, error) {
	ctx := r.Context()
	if failed {
		if late(ctx) {
			ctx = context.WithoutCancel(ctx)
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, restWait)
		defer cancel()
	} else if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	switch length := bodyLength(r); {
	case length > t.s.MaxBody:
		return nil, tooLong(t.s.MaxBody)
	case k != nil:
		return k.all(ctx, length)
	case length == 0:
		return nil, nil
	}
	return again(ctx, r, t.s.MaxBody)
}

func unfit(r *http.Request, why error) error {
	if errors.Is(why, context.Canceled) || errors.Is(why, context.DeadlineExceeded) {
		return fmt.Errorf("outbox: %s: not kept: %w", hosts.Key(r), why)
	}
	return fmt.Errorf("outbox: %s: %w: %w", hosts.Key(r), ErrUnfit, why)
}

// full is ErrFull if there is no room for another n bytes.
func (t *Transport) full(n int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.room(n)
}

func (t *Transport) room(n int64) error {
	entries, bytes := t.stats.Pending+t.stats.Dead+t.reserved.Pending, t.stats.Bytes+t.reserved.Bytes
	switch {
	case entries >= t.s.MaxEntries:
		return fmt.Errorf("outbox: %s: %w: %d entries", t.s.Path, ErrFull, entries)
	case bytes+n > t.s.MaxBytes || bytes == t.s.MaxBytes:
		return fmt.Errorf("outbox: %s: %w: it holds %d bytes, and the request takes %d more", t.s.Path, ErrFull, bytes, n)
	}
	return nil
}

// reserve takes room for one more entry of n bytes.
func (t *Transport) reserve(n int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.room(n); err != nil {
		return err
	}
	t.reserved.Pending++
	t.reserved.Bytes += n
	return nil
}

// unreserve gives it back; t.mu is held.
func (t *Transport) unreserve(n int64) {
	t.reserved.Pending--
	t.reserved.Bytes -= n
}

func (t *Transport) missed(counter *uint64, err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	*counter++
	return err
}
