package main

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// The API's quota: 20 requests in each second. Its clients are not told in
// advance; they can read it in the headers of every answer.
const (
	quota  = 20
	window = time.Second
	work   = 20 * time.Millisecond // what one good answer takes
)

// arrival is one request as the API saw it.
type arrival struct {
	at      time.Duration // since the first request
	refused bool
}

// api is a small API with a quota. It states the quota as the IETF draft
// "RateLimit header fields for HTTP" (draft-ietf-httpapi-ratelimit-headers)
// has it, and refuses with 429 and Retry-After, in whole seconds as most do.
// Its windows follow one another from the first request on.
type api struct {
	mu       sync.Mutex
	first    time.Time
	arrivals []arrival
	window   int64 // number of the current window
	used     int   // requests let through in it
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ok, remaining, reset := a.admit(time.Now())
	seconds := int64((reset + time.Second - 1) / time.Second)
	w.Header().Set("RateLimit-Policy", fmt.Sprintf(`"default";q=%d;w=%d`, quota, window/time.Second))
	w.Header().Set("RateLimit", fmt.Sprintf(`"default";r=%d;t=%d`, remaining, seconds))
	if !ok {
		w.Header().Set("Retry-After", strconv.FormatInt(seconds, 10))
		http.Error(w, "too many requests", http.StatusTooManyRequests)
		return
	}
	time.Sleep(work)
	fmt.Fprintln(w, "here you are")
}

// admit counts one request and says whether it stays within the quota, how
// many more would, and in how long the next window begins.
func (a *api) admit(now time.Time) (ok bool, remaining int, reset time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.first.IsZero() {
		a.first = now
	}
	at := now.Sub(a.first)
	if n := int64(at / window); n != a.window {
		a.window, a.used = n, 0
	}
	ok = a.used < quota
	if ok {
		a.used++
	}
	a.arrivals = append(a.arrivals, arrival{at: at, refused: !ok})
	return ok, quota - a.used, window - at%window
}

// seen returns every arrival so far, in order.
func (a *api) seen() []arrival {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]arrival(nil), a.arrivals...)
}

// ideal is the least time in which n requests can be admitted: the first
// window's quota at once, the rest as the windows that follow begin.
func ideal(n int) time.Duration {
	return time.Duration((n-1)/quota) * window
}
