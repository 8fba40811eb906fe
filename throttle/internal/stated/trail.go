package stated

import (
	"math"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

const (
	// trailSlack is by how much longer than a window a trail is kept: answers to compare with
	// may be late.
	trailSlack = 500 * time.Millisecond
	// keptUnits is how many units of a window that is tested are spent slowly: so many
	// comparisons, of one unit each, show of which kind a limit is.
	keptUnits = 4
	// aloneAfter is after how many windows without evidence of others there are taken to be
	// none.
	aloneAfter = 4

	// dripPart is after which part of the time that a unit takes to come back the next of the
	// last few requests goes. It is less than 1 so that a bucket that gives back more than was
	// computed does not stay full.
	dripPart = 0.8
)

// A trail is what this process itself spent of a limit that has a short window, or that only
// refusals state, dated by the answers. A unit that is older than the window does not count at any server, whether
// its window is fixed or slides. That says when there is room again more exactly than a
// reset in whole seconds, as long as nobody else spends of the limit.
type trail struct {
	spec   meter.Spec
	spent  meter.Log     // units by when their answer came
	shared meter.Instant // until then the trail is not used: somebody else spends, or the window is longer than stated
	whole  meter.Instant // until then it is not used, either: units count that were spent before there was a trail
	spared int64         // units of a refused request of which Answered is about to be told
}

// trace keeps q's trail. It learns from an answer to a request of so many
// units, which drew on q or was sent before q was known.
func (q *Limit) trace(now, sent meter.Instant, l *headers.Limit, units float64, drew, refused bool) {
	if q.quiet.told = true; !refused {
		q.quiet = quiet{}
	}
	if !q.keepTrail(now) {
		return
	}
	t, per := q.trail, q.window
	switch {
	case drew && refused:
		t.spared = int64(units)
	case !drew && !refused:
		t.add(now, int64(units))
	}
	left, ok := l.Left()
	if refused && !q.quiet.is || ok && !q.late(sent) && !t.young(now) && q.size.Value-left >= t.count(sent.Add(-per))+q.flying()+1 {
		t.shared = max(t.shared, now.Add(aloneAfter*per))
	}
}

// keepTrail reports whether q has a trail, and begins or drops it.
func (q *Limit) keepTrail(now meter.Instant) bool {
	if !q.exact() || q.shared.tally != nil || !q.size.Known || q.size.Value < 1 || q.window <= 0 || q.window > shortWindow && !q.quiet.is {
		q.trail = nil
		return false
	}
	if q.trail == nil {
		q.trail = new(trail)
		if q.quiet.is {
			q.trail.whole = now.Add(q.window)
		}
	}
	q.trail.spec.Limit, q.trail.spec.Per = int(min(q.size.Value, plentiful)), q.window+trailSlack
	return true
}

// young reports whether units may count that were spent before there was a trail.
func (t *trail) young(now meter.Instant) bool { return t != nil && now < t.whole }

// add notes n units that were answered now.
func (t *trail) add(now meter.Instant, n int64) {
	if n > 0 {
		t.spent.Forget(now - meter.Instant(t.spec.Per))
		t.spent.Add(now, min(n, math.MaxInt64-t.spent.Sum), t.spec.Grain())
	}
}

// answered notes that a request of n units was answered. late says that they are noted already.
func (t *trail) answered(now meter.Instant, n int64, late bool) {
	if !late {
		t.add(now, n-t.spared)
	}
	t.spared = 0
}

// count is how many units were answered after from.
func (t *trail) count(from meter.Instant) float64 {
	n := int64(0)
	for _, s := range t.spent.Entries {
		if s.At > from {
			n += s.N
		}
	}
	return float64(n)
}

// wait is how long cost units of a limit of that size and window have to wait;
// meter.Unknown if the trail does not say. out is how many units are not answered.
func (t *trail) wait(now meter.Instant, size, cost, out float64, per time.Duration) time.Duration {
	if t == nil || now < t.shared || t.young(now) {
		return meter.Unknown
	}
	need := t.count(now.Add(-per)) + out + cost - size
	if need <= 0 {
		return 0
	}
	for _, s := range t.spent.Entries {
		if s.At.Add(per) <= now {
			continue
		}
		if need -= float64(s.N); need <= 0 {
			return s.At.Add(per).Until(now)
		}
	}
	return meter.Unknown
}

// trailed is how long cost units have to wait by q's trail; meter.Unknown if the trail does not
// say. It is no less than until Coarse before the stated reset, unless that is only when the
// next unit of a log comes back.
func (q *Limit) trailed(now meter.Instant, cost float64) time.Duration {
	d := q.trail.wait(now, q.sizeOr(0), cost, q.flying(), q.window)
	if d != meter.Unknown && q.reset.Known && q.judge.Kind() != refill.Log {
		d = max(d, q.reset.Value.Add(-Coarse).Sub(now))
	}
	return d
}

// unspent is what is left of a sliding log by q's trail: all but what is under way or was
// answered within the last window; false: q is no log, or the trail does not say. The server has
// no less, as it counted each unit before it answered. What answers state would not do: units
// come back between them, so the smallest number is too small, and the newest may lack units
// that were answered before it was heard.
func (q *Limit) unspent(now meter.Instant) (left float64, ok bool) {
	if t := q.trail; t != nil && now >= t.shared && !t.young(now) && (q.judge.Kind() == refill.Log || q.quiet.is) {
		return q.size.Value - t.count(now.Add(-q.window)) - q.flying(), true
	}
	return 0, false
}

// logged is what a sliding log would have had left when it served a request that was
// sent at sent, by q's trail, which is there. own is how many of the units under way are that
// request's.
func (q *Limit) logged(now, sent meter.Instant, own float64) (left refill.Span) {
	t := q.trail
	from := now.Add(2*now.Sub(sent) + q.window/32 - q.window)
	counted := 0.0 // units that the log certainly counted
	for _, s := range t.spent.Entries {
		if s.At > from && s.At <= sent {
			counted += float64(s.N)
		}
	}
	return refill.Span{Least: q.size.Value - t.count(sent.Add(-q.window)) - q.flying() + own, Most: q.size.Value - counted}
}

// sparing is how long a request waits in a window that is tested: the last keptUnits
// are spent one after the other, to see whether units come back meanwhile.
func (q *Limit) sparing(now meter.Instant) time.Duration {
	size := q.size.Value
	gap := dripPart / size
	if size >= 4*keptUnits {
		if q.level(now) > keptUnits {
			return 0
		}
		gap = max(1.25/size, 1.0/64)
	}
	return max(0, q.lastSent.Add(time.Duration(gap*float64(q.window))).Sub(now))
}

// dripping is how long a request waits for a bucket that is nearly empty; level is what
// may be spent of it. What it holds is stated in whole units and computed from there, so
// there may be one unit less. So the last requests go one after the other, a little faster
// than units come back.
func (q *Limit) dripping(now meter.Instant, cost, level float64) time.Duration {
	if level-cost >= 1 {
		return 0
	}
	gap := min(dripPart*cost/q.rate(), q.terms.MaxPause.Seconds())
	return max(0, q.lastSent.Add(time.Duration(gap*float64(time.Second))).Sub(now))
}
