package breaker

import (
	"slices"
	"time"
)

// Failures that end one after another say that the host is down if they are also a
// run in the order in which their attempts began. If many are under way at once, the
// order in which they end says less:
//
//   - If failures take longer than answers, the last of a burst to end are nothing but
//     failures. So a failure is in no run if an attempt that began later has succeeded.
//   - If failures come at once, the first of a burst to end are nothing but failures.
//     So an attempt that is under way interrupts a run, until it is due, as in vigil.
//
// If one attempt follows another, both orders are the same. Attempts have numbers in
// the order in which they began, because a clock may show the same time for several.
//
// As long as all is well nobody counts, so that a good call costs nothing. So attempts
// that began before the first failure came have no number. They are early, which means
// before all that have one. How many of them are still under way is not known, but no more
// than there were requests to the host. Which of them began before the newest that
// succeeded is told by the clock, and if that is not exact enough, one failure is taken
// to have begun later: if attempts follow one another, no other can be early.
//
// Silence counts as of its end, because others were kept waiting meanwhile. With a
// FailureRate the order in which attempts end decides.

// maxRow is how many attempts are kept, from the oldest on that is under way. If there
// are more, that counts as due. It is far more than the longest run of chance, and few
// enough to look at all of them for each failure.
const maxRow = 1024

// row is the attempts since the newest success, in the order in which they began. Its
// circuit's mu guards it.
type row struct {
	base   uint64        // the number of list[0]
	list   []begun       // list[0] is under way
	inside int           // failures in list
	head   run           // of those before list[0]
	from   uint64        // the number of the first of head
	newest uint64        // that succeeded; zero: none has
	limit  time.Duration // after which one that is under way is due

	floor   uint64    // those with a lower number are early
	early   run       // failures of early ones, in any order
	pending int       // early ones that are under way, at most
	woke    time.Time // when the first failure came
	since   time.Time // when the first of early was sent
	good    time.Time // when the newest early one was sent that succeeded
}

// begun is an attempt that began.
type begun struct {
	at    time.Time
	state ending
}

type ending uint8

const (
	underWay ending = iota
	ignored         // it says nothing
	spoken          // failed, with an answer
	unspoken        // failed, without one
	beside          // silent, while the host answered others
)

// run is failures in a row: of any kind, and without an answer.
type run struct{ all, unanswered int }

func (r *run) add(e ending) {
	switch e {
	case underWay:
		*r = run{}
	case spoken:
		r.all, r.unanswered = r.all+1, 0
	case unspoken:
		r.all, r.unanswered = r.all+1, r.unanswered+1
	case beside:
		r.all++
	}
}

// reset begins a row of the attempts that begin from now on. Up to pending of those that
// began before may be under way.
func (r *row) reset(pending int, now time.Time) {
	next := max(1, r.base+uint64(len(r.list)))
	*r = row{base: next, floor: next, pending: pending, woke: now, limit: leastDue}
}

// begins returns the number of an attempt that begins.
func (r *row) begins(now time.Time) uint64 {
	for r.fold(now); len(r.list) >= maxRow; r.fold(now) {
		r.list[0].state = ignored
	}
	r.list = append(r.list, begun{at: now})
	return r.base + uint64(len(r.list)) - 1
}

// joins notes that a request which was there when the first failure came had not been
// sent then: it begins only now.
func (r *row) joins() {
	if r.pending > 0 {
		r.pending--
	}
}

// at returns the attempt with a number, nil if it is not in the list.
func (r *row) at(n uint64) *begun {
	if n < r.base || n-r.base >= uint64(len(r.list)) {
		return nil
	}
	return &r.list[n-r.base]
}

// ends notes that an attempt has ended. succeeded or failed follow.
func (r *row) ends(n uint64) {
	if b := r.at(n); b != nil {
		b.state = ignored
	} else if n < r.floor {
		r.pending--
	}
}

// succeeded notes that an attempt did that was sent at an instant, and reports whether it
// began after a failure of the row. It does so, too, if there is none.
func (r *row) succeeded(n uint64, sent, now time.Time) (after bool) {
	before := r.failures()
	switch {
	case n >= r.floor && n > r.from:
		if n >= r.base {
			r.drop(int(n-r.base) + 1)
		}
		r.head, r.early, r.newest = run{}, run{}, max(r.newest, n)
	case n < r.floor && !sent.Before(r.since):
		if r.early = (run{}); sent.After(r.good) {
			r.good = sent
		}
	}
	r.fold(now)
	return before == 0 || r.failures() < before
}

// failures is how many are in the row.
func (r *row) failures() int { return r.early.all + r.head.all + r.inside }

// failed notes that an attempt did, and reports whether one succeeded that began later.
func (r *row) failed(n uint64, how ending, v verdict, now time.Time) (before bool) {
	r.limit = max(leastDue, overdue*v.usual)
	switch b := r.at(n); {
	case v.silent, b == nil && n >= r.floor && n > r.newest:
		r.list = append(r.list, begun{now, how})
		r.inside++
	case b != nil:
		b.state = how
		r.inside++
	case n >= r.floor || r.newest > 0 || !v.sent.IsZero() && (!v.sent.After(r.good) || v.sent.Before(v.good)):
		return true
	case v.sent.IsZero() || r.early.all == 0 || v.sent.After(v.goodBy):
		if r.early.add(how); r.early.all == 1 {
			r.since = v.sent
		}
	}
	r.fold(now)
	return false
}

// fold takes from the list those that nothing is under way before.
func (r *row) fold(now time.Time) {
	n := 0
	for n < len(r.list) && !r.open(r.list[n], now) {
		if b := r.list[n]; b.state > ignored {
			if r.head.add(b.state); r.head.all == 1 {
				r.from = r.base + uint64(n)
			}
		}
		n++
	}
	r.drop(n)
}

// open reports whether an attempt is under way and not due.
func (r *row) open(b begun, now time.Time) bool {
	return b.state == underWay && now.Sub(b.at) < r.limit
}

// drop takes the first n from the list.
func (r *row) drop(n int) {
	for _, b := range r.list[:n] {
		if b.state > ignored {
			r.inside--
		}
	}
	r.base += uint64(n)
	r.list = slices.Delete(r.list, 0, n)
}

// longest is the longest run of failures that nothing interrupts, and the longest of
// those without an answer since one with an answer.
func (r *row) longest(now time.Time) (best run) {
	one := r.head
	if r.pending <= 0 || now.Sub(r.since) >= r.limit {
		one.precede(r.early)
	} else {
		one.precede(run{min(r.early.all, 1), min(r.early.unanswered, 1)})
	}
	best = one
	for _, b := range r.list {
		if b.state != underWay || r.open(b, now) {
			one.add(b.state)
		}
		if b.state == spoken {
			best.unanswered = 0
		}
		best = run{max(best.all, one.all), max(best.unanswered, one.unanswered)}
	}
	return best
}

// precede makes a run that was before r part of it.
func (r *run) precede(before run) {
	if r.unanswered == r.all {
		r.unanswered += before.unanswered
	}
	r.all += before.all
}
