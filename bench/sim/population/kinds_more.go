package population

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weirhttp/weir/bench/sim/limit"
)

func concurrency(d *dice) (limiter, string) {
	n, mean := d.count(1, 50), d.spread(.05, 2)
	seed := d.Uint64()
	work := func(k int) time.Duration {
		return seconds(mean * (.5 + rand.New(rand.NewPCG(seed, uint64(k))).Float64()))
	}
	return limiter{
		gates: func() []limit.Limiter { return []limit.Limiter{&limit.Slots{N: n, Work: work}} },
		rate:  float64(n) / mean, burst: float64(n), longest: seconds(1.5 * mean),
		work: func(int) time.Duration { return 0 }, slots: true,
	}, fmt.Sprintf("%d at a time, each of some %.2f s", n, mean)
}

// byRoute is a limit for each route, within a factor of five of one another.
func byRoute(d *dice) (limiter, string) {
	n := 2 + d.IntN(3)
	base := d.slow(10)
	var gates []func() limit.Limiter
	text, least := "", 0
	l := limiter{talks: true}
	for i := range n {
		w := windowed{max(1, int(float64(base.n)*d.spread(1, 5))), base.per}
		g, s := d.simple(w)
		gates, text = append(gates, g), fmt.Sprintf("%s/r%d %s; ", text, i, s)
		if least == 0 || w.n < least {
			least = w.n
		}
	}
	l.rate, l.burst, l.longest = float64(n*least)/base.per.Seconds(), float64(n*least), base.per
	if d.chance(.3) {
		gates[0] = func() limit.Limiter { return &limit.Bucket{Rate: 1e6, Size: 1e6} }
		text += "but r0 has none; "
	}
	l.gates = func() (all []limit.Limiter) {
		for _, g := range gates {
			all = append(all, g())
		}
		return all
	}
	return l, text[:len(text)-2]
}

func instances(d *dice) (limiter, string) {
	k := either(d, []int{2, 3}, []int{4, 5, 8})
	w := d.slow(20)
	g, text := d.simple(w)
	seed, turn := d.Uint64(), d.chance(.5)
	pick, how := func(n int) int { return n % k }, "in turn"
	if !turn {
		pick, how = func(n int) int { return rand.New(rand.NewPCG(seed, uint64(n))).IntN(k) }, "at random"
	}
	l := one(w, func() limit.Limiter {
		s := &limit.Instances{Pick: pick}
		for range k {
			s.Of = append(s.Of, g())
		}
		return s
	})
	l.rate, l.burst = l.rate*float64(k), l.burst*float64(k)
	return l, fmt.Sprintf("%d instances, %s, each with a %s", k, how, text)
}

func counted(d *dice) (limiter, string) {
	w := d.slow(50)
	if d.test() && d.chance(.5) {
		l, text := counter(d, w, true)
		return l, text + ", refused ones too"
	}
	l, text := slidingLog(w, true)
	return l, text + ", refused ones too"
}

func bans(d *dice) (limiter, string) {
	w := d.slow(20)
	g, text := d.simple(w)
	after, how := d.count(5, 30), seconds(d.number(5, 60))
	l := one(w, func() limit.Limiter { return &limit.Ban{Of: g(), After: after, Within: w.per, For: how} })
	l.longest = max(w.per, how)
	return l, fmt.Sprintf("%s; %d refusals within %v ban for %v", text, after, short(w.per), short(how))
}

func blocked(d *dice) (limiter, string) {
	w := d.slow(20)
	g, text := d.simple(w)
	how, again := seconds(d.number(2, 30)), d.chance(.3)
	l := one(w, func() limit.Limiter { return &limit.Ban{Of: g(), After: 1, For: how, Again: again} })
	l.longest = max(w.per, how)
	text = fmt.Sprintf("%s; a refusal blocks for %v", text, short(how))
	if again {
		text += ", and each request meanwhile anew"
	}
	return l, text
}

func restarts(d *dice) (limiter, string) {
	w := d.slow(20)
	return one(w, func() limit.Limiter { return &limit.Fixed{N: w.n, Per: w.per, First: true, Again: true} }),
		fmt.Sprint("window of ", w, " from the first request, begun anew by each refusal")
}

func stepped(d *dice) (limiter, string) {
	w := d.slow(50)
	size, phase := w.n*(1+d.IntN(4)), d.some(w.per)
	l := one(w, func() limit.Limiter { return &limit.Stepped{Add: w.n, Size: size, Every: w.per, Phase: phase} })
	l.burst = float64(size)
	return l, fmt.Sprintf("bucket of %d that gains %d every %v", size, w.n, short(w.per))
}

func cells(d *dice) (limiter, string) {
	w := d.slow(50)
	m, phase := 3+d.IntN(8), d.some(w.per)
	return one(w, func() limit.Limiter { return &limit.Cells{N: w.n, M: m, Per: w.per, Phase: phase} }),
		fmt.Sprintf("sliding window of %v in %d cells", w, m)
}

// shared is a limit of which others use a part, in test also in bouts of half
// a minute.
func shared(d *dice) (limiter, string) {
	w := d.slow(30)
	g, text := d.simple(w)
	share, bouts := d.between(.2, .7), d.test() && d.chance(.4)
	rate := float64(w.n) / w.per.Seconds()
	var others []time.Duration
	for t, end := 0., 1800.; t < end; {
		t += d.ExpFloat64() / (rate * share)
		if !bouts || int(t/30)%2 == 0 {
			others = append(others, seconds(t))
		}
	}
	l := one(w, func() limit.Limiter { return &limit.Shared{Of: g(), Others: others} })
	text = fmt.Sprintf("%s, %.0f %% of it used by others", text, 100*share)
	if bouts {
		share /= 2
		text += " for half of each minute"
	}
	l.rate *= 1 - share
	return l, text
}

// changes is a limit that rises or falls.
func changes(d *dice) (limiter, string) {
	w := d.slow(10)
	at := seconds(d.between(20, 60))
	factor := d.spread(2, 5)
	if d.test() {
		factor = d.spread(1.5, 10)
	}
	if d.chance(.35) {
		factor = d.between(.25, .7)
	}
	n := max(1, int(float64(w.n)*factor))
	phase, which := d.some(w.per), d.IntN(3)
	l := one(w, func() limit.Limiter {
		switch which {
		case 0:
			l := &limit.Fixed{N: w.n, Per: w.per, Phase: phase}
			return &limit.Changing{Of: l, At: at, Change: func() { l.N = n }}
		case 1:
			l := &limit.Log{N: w.n, Per: w.per}
			return &limit.Changing{Of: l, At: at, Change: func() { l.N = n }}
		default:
			l := &limit.Bucket{Rate: float64(w.n) / w.per.Seconds(), Size: float64(w.n)}
			return &limit.Changing{Of: l, At: at, Change: func() { l.Rate, l.Size = float64(n)/w.per.Seconds(), float64(n) }}
		}
	})
	if n > w.n {
		l.step, l.risen, l.span = at, float64(n)/w.per.Seconds(), max(2*w.per, seconds(10*w.per.Seconds()/float64(n)))
	}
	l.rate = min(l.rate, float64(n)/w.per.Seconds())
	return l, fmt.Sprintf("%s of %v, after %v %d", [...]string{"window by the clock", "sliding log", "bucket"}[which], w, short(at.Round(time.Second)), n)
}
