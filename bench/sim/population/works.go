package population

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// works is for how long a server works on what it accepts, where that is more than a few
// milliseconds. It refuses at once. Language models, reports and searches are such servers. The
// zero works is a server that answers at once, or whose limit is on requests at a time.
type works struct {
	kind  string
	mean  time.Duration
	share func(r *rand.Rand) float64 // of the mean, for one call
}

// worksMost is the longest work on a call. With the round trip, no answer takes longer than the 30 s
// after which an attempt is given up unless something else is configured.
const worksMost = 20 * time.Second

// worksLong is the longest mean in train.
const worksLong = 3 * time.Second

// takes is the work on a call.
func (w *works) takes(seed, call uint64) time.Duration {
	return min(worksMost, time.Duration(float64(w.mean)*w.share(rand.New(rand.NewPCG(seed, call)))))
}

// class is a row of the tables.
func (w *works) class() string {
	switch {
	case w.kind == "":
		return "at once"
	case w.mean > worksLong:
		return "works for over 3 s, " + w.kind
	case w.mean > 500*time.Millisecond:
		return "works for .5 to 3 s, " + w.kind
	}
	return "works for up to .5 s, " + w.kind
}

func (w *works) String() string { return fmt.Sprintf("works for %v, %s", short(w.mean), w.kind) }

// worksOwn sets apart the dice of works: what else is drawn of a case does not depend on it.
const worksOwn = 0x9e3779b97f4a7c15

// worksMany is how many goroutines at most call a server that works for long.
const worksMany = 400

// slowed is the case with a server that works for long, for a third of the cases whose limit is not
// on requests at a time. Such a server gets the same calls, except those for which an all-knowing
// client would have to wait too long now. Half of the batches have so many goroutines that the limit
// can be used, or nearly so: with the others, as many as a server that answers at once has, they are
// mostly all under way, and a limit hardly matters.
func (c *Case) slowed() *Case {
	d := newDice(c.Set, c.Seed^worksOwn, c.Index)
	if c.slots || !d.chance(1./3) {
		return c
	}
	slow := *c
	w := d.works()
	seed := d.Uint64()
	if dense := d.between(.7, 2) * c.rate * (w.mean + c.RTT).Seconds(); c.Demand.Kind == "batch" && d.chance(.5) {
		slow.Demand.Workers = max(c.Demand.Workers, int(min(dense, worksMany)))
	}
	slow.Works, slow.work = w, func(call int) time.Duration { return w.takes(seed, uint64(call)) }
	if !slow.fit() {
		return c
	}
	return &slow
}

// works draws how a server works.
func (d *dice) works() (w works) {
	w.kind = either(d, []string{"constant", "exponential"}, []string{"one in ten long", "lognormal"})
	w.mean = seconds(d.spread(.05, worksLong.Seconds()))
	if d.test() && d.chance(.5) {
		w.mean = seconds(d.between(5, 15))
	}
	switch w.kind {
	case "constant":
		w.share = func(*rand.Rand) float64 { return 1 }
	case "exponential":
		w.share = (*rand.Rand).ExpFloat64
	case "one in ten long": // a cache answers the others
		w.mean = min(w.mean, 2*time.Second) // the long ones would be cut
		const quick = .05                   // of the mean
		w.share = func(r *rand.Rand) float64 {
			if r.IntN(10) == 0 {
				return 10 - 9*quick
			}
			return quick
		}
	case "lognormal":
		const sigma = 1. // one in ten takes twice the mean
		w.share = func(r *rand.Rand) float64 { return math.Exp(sigma*r.NormFloat64() - sigma*sigma/2) }
	}
	return w
}
