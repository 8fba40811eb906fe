package throttle

import (
	"strconv"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/caller"
	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// mostTallies is how many limits of a learner are ever counted in the Store: a
// server that gives its limits ever new names does not fill it. With its mark each takes
// two of the store.MaxParts of a booking, so more would not fit into one.
const mostTallies = 8

// tallies are those of needs, at most so many. The lock is held.
func (p *attempt) tallies(now instant, a *ask, needs []queue.Need, most int) (list []*fleet.Tally) {
	for i := range needs {
		q, ok := needs[i].Account.Meter.(*quota)
		if !ok || len(list) == most || q.Size().Known && float64(needs[i].N) > q.Size().Value {
			continue
		}
		if t := p.tallyOf(now, q, a.fleetName(p.endpoint.learner)); t != nil {
			list = append(list, t)
			if mark := p.markOf(q, t); len(list) < most {
				list = append(list, mark)
			}
		}
	}
	return list
}

// tallyOf is the count of q for that caller; nil: there are too many, or it has none.
func (p *attempt) tallyOf(now instant, q *quota, whose string) *fleet.Tally {
	return q.Tally(now, func(name string) *fleet.Tally {
		l := p.endpoint.learner
		if l.tallies >= mostTallies {
			return nil
		}
		l.tallies++
		return fleet.NewTally(caller.Digest(strconv.Quote(whose)+name), unitName(q.ID.Unit))
	})
}

// watchCounts lets those that wait for limits of s watch their counts, although this process has
// booked nothing there yet. Otherwise each process would ask what the next window holds, and
// more would ask than it holds.
func (p *attempt) watchCounts(s *headers.Signal) {
	e := p.record.lock()
	defer e.Unlock()
	if p.endpoint == nil {
		return
	}
	now, l := e.Now(), p.endpoint.learner
	l.hearFrom(p.endpoint.whereOf(p.r))
	for i := range s.Limits {
		q := l.known(&s.Limits[i], p.endpoint)
		if q == nil || q.Everywhere() {
			continue
		}
		if t := p.tallyOf(now, q, p.more().by.fleetName(l)); t != nil {
			p.markOf(q, t)
		}
	}
}

// markOf is the mark of q's count.
func (p *attempt) markOf(q *quota, t *fleet.Tally) *fleet.Tally {
	f, key := p.record.t.fleet, p.record.shared()
	return q.Mark(t, func(t, mark *fleet.Tally, to int64) { f.Raise(key.ID, t, mark, to) }, func(marks ...*fleet.Tally) func(waits *fleet.Tally) {
		key.Tallies = append([]*fleet.Tally{t}, marks...)
		return p.asks(key, q.account, func(instant) {})
	})
}

// fleetName is what requests of i to l are called in every process; "": i is a stranger, who
// shares l with others.
func (i identity) fleetName(l *learner) string {
	if i.credential != l.credential {
		return ""
	}
	return caller.Digest(i.whose)
}
