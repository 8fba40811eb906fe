package main

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// world plays seven APIs.
type world struct {
	start time.Time

	mu   sync.Mutex
	used map[string]int // requests of an API, by window
}

func newWorld() *world { return &world{start: time.Now(), used: make(map[string]int)} }

func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	age := time.Since(w.start)
	time.Sleep(40 * time.Millisecond)
	switch r.Host {
	case "maps.example", "cdn.example": // say nothing, allow everything
	case "tickets.example": // states its quota: 300 a minute
		w.quota(rw, age)
	case "search.example": // says nothing but no: 8 a second
		if w.count("search", age, time.Second) > 8 {
			rw.WriteHeader(http.StatusTooManyRequests)
		}
	case "payments.example": // wants rest for 15 s, once in 45
		if phase := age % (45 * time.Second); phase > 30*time.Second {
			rw.Header().Set("Retry-After", fmt.Sprint(int((45*time.Second-phase)/time.Second)+1))
			rw.WriteHeader(http.StatusTooManyRequests)
		}
	case "mail.example": // hangs up on everybody for 25 s, once in 60
		if age%time.Minute > 35*time.Second {
			panic(http.ErrAbortHandler)
		}
	case "files.example": // is slow
		time.Sleep(2 * time.Second)
	default:
		rw.WriteHeader(http.StatusNotFound)
	}
}

// quota states and enforces a quota as the draft "RateLimit header fields for
// HTTP" has it.
func (w *world) quota(rw http.ResponseWriter, age time.Duration) {
	const quota = 300
	left := quota - w.count("tickets", age, time.Minute)
	reset := int((time.Minute-age%time.Minute)/time.Second) + 1
	rw.Header().Set("RateLimit-Policy", fmt.Sprintf(`"search";q=%d;w=60`, quota))
	rw.Header().Set("RateLimit", fmt.Sprintf(`"search";r=%d;t=%d`, max(0, left), reset))
	if left < 0 {
		rw.Header().Set("Retry-After", fmt.Sprint(reset))
		rw.WriteHeader(http.StatusTooManyRequests)
	}
}

// count counts a request of an API in its window, from 1 on.
func (w *world) count(api string, age, window time.Duration) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := fmt.Sprint(api, " ", age/window)
	w.used[key]++
	if len(w.used) > 100 {
		w.used = map[string]int{key: w.used[key]}
	}
	return w.used[key]
}
