package chaintest

import (
	"net/http"
	"strconv"
	"time"
)

// A windowed is a limit of size requests in a window. By kind, windows begin with a "first"
// request, or by the "clock", or every window counts, in a "log".
type windowed struct {
	kind  string
	size  int
	per   time.Duration
	drawn []time.Time // by requests that count; but for a log, each is dated when its window began
}

// draw reports whether a request is let pass, and counts it if so.
func (w *windowed) draw(now time.Time) bool {
	for len(w.drawn) > 0 && w.back(now) <= 0 {
		w.drawn = w.drawn[1:]
	}
	if len(w.drawn) == w.size {
		return false
	}
	switch {
	case w.kind == "clock":
		now = now.Truncate(w.per)
	case w.kind == "first" && len(w.drawn) > 0:
		now = w.drawn[0]
	}
	w.drawn = append(w.drawn, now)
	return true
}

// back is after what time the oldest of those that count leaves.
func (w *windowed) back(now time.Time) time.Duration { return w.drawn[0].Add(w.per).Sub(now) }

// A modelBucket is a limit of a language model's API: a bucket that fills in a minute,
// stated in headers as OpenAI does.
type modelBucket struct {
	size, there float64
	seen        time.Time
}

func fullBucket(size float64) modelBucket { return modelBucket{size, size, time.Now()} }

// look lets in what has flowed since: all of it in a minute.
func (b *modelBucket) look() {
	now := time.Now()
	b.there = min(b.size, b.there+now.Sub(b.seen).Minutes()*b.size)
	b.seen = now
}

// wait is for how many seconds the bucket lacks some of n units, as of the last look.
func (b *modelBucket) wait(n float64) float64 { return (n - b.there) / b.size * 60 }

// retryAfter is a Retry-After for a request that lacks what a bucket has in so many
// seconds.
func retryAfter(seconds float64) string { return strconv.Itoa(int(seconds) + 1) }

func (b *modelBucket) state(h http.Header, unit string) {
	full := time.Duration((b.size - b.there) / b.size * float64(time.Minute))
	h.Set("X-Ratelimit-Limit-"+unit, strconv.Itoa(int(b.size)))
	h.Set("X-Ratelimit-Remaining-"+unit, strconv.Itoa(max(0, int(b.there))))
	h.Set("X-Ratelimit-Reset-"+unit, full.Round(time.Millisecond).String())
}
