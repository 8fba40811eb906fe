package population

import (
	"math/rand/v2"
	"time"
)

// Draw is a case of the set. The same three always give the same one.
func Draw(set Set, seed uint64, index int) *Case { return drawn(set, seed, index).slowed() }

// drawn is the case if its server does not work for long.
func drawn(set Set, seed uint64, index int) *Case {
	d := newDice(set, seed, index)
	for {
		if c := d.draw(seed, index); c != nil {
			return c
		}
	}
}

// draw makes a case, or none if what was drawn tells nothing.
func (d *dice) draw(seed uint64, index int) *Case {
	c := &Case{Set: d.set, Seed: seed, Index: index}
	all := kinds(d.set)
	k := all[d.IntN(len(all))]
	c.Kind = k.name
	c.limiter, c.Limit = k.draw(d)
	if d.chance(2. / 3) {
		c.Wait = 10 * time.Minute
	}
	d.network(c)
	d.dialect(c)
	d.demand(c)
	if !c.fit() {
		return nil
	}
	return c
}

// network draws what lies before the server, and its clock.
func (d *dice) network(c *Case) {
	c.RTT = seconds(d.spread(.001, .4))
	if d.test() {
		c.RTT = seconds(d.spread(.001, .8))
	}
	c.Jitter = either(d, []float64{0, .05, .2}, []float64{.5})
	c.Skew = d.some(100*time.Millisecond) - 50*time.Millisecond
	if d.chance(.3) {
		c.Skew = d.some(40*time.Second) - 20*time.Second
	} else if d.test() && d.chance(.15) {
		c.NoDate = true
	}
	if c.work == nil {
		base, seed := d.spread(.001, .05), d.Uint64()
		c.work = func(k int) time.Duration {
			return seconds(base * rand.New(rand.NewPCG(seed, uint64(k))).ExpFloat64())
		}
	}
}

// dialect draws one that a server of this kind speaks.
func (d *dice) dialect(c *Case) {
	for {
		all := dialects(d.set)
		c.Dialect = all[d.IntN(len(all))]
		if !c.Dialect.states || c.talks {
			break
		}
	}
	c.Everywhere, c.Hinted = d.chance(.6), d.chance(.5)
}

// demand draws what the program wants.
func (d *dice) demand(c *Case) {
	most := 1000.
	if c.step > 0 {
		most = 2500 // enough to see the new rate
	}
	lasts := d.spread(10, 200) // seconds
	calls := min(most, c.burst*d.between(.5, 2)+c.rate*lasts)
	if c.step > 0 {
		calls = min(most, c.burst+c.rate*c.step.Seconds()+c.risen*d.between(40, 90))
	}
	w := &c.Demand
	w.Calls = max(30, int(calls))
	workers := 100.
	if d.test() {
		workers = 200
	}
	switch x := d.Float64(); {
	case x < .65 || c.step > 0:
		w.Kind, w.Workers = "batch", max(1, int(d.spread(1, workers)))
	case x < .85:
		w.Kind, w.Load = "Poisson", d.load()
		d.poisson(c)
	default:
		w.Kind, w.Load = "bursts", d.load()
		d.bursts(c)
	}
	routes := len(c.gates())
	for range w.Calls {
		w.Routes = append(w.Routes, d.IntN(routes))
	}
}

func (d *dice) load() float64 {
	if d.test() {
		return d.between(.3, 1.5)
	}
	return d.between(.5, 1.3)
}

func (d *dice) poisson(c *Case) {
	t := 0.
	for range c.Demand.Calls {
		t += d.ExpFloat64() / (c.Demand.Load * c.rate)
		c.Demand.Wants = append(c.Demand.Wants, seconds(t))
	}
}

// bursts are of one size, and as far apart as the load says.
func (d *dice) bursts(c *Case) {
	w := &c.Demand
	size := max(2, min(w.Calls/3, int(d.spread(2, max(5, min(200, 2*c.burst))))))
	apart := float64(size) / (w.Load * c.rate)
	for k := range w.Calls {
		w.Wants = append(w.Wants, seconds(float64(k/size)*apart))
	}
}

// patience is the share of the configured wait that an all-knowing client may
// need. The rest is for those who have to find things out.
const patience = .4

// fit cuts the demand to what can be served in the configured wait, and
// reports whether enough of it is left. A limit that refuses for about as long
// as one may wait is not reached at all: whoever meets it is lost, and only an
// all-knowing client would not.
func (c *Case) fit() bool {
	wait := c.Wait
	if wait == 0 {
		wait = 75 * time.Second
	}
	most := time.Duration(patience * float64(wait))
	idle := c.longest > 2*most
	if idle {
		most = 0
	}
	w := &c.Demand
	for {
		late := len(w.Routes)
		for k, s := range c.Ideal().Calls {
			if s.waited > most {
				late = min(late, k)
			}
		}
		switch {
		case late == w.Calls:
			return c.telling(idle)
		case w.Kind == "batch" && w.Workers > 1 && !idle:
			w.Workers /= 2
		case late < 20:
			return false
		default:
			w.Calls, w.Routes = late, w.Routes[:late]
			if w.Load > 0 {
				w.Wants = w.Wants[:late]
			}
		}
	}
}

// telling reports whether the case tells something. Of those whose limit is not
// reached a quarter is kept: nothing may be invented there. After a rise the
// all-knowing client must have had the time to show the new rate.
func (c *Case) telling(idle bool) bool {
	if idle && c.Index%4 != 0 {
		return false
	}
	return c.Demand.Calls >= 20 && (c.step == 0 || c.Ideal().Calls[c.Demand.Calls-1].done > c.step+c.span)
}
