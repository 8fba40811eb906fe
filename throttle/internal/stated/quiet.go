package stated

import (
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

// quiet is of a limit that only refusals state. When its reset has passed, no answer says
// what there is: of a window all units are back then, of a bucket or a log perhaps a few. So as
// many requests go as were served after the reset before. Then one goes, and then twice as many
// as were served, until one is refused.
type quiet struct {
	is     bool    // the last good answers did not state the limit
	asked  bool    // a request asked what there is, and no good answer has stated it since
	served float64 // units, since that request asked
	all    float64 // units that were served since the last reset
	before float64 // what all was at that reset; 0: a request has asked since, though there was no reset
	told   bool    // a refusal has stated the limit since a good answer last did
	since  int     // good answers to requests that were sent when what was stated was over
}

// goneAfter is after how many good answers in a row that do not state a limit, though its reset
// has passed, the server is taken to state it no more. A server that states it in one of two
// good answers is taken for such a one after one reset in 250, and then until it states it again.
const goneAfter = 8

// asks begins to count again, as a request asks. passed says that a reset has passed.
func (t *quiet) asks(passed bool) {
	t.asked, t.before, t.served = true, 0, 0
	if passed {
		t.before, t.all = t.all, 0
	}
}

// good takes in that so many units were served.
func (t *quiet) good(cost float64) { t.is, t.served, t.all = true, t.served+cost, t.all+cost }

// left is how many more units may be sent, with those under way.
func (t *quiet) left(cost float64) float64 {
	if t.served > t.before {
		return t.served + cost
	}
	return max(t.before-t.served, cost)
}

// over reports whether what was stated last had come to its end at the instant at.
func (q *Limit) over(at meter.Instant) bool {
	if !q.reset.Known && q.rolled < q.heard {
		return at.Sub(q.heard) > attribution.StaleAfter
	}
	return q.rolled >= q.heard && at >= q.rolled
}

// Silent notes that the request of which Unmentioned was told, and which was sent at sent, had a
// good answer. It reports whether the server states q no more: good answers did, but
// none has since the reset. What is left is not known then, and nothing says that q still holds.
func (q *Limit) Silent(sent meter.Instant, cost float64) (gone bool) {
	if q.quiet.told || !q.over(sent) {
		return false
	}
	if q.quiet.since++; q.flows() {
		q.left = max(q.left, cost+1) // with one unit that dripping keeps: others ask, one after the other
	}
	return q.quiet.since >= goneAfter
}

// Unmentioned notes that the answer to a request that drew on q did not state q. asked says
// that the request was let through to ask, and good that it was not refused.
func (q *Limit) Unmentioned(now meter.Instant, asked, good bool, cost float64) {
	q.roll(now)
	if !good {
		return
	}
	q.quiet.good(cost)
	if q.keepTrail(now); asked {
		q.fresh.Close()
		if q.basis = now; q.left < cost { // it was served, so a window has begun that is not the known one
			q.left, q.reset.Known, q.agree = q.sizeOr(plentiful), false, 0
		}
	}
	if !q.exact() {
		return
	}
	q.left -= cost
	if _, known := q.unspent(now); q.quiet.asked && !known && !q.flows() && !q.reset.Known && q.shared.tally == nil {
		spent := q.quiet.served
		if q.trail.young(now) {
			spent = max(spent, q.trail.count(now.Add(-q.window)))
		}
		q.left = min(q.quiet.left(cost), q.sizeOr(plentiful)-spent)
	}
	q.judge.Spent(now, cost)
	q.shared.took(cost)
}
