package attribution

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A run is 503s in a row that say no more. Three things explain them: a limit is
// reached, the host is down, or it fails at random and this is bad luck. Each is as
// likely as the probability that it makes the run begin with just this answer:
//
//   - A limit may have any size, each order of magnitude as likely. So the answer after
//     n good ones is the first beyond it with a probability of about 1/n.
//   - A host goes down once in a long time. The probability is the part of that time
//     which one request takes.
//   - A host that served some of the answers before and failed others fails so many in
//     a row with the probability that the beta-binomial distribution gives.
//
// So a host that was called for a few seconds and then refuses all is a limiter, and one
// that was called for longer is down. What follows proves it. A limiter accepts again when
// its window is over: if a later run lasts far longer than those that ended so, the host
// is down. It may be down in the first run, too. If that lasts for longer than requests
// wait, waiting for it helps nobody. The zero run has heard nothing.
type run struct {
	good, bad float64       // answers before, as many of the last as tossed
	n         int           // of the run
	first     meter.Instant // when the earliest of these was sent
	begins    meter.Instant // when the run was first put down to a limit; zero: it is not
	longest   time.Duration // from begins to the next acceptance; zero: none came, or there was no such run
	until     meter.Instant // the host is known to be a limiter
}

const (
	// overwhelming is by how much a limit must be likelier than an outage, because
	// callers of a host that is down want to know at once, and than chance, because
	// a host that fails at random serves more if it is not paused. On train, 100 in
	// the place of 1000 lost as many calls.
	overwhelming = 1000
	// between is the time between two outages. More than an hour is short for most
	// hosts: with it, a host that was first called less than five seconds ago is taken
	// for a limiter. On train, 1 % of the calls to limiters that refuse so are lost with
	// it, 6 % with a fifth of it, and 17 % without a verdict. A host that goes down so
	// early is taken for a limiter, too: its callers wait, and the more of them there
	// are the more often one asks. With far longer ones, hosts would be that go down
	// while somebody is looking at them.
	between = 5000 * time.Second
	// failing is the weight of the guess that a host fails, against 1 that it does not,
	// before it has: most do so seldom. With 1, as if any probability were as likely,
	// a limit of 3 had to refuse fifteen in a row to be one; on train, the calls of 29
	// limiters of 118 were lost, and with .2 those of 23.
	failing = .2
	// tossed is how many answers say how often a host fails, as in package breaker.
	tossed = 32
	// farLonger times the longest run, and someMore, is no limit's any more: windows by
	// a clock may have been all but over when they were first spent.
	farLonger = 4
	someMore  = 4 * time.Second
)

// A Past is what is known of a host before a run.
type Past struct {
	Since  meter.Instant // the first request; zero: nobody knows
	Served float64       // requests since then
	Waits  time.Duration // is for how long requests may wait
}

// heard takes in a 503 that says no more, to a request sent at sent.
func (r *run) heard(sent meter.Instant) {
	if r.n++; r.n == 1 || sent < r.first {
		r.first = sent
	}
}

// served takes in a good answer to a request sent at sent. It ends the run, unless the
// request went before the others. first says that it is the first that was put down to a
// limit.
func (r *run) served(sent meter.Instant) (first bool) {
	if r.good++; r.n > 0 && sent > max(r.first, r.begins) {
		if r.begins == 0 {
			r.bad += float64(r.n)
		} else {
			first = r.longest == 0
			r.longest = max(r.longest, time.Duration(sent-r.begins))
		}
		r.n, r.begins = 0, 0
	}
	if all := r.good + r.bad; all > tossed {
		r.good, r.bad = r.good*tossed/all, r.bad*tossed/all
	}
	return first
}

// limits reports whether the run, and one more that is heard now, are put down to a
// limit.
func (r *run) limits(now meter.Instant, p Past) bool {
	switch {
	case r.begins != 0:
	case now >= r.until && !r.begun(now, p):
		return false
	default:
		r.begins = now
	}
	most := p.Waits
	if r.longest > 0 {
		most = farLonger*r.longest + someMore
	}
	if time.Duration(now-r.begins) > most {
		*r = run{good: r.good, bad: r.bad}
		return false
	}
	r.until = now.Add(Remembered)
	return true
}

// begun reports whether a host of which nothing is known but its past begins to limit.
func (r *run) begun(now meter.Instant, p Past) bool {
	if p.Since == 0 || p.Served < 1 || time.Duration(now-p.Since) > between/overwhelming {
		return false
	}
	if r.good+r.bad == 0 {
		r.good = min(p.Served, tossed)
	}
	return r.chance()*overwhelming < 1/p.Served
}

// chance is how likely a host that fails at random makes the run, and one more.
func (r *run) chance() float64 {
	p := 1.
	for i := range min(r.n+1, tossed) {
		p *= (r.bad + failing + float64(i)) / (r.good + r.bad + 1 + failing + float64(i))
	}
	return p
}
