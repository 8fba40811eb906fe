package learntest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// A Case is one server, one network and one demand.
type Case struct {
	Kind, Dialect, Demand string
	Seed                  uint64
	MaxWait               time.Duration // sum of a call's waits
	server                *server
	dialect               *dialect
	trip, jitter, service Instant // shortest round trip, mean of what is added, work at the server
	unix                  Instant // the server's clock less the simulation's
	calls, workers        int
	arrivals              []Instant // nil: workers, each of which calls when its last call ended
	rate                  float64   // of the quota, a second
	changeAt              float64   // share of the calls before the quota changes; zero: it does not
}

// A Set says from what cases are drawn.
type Set struct {
	kinds    []string
	dialects []dialect
	odd      bool       // numbers that are not round
	rates    [2]float64 // a second
	trips    [2]float64 // in seconds
}

// Train and Test have different kinds, dialects and ranges: what was chosen on
// one is judged on the other.
var (
	trainKinds = []string{"bucket", "log", "window first", "window clock", "counter", "nginx", "two limits", "refused count", "others", "change", "at once", "block"}
	testKinds  = append([]string{"instances", "odd phase", "ban", "rearmed block", "counting window", "small bucket", "others more"}, trainKinds...)
)

func Train() Set {
	return Set{trainKinds, trainDialects, false, [2]float64{.5, 100}, [2]float64{.004, .3}}
}
func Test() Set { return Set{testKinds, testDialects, true, [2]float64{.2, 500}, [2]float64{.001, .8}} }

func between(r *rand.Rand, lo, hi float64) float64 {
	return lo * math.Pow(hi/lo, r.Float64())
}

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// Draw makes case number seed of a set.
func (s Set) Draw(seed uint64) *Case {
	r := rand.New(rand.NewPCG(seed, 4711))
	c := &Case{Seed: seed, Kind: pick(r, s.kinds...)}
	d := pick(r, s.dialects...)
	c.dialect, c.Dialect = &d, d.name
	c.trip = Instant(between(r, s.trips[0], s.trips[1]) * 1e9)
	c.jitter = Instant(float64(c.trip) * pick(r, .02, .1, .3))
	c.unix = Instant(1.7e18 + r.Float64()*1e15)
	c.rate = between(r, s.rates[0], s.rates[1])
	per := pick(r, 1.0, 1, 2, 5, 10, 10, 30, 60, 60, 300, 900, 3600)
	if s.odd {
		per = pick(r, 1.0, 2, 3, 4, 7, 10, 12, 20, 45, 60, 90, 600, 3600)
	}
	limit := s.number(r, max(1, c.rate*per))
	if limit > 5000 {
		limit, per = s.number(r, max(1, c.rate)), 1
	}
	c.rate = float64(limit) / per
	c.server = s.server(r, c, limit, Instant(per*1e9))
	c.server.rng = rand.New(rand.NewPCG(seed, 77))
	c.demand(r, limit, per)
	return c
}

// number is a limit of about x.
func (s Set) number(r *rand.Rand, x float64) int {
	if s.odd && r.IntN(2) == 0 {
		return int(math.Round(x))
	}
	unit := math.Pow(10, math.Floor(math.Log10(x)))
	best := 1.0
	for _, m := range []float64{1, 1.5, 2, 3, 4, 5, 6, 8, 10} {
		if v := m * unit; v >= 1 && math.Abs(math.Log(v/x)) < math.Abs(math.Log(best/x)) {
			best = v
		}
	}
	return int(best)
}

func (s Set) server(r *rand.Rand, c *Case, limit int, per Instant) *server {
	start := Instant(r.Int64N(int64(per)))
	aligned := per - (c.unix % per) - per // the phase of a window on whole multiples of per
	v := &server{}
	one := func(l ...limiter) *server { v.limits = l; return v }
	switch c.Kind {
	case "bucket":
		return one(&bucket{rate: c.rate, size: s.size(r, c.rate, .3, 10)})
	case "small bucket":
		return one(&bucket{rate: c.rate, size: s.size(r, c.rate, .05, .5)})
	case "nginx":
		return one(&bucket{rate: c.rate, size: 1 + float64(pick(r, 0, 5, 10, 20, 50))})
	case "log":
		return one(&slide{limit: limit, per: per})
	case "window first":
		return one(&window{limit: limit, per: per, first: true})
	case "window clock":
		return one(&window{limit: limit, per: per, start: aligned})
	case "odd phase":
		return one(&window{limit: limit, per: per, start: start - per})
	case "counter":
		return one(&counter{limit: limit, per: per, start: aligned})
	case "two limits":
		return one(&slide{limit: max(1, int(c.rate*3)), per: 1e9}, &window{limit: limit, per: per, first: true})
	case "refused count":
		return one(&slide{limit: limit, per: per, counted: true})
	case "counting window":
		return one(&window{limit: limit, per: per, first: true, counted: true})
	case "others", "others more":
		v.others = c.rate * pick(r, .2, .4)
		if c.Kind == "others more" {
			v.others = c.rate * .7
		}
		c.rate -= v.others
		return one(pick[limiter](r, &slide{limit: limit, per: per}, &bucket{rate: float64(limit) / time.Duration(per).Seconds(), size: max(2, c.rate)}))
	case "change":
		v.factor, c.changeAt = pick(r, .4, .5, 2, 4), between(r, .2, .5)
		return one(pick[limiter](r, &bucket{rate: c.rate, size: s.size(r, c.rate, .3, 3)}, &slide{limit: max(2, int(c.rate*2)), per: 2e9}))
	case "block", "rearmed block", "ban":
		v.block, v.patience, v.rearmed = Instant(pick(r, 2, 5, 10))*1e9, 1, c.Kind == "rearmed block"
		if c.Kind == "ban" {
			v.block, v.patience = 30e9, 6
		}
		return one(&window{limit: limit, per: per, first: true})
	case "instances":
		v.spread = pick(r, 2, 3, 4)
		for range v.spread {
			v.limits = append(v.limits, &slide{limit: max(1, limit/v.spread), per: per})
		}
		return v
	case "at once":
		v.atOnce = pick(r, 1, 2, 5, 10, 20)
		c.service = Instant(between(r, .02, 1) * 1e9)
		c.rate = float64(v.atOnce) / time.Duration(c.service+c.trip/2).Seconds()
		return v
	}
	panic("kind " + c.Kind)
}

// size is that of a bucket: so many seconds of its rate.
func (s Set) size(r *rand.Rand, rate, lo, hi float64) float64 {
	return float64(max(1, s.number(r, max(1, rate*between(r, lo, hi)))))
}

// demand draws who calls when. It lasts for some windows, and for so long that
// most of what is needed has to be waited for.
func (c *Case) demand(r *rand.Rand, limit int, per float64) {
	c.MaxWait = 10 * time.Minute
	if r.IntN(3) == 0 {
		c.MaxWait = 75 * time.Second
	}
	first := 0.0
	for _, l := range c.server.limits {
		first += max(1, l.told().limit)
	}
	most := c.MaxWait.Seconds() * .6 // of waiting, of an all-knowing client
	if len(c.server.limits) == 0 {
		first = 100 // nothing but requests at a time
	}
	c.calls = int(min(1500, max(30, first*pick(r, 1.2, 2.5, 4), c.rate*between(r, 3, 60))))
	switch r.IntN(3) {
	case 0, 1:
		c.Demand = "batch"
		c.workers = pick(r, 1, 5, 20, 50, 200)
		if per > most { // a second window is too far away
			c.calls = min(c.calls, max(1, int(first)))
		}
		c.workers = max(1, min(c.workers, int(c.rate*most), c.calls))
	default:
		load := pick(r, .3, .6, .8, .95, 1.2, 1.5)
		c.Demand = "below"
		if load > .85 {
			c.Demand = "about"
		}
		c.poisson(r, load, most, first, per)
	}
	if c.changeAt > 0 {
		c.changeAt *= float64(c.calls) / c.rate
		c.server.change = Instant(c.changeAt * 1e9)
	}
}

func (c *Case) poisson(r *rand.Rand, load, most, first, per float64) {
	if load > 1 { // the backlog is what is above the rate
		c.calls = min(c.calls, int(c.rate*most*load/(load-1)))
	}
	if per > most {
		c.calls = min(c.calls, max(1, int(first)))
	}
	burst := pick(r, 1, 1, 1, 5, 20)
	at := 0.0
	for i := 0; i < c.calls; {
		at += r.ExpFloat64() * float64(burst) / (c.rate * load)
		for j := 0; j < burst && i < c.calls; j++ {
			c.arrivals = append(c.arrivals, Instant(at*1e9))
			i++
		}
	}
}

// String says what a case is.
func (c *Case) String() string {
	s := fmt.Sprintf("case %d: %s, says %s; %s of %d", c.Seed, c.Kind, c.Dialect, c.Demand, c.calls)
	if c.workers > 0 {
		s += fmt.Sprintf(" from %d", c.workers)
	}
	s += fmt.Sprintf("; trip %v+%v, at work %v, waits up to %v;", time.Duration(c.trip).Round(time.Microsecond), time.Duration(c.jitter).Round(time.Microsecond), time.Duration(c.service).Round(time.Millisecond), c.MaxWait)
	for _, l := range c.server.limits {
		switch l := l.(type) {
		case *bucket:
			s += fmt.Sprintf(" %.4g/s bucket %g;", l.rate, l.size)
		case *window:
			s += fmt.Sprintf(" window %d per %v;", l.limit, time.Duration(l.per))
		case *slide:
			s += fmt.Sprintf(" log %d per %v;", l.limit, time.Duration(l.per))
		case *counter:
			s += fmt.Sprintf(" counter %d per %v;", l.limit, time.Duration(l.per))
		}
	}
	if c.server.atOnce > 0 {
		s += fmt.Sprintf(" %d at once;", c.server.atOnce)
	}
	return s
}
