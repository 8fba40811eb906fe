package outbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// restWait bounds how long a request that failed waits for the part of its
// body that its producer has not delivered yet.
const restWait = 5 * time.Second

var (
	errSealed = errors.New("outbox: request body read after the request was kept")
	errLength = errors.New("its body is not as long as its ContentLength")
)

// keeper is the body of a request that cannot be read twice. It hands every
// byte on as it comes and remembers the first limit of them, so that the whole
// can be kept if the request fails. When the base closes the body, the source is
// closed only once it is known that the rest is not wanted. It is closed at once if
// a Read of it is in progress, because only that ends the Read.
type keeper struct {
	limit int64
	turn  chan struct{} // held by who reads the source or touches what follows
	buf   []byte        // the first bytes of the source; nil once over
	sent  int           // of buf: read by the base
	over  bool          // there are more than limit
	end   error         // what the source ended with

	mu       sync.Mutex
	src      io.ReadCloser
	reading  bool // the base is in a Read of the source
	closed   bool // the base has closed the body
	released bool // nothing will be kept
	gone     bool // the source is closed
}

func newKeeper(src io.ReadCloser, limit int64) *keeper {
	return &keeper{src: src, limit: limit, turn: make(chan struct{}, 1)}
}

// Read is called by the base, on whatever goroutine, perhaps after RoundTrip.
func (k *keeper) Read(p []byte) (int, error) {
	k.turn <- struct{}{}
	defer func() { <-k.turn }()
	wanted, err := k.begin()
	if err != nil {
		return 0, err
	}
	defer k.finish()
	if k.sent < len(k.buf) { // read ahead by all
		n := copy(p, k.buf[k.sent:])
		k.sent += n
		return n, nil
	}
	if k.end != nil {
		return 0, k.end
	}
	n, err := k.src.Read(p)
	k.end = err
	k.over = k.over || !wanted || int64(len(k.buf)+n) > k.limit
	if k.over {
		k.buf, k.sent = nil, 0
	} else {
		k.buf = append(k.buf, p[:n]...)
		k.sent = len(k.buf)
	}
	return n, err
}

// begin reports whether what is read may still be wanted for the file.
func (k *keeper) begin() (wanted bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.closed:
		return false, http.ErrBodyReadAfterClose
	case k.gone:
		return false, errSealed
	}
	k.reading = true
	return !k.released, nil
}

func (k *keeper) finish() {
	k.mu.Lock()
	k.reading = false
	k.mu.Unlock()
}

// Close is called by the base.
func (k *keeper) Close() error {
	k.mu.Lock()
	k.closed = true
	now := (k.released || k.reading) && !k.gone
	k.gone = k.gone || now
	k.mu.Unlock()
	if now {
		return k.src.Close()
	}
	return nil
}

// release says that the body will not be wanted: from here on it is the base's.
func (k *keeper) release() {
	k.mu.Lock()
	k.released = true
	now := k.closed && !k.gone
	k.gone = k.gone || now
	k.mu.Unlock()
	if now {
		k.src.Close()
	}
}

// shut closes the source, whatever the base still wants of it.
func (k *keeper) shut() {
	k.mu.Lock()
	now := !k.gone
	k.gone = true
	k.mu.Unlock()
	if now {
		k.src.Close()
	}
}

// all reads the source to its end, ahead of the base, which can go on reading
// where it was. It fails if there are more than limit bytes, if the source
// fails, or if it takes longer than ctx allows: the source is then closed, since
// nothing else ends a Read.
func (k *keeper) all(ctx context.Context, length int64) ([]byte, error) {
	select {
	case k.turn <- struct{}{}:
	default:
		select {
		case k.turn <- struct{}{}:
		case <-ctx.Done():
			k.shut()
			return nil, ctx.Err()
		}
	}
	defer func() { <-k.turn }()
	if !k.whole(length) && ctx.Err() == nil {
		defer context.AfterFunc(ctx, k.shut)()
		p := make([]byte, min(k.limit+1, 32<<10))
		for !k.over && k.end == nil && !k.isGone() {
			n, err := k.src.Read(p)
			k.end = err
			k.buf = append(k.buf, p[:n]...)
			k.over = int64(len(k.buf)) > k.limit
		}
	}
	if k.whole(length) {
		return k.buf, nil
	}
	return nil, k.lacks(ctx)
}

// lacks is why buf is not the body; the caller has the turn.
func (k *keeper) lacks(ctx context.Context) error {
	switch {
	case k.over:
		return tooLong(k.limit)
	case ctx.Err() != nil:
		return ctx.Err()
	case k.end != nil && k.end != io.EOF:
		return k.end
	}
	return errLength
}

func (k *keeper) isGone() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.gone
}

// whole reports that buf is the body; the caller has the turn. Its length is
// -1 if the request does not say.
func (k *keeper) whole(length int64) bool {
	if length < 0 {
		return !k.over && k.end == io.EOF
	}
	return !k.over && int64(len(k.buf)) == length && (k.end == nil || k.end == io.EOF)
}

// again reads the copy of a body that its request can give at any time.
func again(ctx context.Context, r *http.Request, limit int64) ([]byte, error) {
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	closing := sync.OnceFunc(func() { body.Close() })
	defer closing()
	defer context.AfterFunc(ctx, closing)()
	b, err := io.ReadAll(io.LimitReader(body, limit+1))
	length := bodyLength(r)
	switch {
	case err != nil:
		return nil, err
	case int64(len(b)) > limit:
		return nil, tooLong(limit)
	case length >= 0 && int64(len(b)) != length:
		return nil, errLength
	}
	return b, nil
}

func tooLong(limit int64) error { return fmt.Errorf("its body is longer than %d bytes", limit) }

// shut closes what is left of the body of req, which was kept or turned down.
func shut(req *http.Request, body *keeper) {
	switch {
	case body != nil:
		body.shut()
	case req.Body != nil:
		req.Body.Close()
	}
}

// bodyLength is the length of r's body as r says it, or -1.
func bodyLength(r *http.Request) int64 {
	if r.Body == nil || r.Body == http.NoBody {
		return 0
	}
	if r.ContentLength <= 0 { // zero, with a body, is how a client says that it does not know
		return -1
	}
	return r.ContentLength
}
