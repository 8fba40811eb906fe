package outbox

import (
	"slices"
	"strings"
	"time"
)

// Stats is what an outbox holds and what became of the requests its patterns
// named and of those given to Enqueue, since New.
type Stats struct {
	Pending int   // entries that Drain will send
	Dead    int   // entries set aside
	Bytes   int64 // of both; what MaxBytes bounds

	Kept      uint64 // requests answered with an id
	Delivered uint64 // entries that Drain sent and removed
	SetAside  uint64 // entries that died
	Full      uint64 // requests not kept because MaxEntries or MaxBytes was reached
	Unfit     uint64 // ... because they could not be sent again as they were: mostly, a body longer than MaxBody
	Errors    uint64 // ... because the file could not be written
}

// Stats returns a copy of the counters.
func (t *Transport) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stats
}

// QueueStats is what is kept in one queue and what became of it since New. It
// has no name of its own, so that inspect and otelweir can read it without
// importing this package.
type QueueStats = struct {
	Queue     string    // host, or what Config.Key said
	Pending   int       // entries that Drain will send
	Dead      int       // entries set aside
	Bytes     int64     // of both
	Oldest    time.Time // when the first pending entry was kept, or requeued; zero: nothing is pending
	Sending   bool      // an entry is on its way
	Stuck     time.Time // since when no try was a success; zero: the last one was
	Tries     int       // since then
	Why       string    // what came of the last of them: "answer 503"
	Delivered uint64    // entries sent and removed
	SetAside  uint64    // entries that died
}

// Queues returns the queues that hold something, and up to 1000 of those that
// did, by name.
func (t *Transport) Queues() []QueueStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]QueueStats, 0, len(t.queues))
	for _, q := range t.queues {
		s := QueueStats{
			Queue: q.name, Pending: len(q.pending), Dead: q.dead, Bytes: q.bytes, Sending: q.flight != nil,
			Stuck: q.since, Tries: q.tries, Delivered: q.delivered, SetAside: q.setAside,
		}
		if q.cause != nil {
			s.Why = q.cause.why()
		}
		if len(q.pending) > 0 {
			s.Oldest = time.Unix(0, q.pending[0].kept)
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b QueueStats) int { return strings.Compare(a.Queue, b.Queue) })
	return all
}
