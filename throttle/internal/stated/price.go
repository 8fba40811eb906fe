package stated

import (
	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	// pricedBy is about how many of the last answers make the mean cost of requests. It is
	// so many that one expensive request among cheap ones changes the mean little.
	pricedBy = 16

	// lackPart is how many times the mean cost a request is taken to need at most. If more
	// units were left, a refusal has another reason.
	lackPart = 4

	// dearer times what was left is what a refused request is taken to need, if the server
	// does not say. What it really needs is then found in a few steps.
	dearer = 1.5

	// mostVain is after how many refusals in a row, of requests for which there should have
	// been enough, units are taken not to come back as assumed.
	mostVain = 3
)

// A price is what requests cost in a limit's unit if their callers do not say. It is learned
// from answers: they state the cost, or what is left falls by it.
type price struct {
	mean    float64       // units; zero: not known
	answers int           // how many answers made the mean; at most pricedBy
	left    float64       // units left at the mark
	mark    meter.Instant // an earlier answer with which later ones are compared; zero: none
	since   int           // answers since mark
	lacked  meter.Instant // the last refusal because too little was left
	vain    int           // such refusals in a row, each of a request that was sent after the one before was heard
}

// Usual is about what a request costs, in units, if its caller does not say; zero: not known.
func (q *Limit) Usual() float64 { return q.price.mean }

// Price learns what requests cost from an answer to a request whose caller did not say. It is
// called before Weigh and Hear.
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
	left, ok := l.Left()
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
	case spent > 0: // otherwise one answer overtook another, or what is left is rounded
		p.add(spent/float64(p.since), p.since)
		p.left, p.mark, p.since = left, now, 0
	}
}

// fits reports whether a request of the cost that l states can be served within MaxPause. If
// not, it says nothing about the cost of others.
func (q *Limit) fits(l *headers.Limit) bool {
	left, _ := l.Left()
	return l.Cost.Value > 0 && !(l.Quota.Known && l.Cost.Value > l.Quota.Value) &&
		!(l.Refill.Known && l.Cost.Value-left > l.Refill.Value*q.terms.MaxPause.Seconds())
}

// add adds n requests of so many units each to the mean.
func (p *price) add(units float64, n int) {
	p.answers = min(p.answers+n, pricedBy)
	p.mean += (units - p.mean) * min(1, float64(n)/float64(p.answers))
}

// Lacked reports whether less was left than a refused request needs, and how many units that
// is. The refusal states l; the request was sent at sent, and its caller did not say what it
// costs. lacked is true only if there is no other reason, and if units come back all the time,
// so that it is known when there will be enough.
func (q *Limit) Lacked(now, sent meter.Instant, l *headers.Limit) (needs float64, lacked bool) {
	left, ok := l.Left()
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
