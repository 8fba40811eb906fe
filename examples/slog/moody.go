package main

import (
	"net/http"
	"sync/atomic"
)

// moody is a server that is at first well, then wants a second's rest, then is
// well again, and at last hangs up on everybody.
type moody struct{ requests atomic.Int64 }

func (m *moody) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch n := m.requests.Add(1); {
	case n == 2:
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
	case n > 5:
		panic(http.ErrAbortHandler)
	}
}
