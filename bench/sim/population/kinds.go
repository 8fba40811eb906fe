package population

import (
	"fmt"
	"time"

	"github.com/weirhttp/weir/bench/sim/limit"
)

// A kind of server draws one limiter of its kind, and says it in words.
type kind struct {
	name string
	test bool // only in test
	draw func(d *dice) (limiter, string)
}

// kinds are those that the set has.
func kinds(set Set) (all []kind) {
	for _, k := range []kind{
		{"window by clock", false, func(d *dice) (limiter, string) { return fixed(d, d.window(), false) }},
		{"window from first request", false, func(d *dice) (limiter, string) { return fixed(d, d.window(), true) }},
		{"sliding log", false, func(d *dice) (limiter, string) { return slidingLog(d.window(), false) }},
		{"sliding counter", false, func(d *dice) (limiter, string) { return counter(d, d.window(), false) }},
		{"token bucket", false, func(d *dice) (limiter, string) { return bucket(d.bucket()) }},
		{"nginx limit_req", false, limitReq},
		{"two limits", false, twoLimits},
		{"concurrency", false, concurrency},
		{"limits by route", false, byRoute},
		{"instances", false, instances},
		{"refused requests count", false, counted},
		{"bans", false, bans},
		{"shared with others", false, shared},
		{"quota changes", false, changes},
		{"refill in steps", true, stepped},
		{"window in cells", true, cells},
		{"three limits in turn", true, threeLimits},
		{"blocked at first refusal", true, blocked},
		{"refusal restarts the window", true, restarts},
	} {
		if !k.test || set == Test {
			all = append(all, k)
		}
	}
	return all
}

// one is a limiter with a single gate.
func one(w windowed, gate func() limit.Limiter) limiter {
	return limiter{gates: func() []limit.Limiter { return []limit.Limiter{gate()} },
		rate: float64(w.n) / w.per.Seconds(), burst: float64(w.n), longest: w.per, talks: true}
}

// A windowed limit is n requests per per.
type windowed struct {
	n   int
	per time.Duration
}

func (w windowed) String() string { return fmt.Sprintf("%d per %v", w.n, short(w.per)) }

// short leaves out the zeros that Duration writes.
func short(d time.Duration) string {
	switch {
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprint(int(d/time.Hour), "h")
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprint(int(d/time.Minute), "m")
	}
	return d.Round(time.Millisecond).String()
}

// window draws a limit of a window. Those beyond 600 would hardly ever bind.
func (d *dice) window() windowed {
	lo, hi := d.rate()
	per := d.period()
	least := lo * per.Seconds()
	return windowed{d.count(least, max(1.5*least, min(600, hi*per.Seconds()))), per}
}

// slow draws a limit of a window that can be reached and left again soon.
func (d *dice) slow(most float64) windowed {
	lo, _ := d.rate()
	per := either(d, []time.Duration{1e9, 2e9, 5e9, 10e9, 15e9, 30e9}, []time.Duration{3e9, 7e9, 12e9, 20e9, 60e9})
	return windowed{d.count(lo*per.Seconds(), most*per.Seconds()), per}
}

// bucket draws a bucket of a fifth of a second to ten seconds of its rate.
func (d *dice) bucket() (rate, size float64) {
	lo, hi := d.rate()
	rate = d.number(lo, hi)
	return rate, float64(d.count(max(1, rate/5), max(1, min(600, rate*10))))
}

func fixed(d *dice, w windowed, first bool) (limiter, string) {
	phase, start := d.some(w.per), "from the first request"
	if !first {
		start = fmt.Sprintf("by the clock, phase %.0f %%", 100*phase.Seconds()/w.per.Seconds())
	}
	return one(w, func() limit.Limiter { return &limit.Fixed{N: w.n, Per: w.per, Phase: phase, First: first} }), fmt.Sprint("window of ", w, " ", start)
}

func slidingLog(w windowed, counted bool) (limiter, string) {
	return one(w, func() limit.Limiter { return &limit.Log{N: w.n, Per: w.per, Counted: counted} }), fmt.Sprint("sliding log of ", w)
}

func counter(d *dice, w windowed, counted bool) (limiter, string) {
	phase := d.some(w.per)
	l := one(w, func() limit.Limiter { return &limit.Counter{N: w.n, Per: w.per, Phase: phase, Counted: counted} })
	l.longest = 2 * w.per
	return l, fmt.Sprint("sliding counter of ", w)
}

func bucket(rate, size float64) (limiter, string) {
	return limiter{gates: func() []limit.Limiter { return []limit.Limiter{&limit.Bucket{Rate: rate, Size: size}} },
		rate: rate, burst: size, longest: seconds(1 / rate), talks: true}, fmt.Sprintf("bucket of %g at %.4g/s", size, rate)
}

func limitReq(d *dice) (limiter, string) {
	lo, hi := d.rate()
	rate, burst := d.number(lo, min(hi, 100)), 0
	if d.chance(.75) {
		burst = d.count(max(1, rate/5), max(2, rate*5))
	}
	paced := burst > 0 && d.chance(.3)
	l, _ := bucket(rate, 1)
	l.talks, l.burst = false, float64(burst+1)
	l.gates = func() []limit.Limiter {
		return []limit.Limiter{&limit.Bucket{Rate: rate, Size: float64(burst + 1), Paced: paced}}
	}
	text := fmt.Sprintf("limit_req %.4g/s burst %d", rate, burst)
	if burst > 0 && !paced {
		text += " nodelay"
	}
	return l, text
}

// longer draws a limit of a longer window that binds below w.
func (d *dice) longer(w windowed) windowed {
	per := time.Duration(float64(w.per) * d.spread(4, 20)).Round(time.Second)
	return windowed{max(w.n+1, int(float64(w.n)*per.Seconds()/w.per.Seconds()*d.between(.2, .8))), per}
}

// simple draws the limiter of one window, of the ways to keep it.
func (d *dice) simple(w windowed) (func() limit.Limiter, string) {
	phase := d.some(w.per)
	switch d.IntN(4) {
	case 0:
		return func() limit.Limiter { return &limit.Fixed{N: w.n, Per: w.per, Phase: phase} }, fmt.Sprint("window by the clock of ", w)
	case 1:
		return func() limit.Limiter { return &limit.Fixed{N: w.n, Per: w.per, First: true} }, fmt.Sprint("window from first request of ", w)
	case 2:
		return func() limit.Limiter { return &limit.Bucket{Rate: float64(w.n) / w.per.Seconds(), Size: float64(w.n)} }, fmt.Sprint("bucket of ", w)
	default:
		return func() limit.Limiter { return &limit.Log{N: w.n, Per: w.per} }, fmt.Sprint("sliding log of ", w)
	}
}

// several draws limits at once, each of them tighter in the long run.
func several(d *dice, n int, charged bool) (limiter, string) {
	var gates []func() limit.Limiter
	var text string
	w := d.slow(20)
	first := w
	for i := range n {
		if i > 0 {
			w = d.longer(w)
			text += " and "
		}
		g, s := d.simple(w)
		gates, text = append(gates, g), text+s
	}
	l := one(w, func() limit.Limiter {
		a := &limit.All{Charged: charged}
		for _, g := range gates {
			a.Of = append(a.Of, g())
		}
		return a
	})
	l.burst = float64(first.n)
	return l, text
}

func twoLimits(d *dice) (limiter, string)   { return several(d, 2, false) }
func threeLimits(d *dice) (limiter, string) { return several(d, 3, true) }
