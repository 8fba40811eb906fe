package main

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

// api is a server with a quota: at most limit requests in any window. It
// counts what comes.
type api struct {
	server *httptest.Server
	limit  int
	per    time.Duration

	mu      sync.Mutex
	granted []time.Time // within the last window
	came    []time.Time // in this phase, and the window before it
	phase   phase
}

// phase is what the API saw in one phase.
type phase struct {
	requests, refused, most int
}

func newAPI(limit int, per time.Duration) *api {
	a := &api{limit: limit, per: per}
	a.server = httptest.NewServer(a)
	return a
}

func (a *api) url() string { return a.server.URL }

func (a *api) close() {
	a.server.CloseClientConnections()
	a.server.Close()
}

func (a *api) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	if !a.take(time.Now()) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "over quota", http.StatusTooManyRequests)
	}
}

func (a *api) take(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.came = append(since(a.came, now.Add(-a.per)), now)
	a.phase.requests++
	a.phase.most = max(a.phase.most, len(a.came))
	a.granted = since(a.granted, now.Add(-a.per))
	if len(a.granted) >= a.limit {
		a.phase.refused++
		return false
	}
	a.granted = append(a.granted, now)
	return true
}

// next ends a phase.
func (a *api) next() phase {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.phase
	a.phase = phase{}
	return p
}

// since drops what is not after t.
func since(ts []time.Time, t time.Time) []time.Time {
	for len(ts) > 0 && !ts[0].After(t) {
		ts = ts[1:]
	}
	return ts
}
