package breaker

import (
	"io"
	"net/http"
	"sync/atomic"

	"github.com/weirhttp/weir/internal/trip"
)

// watched is a copy of a request whose body notes whether reading it failed, or
// was blocked when the attempt ended: that is the caller's failure and not the
// host's. One allocation holds both.
type watched struct {
	r       http.Request
	body    io.ReadCloser
	begin   atomic.Bool
	closed  atomic.Bool
	bad     atomic.Bool
	reading atomic.Bool
}

// watch returns r, or a copy of it whose body is watched, if it has one that
// can block or fail.
func watch(r *http.Request) (*http.Request, *watched) {
	if trip.Ready(r.Body) {
		return r, nil
	}
	w := &watched{r: *r.WithContext(r.Context()), body: r.Body}
	w.r.Body = w
	return &w.r, w
}

func (w *watched) Read(p []byte) (int, error) {
	w.begin.Store(true)
	w.reading.Store(!w.closed.Load())
	n, err := w.body.Read(p)
	if w.closed.Load() { // whoever closes it may make a Read fail, which was blocked until then
		return n, err
	}
	w.reading.Store(false)
	if err != nil && err != io.EOF {
		w.bad.Store(true)
	}
	return n, err
}

func (w *watched) Close() error {
	w.closed.Store(true)
	return w.body.Close()
}

// begun reports whether anybody has begun to read the body. It may be called on
// nil.
func (w *watched) begun() bool { return w != nil && w.begin.Load() }

// failed reports whether the body could not be read. It may be called on nil.
func (w *watched) failed() bool { return w != nil && w.bad.Load() }

// blocked reports whether the body was being read when the attempt ended. If
// that was for lack of time, the host has not had the whole request. It may be
// called on nil.
func (w *watched) blocked() bool { return w != nil && w.reading.Load() }
