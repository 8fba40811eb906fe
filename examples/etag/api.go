package main

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// api counts as GitHub's does: what has not changed is free.
type api struct {
	mu      sync.Mutex
	version map[string]int // by path
	counted int
	spared  int
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	tag := fmt.Sprintf(`"%d"`, a.version[r.URL.Path])
	w.Header().Set("Etag", tag)
	fresh := r.Header.Get("If-None-Match") == tag
	if !fresh {
		a.counted++
	}
	w.Header().Set("X-Ratelimit-Limit", strconv.Itoa(quota))
	w.Header().Set("X-Ratelimit-Remaining", strconv.Itoa(max(0, quota-a.counted)))
	w.Header().Set("X-Ratelimit-Reset", strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10))
	switch {
	case fresh:
		a.spared++
		w.WriteHeader(http.StatusNotModified)
	case a.counted > quota:
		w.WriteHeader(http.StatusTooManyRequests)
	default:
		fmt.Fprint(w, a.text(r.URL.Path))
	}
}

func (a *api) text(path string) string {
	return fmt.Sprintf("%s, version %d", path, a.version[path])
}

// says is the answer for a path.
func (a *api) says(path string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text(path)
}

// change has a path answer something else from now on.
func (a *api) change(path string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version[path]++
}
