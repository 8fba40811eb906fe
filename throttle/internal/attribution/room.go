package attribution

import (
	"math"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A room weighs whether a host that refuses has a limit, so that room comes back with time,
// against what else may be the reason: chance, as often as among the last answers; an outage,
// after whose first bad answer the others are bad, too; and how many requests are under way.
//
// A limit is taken for a bucket, whatever its rate and size. For each of many rates the room keeps
// between which bounds the units lie that the bucket has room for: a refusal shows that it is less
// than one unit, and an acceptance that it was one or more. Each rate has the weight that its
// predictions have earned.
type room struct {
	of   [rates]space
	all  coinTally     // the last answers
	at   meter.Instant // when the last request arrived, about: half way of its trip
	odds [3]float64    // for chance, for outages and for load: natural logarithms
}

// A space is the room that a bucket of one rate has, and how likely that rate is.
type space struct{ least, most, weight float32 }

const (
	// rates go from one in a minute to some three thousand a second, two to an octave. So each
	// stands for those that are up to a fifth (offRate) slower and faster.
	rates     = 36
	leastRate = 1.0 / 64
	offRate   = 1.19
	// stray is the part of the answers that are chance for all that a bucket can tell, as other
	// clients use it, or answers overtake one another.
	stray = .08
	// lastly is how many of the last answers say how often a host fails by chance. It is small, so
	// that one which begins to fail is soon known to.
	lastly = 64
	// moves is how likely the rate is another one from one answer to the next.
	moves = .001
	// onTheWay is which part of its time an answer's request may arrive earlier or later than
	// others of the same time.
	onTheWay = .25
)

// begin notes the first refusal, which came after t.Good answers. It is no
// evidence: that it comes after so many is about as likely by chance as with a limit of any size.
func (r *room) begin(t Tossed) {
	for i := range r.of {
		r.of[i] = space{0, 1, 1. / rates}
	}
	r.all, r.at = coinTally{float32(min(t.Good, lastly)), 1}, t.arrived()
}

// toss learns from a later answer, to which outages and load give these probabilities.
func (r *room) toss(t Tossed, outage, load float64) {
	if r.all.bad+r.all.good > lastly {
		r.all.good, r.all.bad = r.all.good/2, r.all.bad/2
	}
	one := likely((float64(r.all.bad)+failing)/(float64(r.all.good+r.all.bad)+1+failing), t.Bad)
	r.all.count(t.Bad)
	at := t.arrived()
	p, since := 0., max(0, at.Sub(r.at).Seconds())
	r.at = max(r.at, at)
	rate := leastRate
	for i := range r.of {
		x := &r.of[i]
		x.least = float32(min(1, float64(x.least)+rate*since/offRate)) // a bucket may hold no more than one
		x.most += float32(rate * since * offRate)
		x.weight *= float32(stray*one + (1-stray)*likely(1-x.accepts(rate*onTheWay*t.Took.Seconds()), t.Bad))
		if p += float64(x.weight); t.Bad {
			x.most = min(x.most, 1)
		} else {
			x.least, x.most = max(x.least, 1)-1, max(x.most, 1)-1
		}
		rate *= math.Sqrt2
	}
	for i := range r.of {
		r.of[i].weight = (1-moves)*r.of[i].weight/float32(p) + moves/rates
	}
	if !t.Bad && r.all.bad < 1 {
		outage = max(outage, p) // all are served: that is no evidence of room
	}
	for i, q := range [...]float64{one, outage, load} {
		r.odds[i] = max(-mostSure, min(r.odds[i]+math.Log(q/p), mostSure))
	}
}

// accepts is the probability that a request is accepted, if room is known up to slack.
func (x space) accepts(slack float64) float64 {
	least, most := float64(x.least)-slack, float64(x.most)+slack
	return max(0, min(1, (most-1)/max(1e-6, most-least)))
}
