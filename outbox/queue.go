package outbox

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
)

const (
	// longestName is how much of what Config.Key says is the name of a queue.
	longestName = 200

	// longestAsked is for how long, at most, one answer of a server makes its queue
	// wait. The next answer can ask for another wait. So a server that needs longer
	// gets one try an hour, and a wrong answer costs an hour.
	longestAsked = time.Hour

	// maxIdle is how many queues with nothing in them are remembered, for
	// their counts. More cost memory only: some 200 bytes each.
	maxIdle = 1000
)

// queueOf names the queue of r. A longer name is cut, and told from others by
// a hash.
func (s *settings) queueOf(r *http.Request) string {
	name := ""
	if s.Key != nil {
		name = s.Key(r)
	}
	if name == "" {
		return hosts.Key(r)
	}
	if len(name) > longestName {
		sum := sha256.Sum256([]byte(name))
		name = name[:longestName] + "#" + hex.EncodeToString(sum[:8])
	}
	return name
}

// queue is what is kept under one name, as the file says. When a transaction that
// changes it is on the disk, the queue is changed in the same way, and in the order of
// the transactions. Transport.mu guards it.
type queue struct {
	name    string
	pending []slot // by id: the order in which they are sent
	dead    int
	bytes   int64 // of both
	at      int   // in Transport.order; -1: nothing is pending

	flight  *flight       // of the one of pending that is on its way; nil: none is
	settled []uint64      // ids of pending that were answered for good; the file does not say so yet
	last    try           // what came of the last one
	took    time.Duration // how long the last answer took

	// Of a queue that cannot be delivered:
	since time.Time // its first try without success after one with; zero: none
	tried time.Time // its last one
	wakes uint64    // Transport.wakes before that
	tries int       // since then
	cause *Error    // what came of the last; nil: it is not stuck
	moved bool      // that was ended to make room: it is tried again as soon as there is room

	until time.Time // when its server may be asked again, by its own word
	asked *Error    // the answer that said so

	behind    time.Time // since when there is a backlog to call OnDrained about; zero: there is none
	delivered uint64
	setAside  uint64
}

// slot is where a pending entry stands.
type slot struct {
	id   uint64
	kept int64 // nanoseconds since 1970 from which its age counts
}

func byID(s slot, id uint64) int { return cmp.Compare(s.id, id) }

// next is the first entry that was not answered yet.
func (q *queue) next() (slot, bool) {
	for _, s := range q.pending { // of which the first few at most are settled
		if !slices.Contains(q.settled, s.id) {
			return s, true
		}
	}
	return slot{}, false
}

func (q *queue) empty() bool { return len(q.pending) == 0 && q.dead == 0 }

// stuck notes that a try has failed, which began when Transport.wakes was wakes.
func (q *queue) stuck(wakes uint64, cause *Error) {
	now := time.Now()
	if q.since.IsZero() {
		q.since = now
	}
	if q.behind.IsZero() {
		q.behind = now
	}
	q.tried, q.wakes, q.cause = now, wakes, cause
	q.tries++
	q.moved = errors.As(cause.Err, new(moved))
	q.until, q.asked = now.Add(min(cause.RetryAfter, longestAsked)), cause
}

// moves notes that a try has not failed.
func (q *queue) moves() {
	q.since, q.tried, q.tries, q.cause, q.moved = time.Time{}, time.Time{}, 0, nil, false
}

// due reports whether Run may try a queue again now, or else at what time; a
// zero time is when it is woken.
func (q *queue) due(every time.Duration, wakes uint64, now time.Time) (bool, time.Time) {
	at := q.until
	switch {
	case q.since.IsZero() || q.moved || q.wakes != wakes:
	case every <= 0:
		return false, time.Time{}
	default:
		if regular := q.tried.Add(every); regular.After(at) {
			at = regular
		}
	}
	return !at.After(now), at
}

// where an entry is.
type where int

const (
	nowhere where = iota
	pending
	dead
)

// change is what a transaction did with an entry.
type change struct {
	id       uint64
	queue    string
	kept     int64
	size     int64
	from, to where
}

// apply brings the queues up to date with the file; t.mu is held. It returns
// the queue, or nil if nothing was changed.
func (t *Transport) apply(c change) *queue {
	if c.from == c.to {
		return nil
	}
	q := t.queues[c.queue]
	if q == nil {
		q = &queue{name: c.queue, at: -1}
		t.queues[c.queue] = q
		t.idle++
	}
	was := q.empty()
	switch c.from {
	case pending:
		q.take(c.id)
		t.stats.Pending--
	case dead:
		q.dead--
		t.stats.Dead--
	}
	switch c.to {
	case pending:
		q.put(slot{c.id, c.kept})
		t.stats.Pending++
	case dead:
		q.dead++
		t.stats.Dead++
	}
	if size := c.size; c.from == nowhere || c.to == nowhere {
		if c.to == nowhere {
			size = -size
		}
		q.bytes += size
		t.stats.Bytes += size
	}
	t.enlist(q)
	switch is := q.empty(); {
	case was && !is:
		t.idle--
	case is && !was:
		t.idle++
		t.forget(q)
	}
	return q
}

// put adds an entry, which is mostly the youngest.
func (q *queue) put(s slot) {
	i := len(q.pending)
	if i > 0 && q.pending[i-1].id > s.id {
		i, _ = slices.BinarySearchFunc(q.pending, s.id, byID)
	}
	q.pending = slices.Insert(q.pending, i, s)
}

// take removes an entry, which is mostly the oldest.
func (q *queue) take(id uint64) {
	i, found := slices.BinarySearchFunc(q.pending, id, byID)
	switch {
	case !found:
	case len(q.pending) == 1:
		q.pending = nil
	case i == 0:
		q.pending = q.pending[1:]
	default:
		q.pending = slices.Delete(q.pending, i, i+1)
	}
	q.unsettle(id)
}

func (q *queue) unsettle(id uint64) {
	if i := slices.Index(q.settled, id); i >= 0 {
		q.settled = slices.Delete(q.settled, i, i+1)
	}
}

// enlist has t.order hold the queues with something pending.
func (t *Transport) enlist(q *queue) {
	switch {
	case len(q.pending) > 0 && q.at < 0:
		q.at = len(t.order)
		t.order = append(t.order, q)
	case len(q.pending) == 0 && q.at >= 0:
		last := t.order[len(t.order)-1]
		t.order[q.at], last.at = last, q.at
		t.order = t.order[:len(t.order)-1]
		q.at, q.behind = -1, time.Time{}
		q.moves()
	}
	t.waiting.Store(int64(len(t.order)))
}

// forget bounds the queues that are remembered although nothing is in them.
func (t *Transport) forget(q *queue) {
	if q.empty() && q.flight == nil && t.idle > maxIdle {
		t.idle--
		delete(t.queues, q.name)
	}
}
