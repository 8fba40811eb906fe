package stated

import (
	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	// pricedBy is how many of the last answers make the mean of what requests cost, about:
	// enough for one dear request among cheap ones to change little.
	pricedBy = 16

	// lackPart is how many times the mean a request may be thought to need. What is refused
	// while more is left is refused for another reason.
	lackPart = 4

	// dearer is by how much more than was left a refused request is thought to need, if the
	// server does not say: what it needs is found in a few steps.
	dearer = 1.5

	// mostVain refusals one after the other of requests that were thought to have enough, and
	// none accepted between, show that no more flows in as it was thought.
	mostVain = 3
)

// A price is what requests cost in a limit's unit whose callers do not say that, as far as
// answers show it: by what they say that they cost, or by how much less is left.
type price struct {
	mean    float64       // units; zero: not known
	answers int           // that made the mean; at most pricedBy
	left    float64       // what was left at the mark
	mark    meter.Instant // zero: none
	since   int           // answers since
	lacked  meter.Instant // the last refusal for want of units
	vain    int           // such refusals since one was accepted, each of a request sent after the last
}

// Usual is what a request costs, about, whose caller does not say that; zero: nobody knows.
func (q *Limit) Usual() float64 { return q.price.mean }

// Price learns what requests cost from an answer to one whose caller did not say it. It
// comes before Weigh and Hear.
func (q *Limit) Price(now meter.Instant, l *headers.Limit, refused bool) {
	p := &q.price
	if !refused {
		p.vain = 0
	}
	if l.Cost.Known {
		if q.fits(l) {
			p.add(l.Cost.Value, 1)
		}
		return
	}
	left, ok := Remaining(l)
	if !ok || refused {
		return
	}
	spent := p.left - left
	if q.flows() {
		spent += q.rate() * now.Sub(p.mark).Seconds()
	}
	p.since++
	switch {
	case p.mark == 0 || -spent > q.sizeOr(0)/risePart || p.since > pricedBy && spent <= 0: // a window began, or it was full
		p.left, p.mark, p.since = left, now, 0
	case spent > 0: // else one answer overtook another, or what is left is rounded
		p.add(spent/float64(p.since), p.since)
		p.left, p.mark, p.since = left, now, 0
	}
}

// fits reports that a request may ever get what l says that it costs, and within the longest
// wait that one answer is believed about. What does not fit says nothing of others.
func (q *Limit) fits(l *headers.Limit) bool {
	left, _ := Remaining(l)
	return l.Cost.Value > 0 && !(l.Quota.Known && l.Cost.Value > l.Quota.Value) &&
		!(l.Refill.Known && l.Cost.Value-left > l.Refill.Value*q.terms.MaxPause.Seconds())
}

// add takes n requests that cost so many units each into the mean.
func (p *price) add(units float64, n int) {
	p.answers = min(p.answers+n, pricedBy)
	p.mean += (units - p.mean) * min(1, float64(n)/float64(p.answers))
}

// Lacked reports whether a refusal that states l, of a request that was sent at sent and
// whose caller did not say what it costs, has no other reason than that less was left than
// it needs, and how much that is. As more flows in all the time, it is known when there
// will be enough.
func (q *Limit) Lacked(now, sent meter.Instant, l *headers.Limit) (needs float64, lacked bool) {
	left, ok := Remaining(l)
	if !ok || !q.guessed || !q.flows() {
		return 0, false
	}
	needs, lacked = max(q.price.mean, dearer*left), left < lackPart*q.price.mean
	if l.Cost.Known {
		needs, lacked = l.Cost.Value, l.Cost.Value > left && q.fits(l)
	}
	if lacked && sent >= q.price.lacked {
		q.price.lacked = now
		q.price.vain++
	}
	return needs, lacked && q.price.vain <= mostVain
}
