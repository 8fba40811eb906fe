package learn

import (
	"math"
	"slices"
)

// How many requests are at the server is not how many are under way: some are on their way to
// it, and some on the way back. Those that begin together, as after a pause, are all there at
// once. So they are counted for what is over, and are estimated one by one for what is to come.

// served is how long accepted requests took, in nanoseconds: round trips, with the time for which
// the server works. Refused ones are answered without work.
type served struct {
	mean, deviation float64 // deviation is the mean distance from mean
	n               float64 // samples, up to servedOf
}

const (
	// servedOf is about how many answers the means are of. Of what begins together the quick ones
	// are answered first, and the mean of a few would follow them.
	servedOf = 64
	// heardOf is how many answers the means of trips are of, from which served begins.
	heardOf = 8
)

func (s *served) sample(d float64) {
	part := 1.0 / servedOf // so that nothing is divided for most samples
	if s.n < servedOf {
		s.n++
		part = 1 / s.n
	}
	e := d - s.mean
	s.mean += e * part
	s.deviation += (math.Abs(e) - s.deviation) * part
}

// into says for how long the server works: for a fixed time, and an exponential one beyond that.
// This fits servers that work as long for each request, and those where chance decides.
func (s *served) into(t *timing) {
	mean := max(1, s.mean)
	works := max(0, mean-float64(2*t.half))
	t.work = works / mean
	t.varies = min(works, math.E/2*s.deviation) // the mean distance of an exponential time from its mean is 2/e of that
	t.fixed = Instant(works - t.varies)
}

// there is how likely a request that is under way, and was sent age ago, is at the server when one
// arrives that is sent now.
func (t *timing) there(age Instant) float64 {
	switch {
	case age <= t.fixed:
		return 1
	case t.varies == 0:
		return 0
	}
	return math.Exp(-float64(min(age-t.fixed, 2*t.half)) / t.varies)
}

// atWork is how many of busy requests under way are expected to be at the server when one arrives
// that is sent now, and the standard deviation of that.
func (b *bank) atWork(now Instant, busy int) (n, deviation float64) {
	variance := 0.0
	for i := len(b.log) - 1; i >= 0 && busy > 0; i-- {
		if l := &b.log[i]; l.under > 0 {
			k := float64(min(int(l.under), busy))
			p := b.there(now - l.last)
			busy -= int(k)
			n, variance = n+k*p, variance+k*p*(1-p)
		}
	}
	return n + b.work*float64(busy), math.Sqrt(variance) // tries are not in the log
}

// mostAtWork is how many of those under way are at the server at most when a request arrives that
// is sent now, so that another free place would cost more than the refusals that it avoids. These
// cost units, as what the server could have done meanwhile.
func (b *bank) mostAtWork(now Instant, units float64) float64 {
	n, deviation := b.atWork(now, b.busy)
	return min(n+(doubtOfOne+doubtOfMore*math.Log(max(1, units)))*deviation, float64(b.busy))
}

// How many deviations are left free. If x are, a part x*d of the limit is, where d is the
// deviation as a part of the limit; and of all requests the part P(x) is refused which the normal
// distribution has beyond x. Together they cost the least for about these x where d is a tenth.
const (
	doubtOfOne  = 1.25 // if a refusal costs no more than the place of one request
	doubtOfMore = .35  // for each time that it costs e times as much
)

// left notes, for what was sent after a request that was sent at sent and is answered now, that
// the server was done with it when they arrived. It was never there if it was refused.
func (r *record) left(now, sent, half Instant, refused bool) {
	since := sent
	if !refused {
		since = max(sent, now-2*half)
	}
	for i := len(r.log) - 1; i >= 0 && r.log[i].at > since; i-- {
		if l := &r.log[i]; l.gone < math.MaxUint8 {
			l.gone++
		}
	}
}

// never notes that a request of entry x was not at work when those arrived that were sent with it or
// later, as far as is known: it was not sent after all, or what refused it is none of the limits that
// are looked for here.
func (r *record) never(x *entry) {
	for i := len(r.log) - 1; i >= 0; i-- {
		l := &r.log[i]
		if theirs := int(l.others() + .5); l.busy > 0 {
			l.busy--
			l.theirs = part(theirs, int(l.busy))
		}
		if l == x {
			return
		}
	}
}

// guessGone does what left would have done for a log of which no answers were noted. What is under
// way now was at the server when a request arrived whose answer could have been heard by now.
func (b *bank) guessGone(now Instant) {
	for i := range b.log {
		l := &b.log[i]
		heard := l.last <= now-2*b.half
		busy, there := int(l.busy), 0.0
		for k := i; k >= 0 && busy > 0; k-- {
			x := &b.log[k]
			n, sure := int(x.under)+int(x.taken), 0
			if k == i {
				n-- // the request itself
			}
			n = min(n, busy)
			busy -= n
			if heard {
				sure = min(n, int(x.under))
			}
			there += float64(sure) + float64(n-sure)*b.there(l.last-x.last)
		}
		l.gone = uint8(min(math.MaxUint8, float64(int(l.busy)-busy)-there+.5))
	}
}

// level is how many requests were at the server when the last of l arrived, with that, and how
// many of these were of this process. most is the latter if none had left.
func (l *entry) level(t *timing) (all, own, most float64) {
	others := l.others()
	most = max(0, float64(l.busy)+1-float64(l.refused)-others) // those that were sent together and refused were not at work at the same time
	own = max(0, most-float64(l.gone))
	return own + t.work*others, own, most
}

// others is how many of those under way other processes had sent.
func (l *entry) others() float64 { return float64(l.busy) * float64(l.theirs) / math.MaxUint8 }

// Beside is when one more request may go beside those under way, so that no more are at the server
// than it has borne at a time. It holds whatever limit is likeliest, and when none is trusted: of many
// that are sent at once after a wait, a limit on requests at a time would have most wait as long once
// more. It ends slowly: each time that nothing was refused for as long as the server asked to wait
// last, twice as many may go. It does not hold if another limit explains better what was refused.
func (l *Learner) Beside(now Instant) Instant {
	m := l.mind
	if m == nil || m.bank.paused == 0 {
		return now
	}
	b := &m.bank
	if b.stale {
		b.refit()
	}
	i := slices.IndexFunc(b.of, func(c candidate) bool { return c.family == atOnce })
	if i < 0 || !m.explains(&b.of[i]) && b.of[i].against > b.of[0].against {
		return now
	}
	c := b.of[i]
	c.size *= math.Exp2(float64(max(0, (now-m.refused)/b.paused-1)))
	if float64(b.busy) < c.size {
		return now
	}
	return b.ready(&c, now)
}
