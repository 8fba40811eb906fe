package attribution

import (
	"math"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A room weighs whether a host that refuses has a limit, so that room comes back with time,
// against what else may be the reason: chance and outages, or how many requests are under way.
// A host that is up fails by chance, as often as among the last answers; one that is down fails
// always, until the outage is over.
//
// A limit is taken for a bucket, whatever its rate and size. For each of many rates the room keeps
// between which bounds the units lie that the bucket has room for: a refusal shows that it is less
// than one unit, and an acceptance that it was one or more. Each rate has the weight that its
// predictions have earned.
type room struct {
	of   [rates]space
	all  coinTally     // the last answers of the host while it was up
	down float64       // how likely it is down
	at   meter.Instant // when the last request arrived, about: half way of its trip
	odds [2]float64    // for chance and outages, and for load: natural logarithms
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
	// moves is how likely the rate is another one from one answer to the next, or that the host has
	// gone down. Both are seldom.
	moves = .001
	// ends is how likely an outage is over from one answer to the next. After some twenty bad
	// answers the circuit is open, and the next one comes much later.
	ends = .02
	// late is which part of the answers during an outage are good: of requests that the host served
	// before, or that one of its instances serves.
	late = .01
	// onTheWay is which part of its time an answer's request may arrive earlier or later than
	// others of the same time.
	onTheWay = .25
)

// begin notes the first refusal, which came after t.Good answers. It is no evidence: that it comes
// after so many is about as likely by chance as with a limit of any size. Nor does it count as
// chance, as it may be an outage's first.
func (r *room) begin(t Tossed) {
	for i := range r.of {
		r.of[i] = space{0, 1, 1. / rates}
	}
	r.all, r.at, r.down = coinTally{float32(min(t.Good, lastly)), 0}, t.arrived(), moves
}

// toss learns from a later answer, to which load gives this probability.
func (r *room) toss(t Tossed, load float64) {
	one, failed := r.outage(t.Bad)
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
		failed = max(failed, p) // hardly any fail by chance, so it is no evidence that all are served
	}
	weigh(&r.odds[0], failed, p)
	weigh(&r.odds[1], load, p)
}

// outage learns from an answer as of a host that may be down. It returns the probability of that
// answer by chance alone, and by chance or an outage.
func (r *room) outage(bad bool) (chance, either float64) {
	if r.all.bad+r.all.good > lastly {
		r.all.good, r.all.bad = r.all.good/2, r.all.bad/2
	}
	chance = likely((float64(r.all.bad)+failing)/(float64(r.all.good+r.all.bad)+1+failing), bad)
	down := (r.down*(1-ends) + (1-r.down)*moves) * likely(1-late, bad)
	up := (r.down*ends + (1-r.down)*(1-moves)) * chance
	either = down + up
	r.down = down / either
	if up := float32(1 - r.down); bad {
		r.all.bad += up
	} else {
		r.all.good += up
	}
	return chance, either
}

// accepts is the probability that a request is accepted, if room is known up to slack.
func (x space) accepts(slack float64) float64 {
	least, most := float64(x.least)-slack, float64(x.most)+slack
	return max(0, min(1, (most-1)/max(1e-6, most-least)))
}
