package retry

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/internal/trip"
)

// upload is a request body that may be closed while a Read is blocked, more
// than once, and knows when it was last read.
type upload struct {
	io.ReadCloser
	*reads
	unwatch func() bool // ends the watch on the attempt's context; nil: there is none
	mu      sync.Mutex
	closed  bool
}

// reads is how far the body of an attempt has been read, and that of the copies
// by which net/http sends it again.
type reads struct {
	clocks *clocks
	at     atomic.Int64 // when a Read last began or ended; nanoseconds
	ended  atomic.Bool
}

// littleBody is the longest body in memory that is not watched. If it is not wrapped,
// net/http sends it together with the headers. At 2 kB/s it is sent within an
// AttemptTimeout of 30 s.
const littleBody = 64 << 10

// uploadOf returns r's body as an upload, or nil if it need not be guarded. That is
// so if closing it would not free a Read, as of the bodies in memory that
// http.NewRequest makes, and if it is short or nobody asks when it was read.
func uploadOf(r *http.Request, p *clocks, timed bool) *upload {
	switch {
	case r.Body == nil, r.Body == http.NoBody:
		return nil
	case trip.Unclosable(r.Body):
		if !timed || trip.Ready(r.Body) && 0 < r.ContentLength && r.ContentLength <= littleBody {
			return nil
		}
	}
	u := &upload{ReadCloser: r.Body, reads: &reads{clocks: p}}
	u.note()
	return u
}

// again is the GetBody of a request whose body is u.
func (u *upload) again(getBody func() (io.ReadCloser, error)) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		b, err := getBody()
		if err != nil || b == nil || b == http.NoBody {
			return b, err
		}
		u.ended.Store(false)
		return &upload{ReadCloser: b, reads: u.reads}, nil
	}
}

func (u *upload) Read(b []byte) (int, error) {
	u.note()
	n, err := u.ReadCloser.Read(b)
	u.note()
	if err != nil {
		u.ended.Store(true)
	}
	return n, err
}

// note notes that the body is being read. An upload that is blocked, by its
// source or by what it is written to, does not come here.
func (r *reads) note() { r.at.Store(int64(r.clocks.now())) }

// last is when the body was read last.
func (r *reads) last() time.Duration { return time.Duration(r.at.Load()) }

func (u *upload) Close() error {
	u.mu.Lock()
	was := u.closed
	u.closed = true
	u.mu.Unlock()
	if was {
		return nil
	}
	return u.ReadCloser.Close()
}

func (u *upload) close() { u.Close() }

func (u *upload) done() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.closed
}
