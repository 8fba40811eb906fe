package attribution

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A run is a number of 503s in a row without Retry-After or limits. There are three
// explanations: a limit is reached, the host is down, or the host fails at random. The
// likelihood of each is the probability with which it makes the run begin with this answer:
//
//   - A limit may have any size, each order of magnitude as likely. So the answer after
//     n good ones is the first beyond it with a probability of about 1/n.
//   - A host goes down once in a long time. The probability is the part of that time
//     which one request takes.
//   - A host that served some of the answers before and failed others fails so many in
//     a row with the probability that the beta-binomial distribution gives.
//
// So a host that was called for a few seconds and then refuses everything is taken for a
// limiter, and one that was called for longer is taken to be down. Later answers show whether
// that is right. A limiter accepts again when its window is over: if a later run lasts far
// longer than the earlier ones, the host is down. The host may also be down in the first run.
// If that lasts longer than requests wait, waiting is of no use, and the run is put down to a
// limit no longer. The zero run has heard nothing.
type run struct {
	good, bad float64       // answers before the run: the last ones, at most tossed
	n         int           // 503s in the run
	first     meter.Instant // when the earliest of their requests was sent
	begins    meter.Instant // when the run was put down to a limit; zero: it is not
	longest   time.Duration // the longest time from begins to the next acceptance; zero: none is known
	until     meter.Instant // until then the host is known to be a limiter
}

const (
	// overwhelming is how many times likelier than an outage and than chance a limit must
	// be. It is large because callers of a host that is down want to know at once, and
	// because a host that fails at random serves more without a pause. On train (see alike),
	// 100 instead of 1000 lost as many calls.
	overwhelming = 1000
	// between is the assumed time between two outages, which is short for most hosts. With
	// it, a host that was first called less than five seconds ago is taken for a limiter.
	// On train, 1 % of the calls to limiters of this kind are lost with it, 6 % with a
	// fifth of it, and 17 % without a verdict. A host that goes down so early is taken
	// for a limiter, too: its callers wait, and the more of them there are, the more often
	// one asks. With a far longer time, so would be a host that goes down later.
	between = 5000 * time.Second
	// failing is the first of the two parameters of the beta-binomial distribution, before
	// any answer; the second one is 1. It is small, because most hosts fail seldom. With 1,
	// a limit of 3 had to refuse fifteen in a row to be recognized; on train, calls of 29 of
	// 118 limiters were lost, and with .2 those of 23.
	failing = .2
	// tossed is how many of the last answers say how often a host fails. Package breaker
	// has the same number.
	tossed = 32
	// farLonger times the longest run, and someMore, is the longest time for which a run is
	// put down to a limit. Windows that begin by the clock may have been nearly over when
	// the limit was first reached, so the longest run may be far shorter than a window.
	farLonger = 4
	someMore  = 4 * time.Second
)

// A Past is what is known of a host before a run.
type Past struct {
	Since  meter.Instant // when the first request was sent; zero: not known
	Served float64       // requests served since then
	Waits  time.Duration // for how long requests may wait
}

// heard notes a 503 of the run, to a request sent at sent.
func (r *run) heard(sent meter.Instant) {
	if r.n++; r.n == 1 || sent < r.first {
		r.first = sent
	}
}

// served notes a good answer to a request sent at sent. It ends the run, unless the request
// was sent before the run began. first says that this was the first run which was put down to
// a limit and ended.
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

// limits reports whether the run, with one more 503 that is heard now, is put down to a limit.
func (r *run) limits(now meter.Instant, p Past) bool {
	switch {
	case r.begins != 0:
	case !r.proved(now) && !r.begun(now, p):
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

// proved reports whether a run was put down to a limit lately.
func (r *run) proved(now meter.Instant) bool { return r != nil && now < r.until }

// begun reports whether the run is put down to a limit for the first time, by p alone.
func (r *run) begun(now meter.Instant, p Past) bool {
	if p.Since == 0 || p.Served < 1 || time.Duration(now-p.Since) > between/overwhelming {
		return false
	}
	if r.good+r.bad == 0 {
		r.good = min(p.Served, tossed)
	}
	return r.chance()*overwhelming < 1/p.Served
}

// chance is the probability of the run, with one more 503, if the host fails at random.
func (r *run) chance() float64 {
	p := 1.
	for i := range min(r.n+1, tossed) {
		p *= (r.bad + failing + float64(i)) / (r.good + r.bad + 1 + failing + float64(i))
	}
	return p
}
