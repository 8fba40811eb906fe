package throttle_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// A limiterKind is how a server of the population below counts.
type limiterKind int

const (
	fixedWindow limiterKind = iota
	slidingLog
	slidingCounter
	tokenBucket
	largerBucket // it holds more than the quota that it states
	limiterKinds
)

func (k limiterKind) String() string {
	return [...]string{"fixed window", "sliding log", "sliding counter", "bucket", "larger bucket"}[k]
}

// A dialect is how it says so.
type dialect int

const (
	bare dialect = iota
	retryAfter
	xOnRefusals
	xAlways
	ietfOnRefusals
	ietfAlways
	dialects
)

func (d dialect) String() string {
	return [...]string{"bare", "Retry-After", "X-RateLimit on refusals", "X-RateLimit", "RateLimit on refusals", "RateLimit"}[d]
}

// limitedServer is a server that limits all that it is sent, or each token by itself.
type limitedServer struct {
	kind    limiterKind
	dialect dialect
	quota   float64 // per window
	size    float64 // of a bucket
	window  time.Duration
	trip    time.Duration
	jitter  float64 // of the trip
	workers int
	calls   int // that the test makes
}

func (s limitedServer) String() string {
	return fmt.Sprintf("%v of %v per %v, %v, %v away, %d at a time", s.kind, s.quota, s.window, s.dialect, s.trip, s.workers)
}

// limitedServers is one server of each kind and dialect, its figures drawn.
func limitedServers(seed uint64) (all []limitedServer) {
	r := rand.New(rand.NewPCG(seed, 0))
	between := func(low, high float64) float64 { return low * math.Exp(r.Float64()*math.Log(high/low)) }
	for kind := range limiterKinds {
		for dialect := range dialects {
			s := limitedServer{
				kind: kind, dialect: dialect,
				quota:   math.Round(between(5, 50)),
				window:  time.Duration(math.Round(between(1, 10))) * time.Second,
				trip:    time.Duration(between(1, 500) * float64(time.Millisecond)).Round(time.Millisecond),
				workers: int(between(10, 200)),
			}
			if s.size = s.quota; kind == largerBucket {
				s.size = math.Round(s.quota * between(1.5, 4))
			}
			s.calls = int(s.size + min(4*s.quota, 120))
			all = append(all, s)
		}
	}
	return all
}

// limiter is the server's count.
type limiter struct {
	limitedServer
	start time.Time
	sent  []time.Time // accepted
	level float64     // of a bucket, at seen
	seen  time.Time
}

// take counts a request at now. It returns how many are left, when there will be
// one more, and when there will be all.
func (l *limiter) take(now time.Time) (ok bool, left float64, next, full time.Duration) {
	if l.start.IsZero() {
		l.start, l.level, l.seen = now, l.size, now
	}
	if l.kind >= tokenBucket {
		return l.pour(now)
	}
	used := l.used(now)
	if ok = used+1 <= l.quota+1e-9; ok {
		l.sent = append(l.sent, now)
		used++
	}
	at := func(most float64) time.Duration {
		for d := time.Duration(0); ; d += 10 * time.Millisecond {
			if l.used(now.Add(d)) <= most+1e-9 {
				return d
			}
		}
	}
	if left = max(0, math.Floor(l.quota-used+1e-9)); left == 0 {
		next = at(l.quota - 1)
	}
	return ok, left, next, at(0)
}

func (l *limiter) pour(now time.Time) (ok bool, left float64, next, full time.Duration) {
	rate := l.quota / l.window.Seconds()
	l.level = min(l.size, l.level+now.Sub(l.seen).Seconds()*rate)
	l.seen = now
	if ok = l.level >= 1-1e-9; ok {
		l.level--
	}
	seconds := func(n float64) time.Duration { return time.Duration(max(0, n) / rate * float64(time.Second)) }
	return ok, math.Floor(l.level + 1e-9), seconds(1 - l.level), seconds(l.size - l.level)
}

// used is what counts at now.
func (l *limiter) used(now time.Time) (used float64) {
	since := now.Add(-l.window)
	this := l.start.Add(now.Sub(l.start).Truncate(l.window))
	switch l.kind {
	case fixedWindow:
		since = this.Add(-1)
	case slidingCounter:
		since = this.Add(-1)
		part := 1 - now.Sub(this).Seconds()/l.window.Seconds()
		for _, at := range l.sent {
			if at.Before(this) && !at.Before(this.Add(-l.window)) {
				used += part
			}
		}
	}
	i, _ := slices.BinarySearchFunc(l.sent, since, func(at, t time.Time) int {
		if at.After(t) {
			return 1
		}
		return -1
	})
	return used + float64(len(l.sent)-i)
}

// answer is the server's answer to a request.
func (l *limiter) answer(_ *http.Request, now time.Time) *http.Response {
	ok, left, next, full := l.take(now)
	resp := reply(200)
	if !ok {
		resp = reply(429)
	}
	seconds := func(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds() - 1e-9))) }
	count := func(n float64) string { return strconv.Itoa(int(n)) }
	reset := full
	if l.kind == slidingLog {
		reset = next
	}
	if l.dialect != bare && !ok {
		resp.Header.Set("Retry-After", seconds(max(next, time.Millisecond)))
	}
	switch d := l.dialect; {
	case d == xAlways, d == xOnRefusals && !ok:
		resp.Header.Set("X-RateLimit-Limit", count(l.quota))
		resp.Header.Set("X-RateLimit-Remaining", count(left))
		resp.Header.Set("X-RateLimit-Reset", seconds(reset))
	case d == ietfAlways, d == ietfOnRefusals && !ok:
		resp.Header.Set("RateLimit-Policy", fmt.Sprintf(`"default";q=%v;w=%s`, l.quota, seconds(l.window)))
		resp.Header.Set("RateLimit", fmt.Sprintf(`"default";r=%s;t=%s`, count(left), seconds(reset)))
	}
	return resp
}
