package scenario

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/weirhttp/weir/bench/rival"
)

// A quota counts what a server allows, in time since its start.
type quota interface {
	take(now time.Duration) bool
	next(now time.Duration) time.Duration // the earliest instant, now or later, at which one would be taken
}

// window is a fixed window of one second; limits holds how many are allowed
// in each, the last for all that follow. It began phase before time zero.
type window struct {
	limits []int
	phase  time.Duration
	index  int
	used   int
}

func (w *window) at(now time.Duration) (limit int, ends time.Duration) {
	index := int((now + w.phase) / time.Second)
	if index != w.index {
		w.index, w.used = index, 0
	}
	return w.limits[min(index, len(w.limits)-1)], time.Duration(index+1)*time.Second - w.phase
}

func (w *window) take(now time.Duration) bool {
	limit, _ := w.at(now)
	if w.used >= limit {
		return false
	}
	w.used++
	return true
}

func (w *window) next(now time.Duration) time.Duration {
	if limit, ends := w.at(now); w.used >= limit {
		return ends
	}
	return now
}

// bucket is a token bucket.
type bucket struct {
	perSecond, size, level float64
	last                   time.Duration
}

func (b *bucket) fill(now time.Duration) {
	b.level = min(b.size, b.level+b.perSecond*(now-b.last).Seconds())
	b.last = now
}

func (b *bucket) take(now time.Duration) bool {
	if b.fill(now); b.level < 1-1e-9 {
		return false
	}
	b.level--
	return true
}

func (b *bucket) next(now time.Duration) time.Duration {
	b.fill(now)
	return now + time.Duration(max(0, 1-b.level)/b.perSecond*1e9+.5)
}

// slidingLog allows so many in any window of length per.
type slidingLog struct {
	limit int
	per   time.Duration
	at    []time.Duration
}

func (l *slidingLog) take(now time.Duration) bool {
	for len(l.at) > 0 && l.at[0]+l.per <= now {
		l.at = l.at[1:]
	}
	if len(l.at) >= l.limit {
		return false
	}
	l.at = append(l.at, now)
	return true
}

func (l *slidingLog) next(now time.Duration) time.Duration {
	if len(l.at) < l.limit {
		return now
	}
	return max(now, l.at[len(l.at)-l.limit]+l.per)
}

// ideal is when the last of n could be taken by one who knows everything.
func ideal(q quota, n int) time.Duration {
	var now time.Duration
	for range n {
		for now = q.next(now); !q.take(now); {
			now += time.Microsecond
		}
	}
	return now
}

// A dialect is one kind of server.
type dialect struct {
	name  string
	short string
	quota func() quota
	tell  func(h http.Header, q quota, ok bool, now time.Duration) // nil: nothing
	known rival.Rate
}

func dialects(s Size) []dialect {
	changing := pick(s, []int{10, 5, 20}, []int{100, 20, 20, 60}, []int{100, 100, 20, 20, 20, 20, 60})
	const phase = 370 * time.Millisecond
	return []dialect{
		{"fixed window 50/s, X-RateLimit headers", "fixed window", func() quota { return &window{limits: []int{50}, phase: phase} }, tellWindow, rival.Rate{Limit: 50, Per: time.Second}},
		{"token bucket 50/s of 10, Retry-After only", "bucket, wait told", func() quota { return &bucket{perSecond: 50, size: 10, level: 10} }, tellWait, rival.Rate{Limit: 50, Per: time.Second, Bucket: 10}},
		{"sliding window 100 per 2 s, RateLimit of draft 8", "sliding window", func() quota { return &slidingLog{limit: 100, per: 2 * time.Second} }, tellDraft, rival.Rate{Limit: 100, Per: 2 * time.Second}},
		{"token bucket 50/s of 10, bare 429", "bucket, silent", func() quota { return &bucket{perSecond: 50, size: 10, level: 10} }, nil, rival.Rate{Limit: 50, Per: time.Second, Bucket: 10}},
		{fmt.Sprintf("fixed window that changes, %d/s at first, then %d, %d in the end; X-RateLimit headers", changing[0], changing[len(changing)-2], changing[len(changing)-1]), "changing window",
			func() quota { return &window{limits: changing, phase: phase} }, tellWindow, rival.Rate{Limit: changing[0], Per: time.Second}},
	}
}

func seconds(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }

func tellWait(h http.Header, q quota, ok bool, now time.Duration) {
	if !ok {
		h.Set("Retry-After", seconds(max(q.next(now)-now, time.Millisecond)))
	}
}

// tellWindow states the reset in seconds from now, rounded up, as most do
// that count in whole seconds.
func tellWindow(h http.Header, q quota, ok bool, now time.Duration) {
	limit, ends := q.(*window).at(now)
	h.Set("X-RateLimit-Limit", strconv.Itoa(limit))
	h.Set("X-RateLimit-Remaining", strconv.Itoa(limit-q.(*window).used))
	h.Set("X-RateLimit-Reset", seconds(ends-now))
	tellWait(h, q, ok, now)
}

func tellDraft(h http.Header, q quota, ok bool, now time.Duration) {
	l := q.(*slidingLog)
	h.Set("RateLimit-Policy", fmt.Sprintf(`"default";q=%d;w=%s`, l.limit, seconds(l.per)))
	reset := l.per
	if len(l.at) > 0 {
		reset = l.at[0] + l.per - now
	}
	h.Set("RateLimit", fmt.Sprintf(`"default";r=%d;t=%s`, l.limit-len(l.at), seconds(reset)))
	tellWait(h, q, ok, now)
}

// A limited server answers 200 within its quota and 429 beyond.
type limited struct {
	dialect dialect
	begin   time.Time

	mu      sync.Mutex
	quota   quota
	served  int
	refused int
	last    time.Duration // the last success
}

func (l *limited) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	l.mu.Lock()
	if l.begin.IsZero() {
		l.begin = time.Now() // its windows begin with the first request
	}
	now := time.Since(l.begin)
	ok := l.quota.take(now)
	if ok {
		l.served++
		l.last = now
	} else {
		l.refused++
	}
	if l.dialect.tell != nil {
		l.dialect.tell(w.Header(), l.quota, ok, now)
	}
	l.mu.Unlock()
	if !ok {
		w.WriteHeader(http.StatusTooManyRequests)
	}
}
