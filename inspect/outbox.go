package inspect

import (
	"cmp"
	"slices"
	"time"
)

// Outbox is what the page needs of an outbox.Transport.
type Outbox interface {
	Queues() []OutboxQueue
}

// OutboxQueue is outbox.QueueStats. It has no name of its own there either, so
// that neither package imports the other.
type OutboxQueue = struct {
	Queue     string
	Pending   int
	Dead      int
	Bytes     int64
	Oldest    time.Time
	Sending   bool
	Stuck     time.Time
	Tries     int
	Why       string
	Delivered uint64
	SetAside  uint64
}

// Kept is one queue of the outbox. Durations are in seconds.
type Kept struct {
	Queue     string  `json:"queue"`
	State     string  `json:"state"` // "ok": nothing is pending; "waiting", "sending", "stuck"
	Pending   int     `json:"pending"`
	Dead      int     `json:"dead"` // set aside
	Bytes     int64   `json:"bytes"`
	Oldest    float64 `json:"oldest"`          // for how long the oldest pending entry is kept
	Stuck     float64 `json:"stuck,omitempty"` // for how long no try was a success
	Tries     int     `json:"tries,omitempty"` // since then
	Why       string  `json:"why,omitempty"`   // what came of the last: "answer 503"
	Delivered uint64  `json:"delivered"`
	SetAside  uint64  `json:"setAside"`
}

// kept returns the queues of o: first those that are stuck, the longest first,
// then those with the most in them.
func kept(o Outbox, now time.Time) []Kept {
	if o == nil {
		return nil
	}
	queues := o.Queues()
	all := make([]Kept, len(queues))
	for i, q := range queues {
		k := Kept{
			Queue: q.Queue, State: ok, Pending: q.Pending, Dead: q.Dead, Bytes: q.Bytes,
			Tries: q.Tries, Why: q.Why, Delivered: q.Delivered, SetAside: q.SetAside,
		}
		if q.Pending > 0 {
			k.State, k.Oldest = waiting, max(0, now.Sub(q.Oldest).Seconds())
		}
		if q.Sending {
			k.State = "sending"
		}
		if !q.Stuck.IsZero() {
			k.State, k.Stuck = "stuck", max(0, now.Sub(q.Stuck).Seconds())
		}
		all[i] = k
	}
	slices.SortStableFunc(all, func(a, b Kept) int {
		return cmp.Or(cmp.Compare(b.Stuck, a.Stuck), cmp.Compare(b.Pending, a.Pending), cmp.Compare(b.Dead, a.Dead))
	})
	return all
}
