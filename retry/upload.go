package retry

import (
	"io"
	"net/http"
	"sync"

	"github.com/weirhttp/weir/internal/trip"
)

// upload is a request body that may be closed while a Read is blocked, more
// than once.
type upload struct {
	io.ReadCloser
	mu     sync.Mutex
	closed bool
}

// blockable returns r's body so guarded, or nil if closing it would not free
// a Read: without a body, or behind an io.NopCloser, as http.NewRequest makes
// them from memory.
func blockable(r *http.Request) *upload {
	if r.Body == nil || r.Body == http.NoBody || trip.Unclosable(r.Body) {
		return nil
	}
	return &upload{ReadCloser: r.Body}
}

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
