package fleet

import (
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// alone serves the queue without the store, by WhenDown. It returns after how long to call it
// again; zero: nobody waits any more.
func (q *queue) alone(now time.Time) time.Duration {
	switch q.f.c.WhenDown {
	case Refuse:
		q.refuseAll(Down)
		return 0
	case Pass:
		for _, w := range q.waiting {
			q.grant(w, nil, now)
		}
		q.waiting = nil
		return 0
	}
	b := q.parted(now)
	if q.local == nil {
		q.local, q.apart = spent(b, now), now
	}
	for len(q.waiting) > 0 {
		if q.flight.crowded(q) {
			return flightPoll
		}
		w := q.waiting[0]
		setCosts(&b, w.cost, w.cost)
		next, r := store.Book(now, q.local, b)
		if r.Outcome == store.Impossible {
			return time.Second // it exceeds what is left of a Calendar here; the store may have more
		}
		if r.Outcome == store.Refused {
			return r.Wait
		}
		q.local = next
		q.waiting = slices.Delete(q.waiting, 0, 1)
		q.grant(w, nil, now)
	}
	return 0
}

// parted is what a request draws on while each process has its part of all limits.
func (q *queue) parted(now time.Time) store.Booking {
	b := q.rated(now)
	for i := range b.Draws {
		d := &b.Draws[i]
		d.Limits = slices.DeleteFunc(d.Limits, isFlight)
		for j, l := range d.Limits {
			d.Limits[j] = partOf(l, q.f.c.Members, l.Size-d.Seen.Room(j, l))
			if l.Kind == store.LogLimit {
				d.Limits = append(d.Limits, l) // its log is what repay charges later
			}
		}
		d.Seen = store.Seen{}
	}
	return b
}

// spent returns ledgers in which nothing is left, because other processes may have taken all
// before the outage began.
func spent(b store.Booking, now time.Time) []store.Ledger {
	at := now.UnixMicro()
	ls := make([]store.Ledger, len(b.Draws))
	for i, d := range b.Draws {
		ls[i] = store.Ledger{Gen: 1, At: at, Expires: at + store.MaxHorizon.Microseconds()}
		for _, p := range d.Limits {
			if p.Kind == store.MeterLimit {
				ls[i].Accounts = append(ls[i].Accounts, store.Account{Kind: p.Kind, ID: p.ID, At: at, Level: p.Size})
			}
		}
	}
	return ls
}
