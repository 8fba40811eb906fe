package attribution_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A called host is asked again and again, and an Overload hears its answers.
type called struct {
	attribution.Overload
	r    *rand.Rand
	now  meter.Instant
	good int
}

func calledHost(seed uint64) *called {
	return &called{r: rand.New(rand.NewPCG(seed, 2)), now: zero}
}

// hear asks once more, about every after the last time. It reports the verdict.
func (c *called) hear(every time.Duration, serves func(at time.Duration) bool) attribution.Verdict {
	c.now = c.now.Add(time.Duration(float64(every) * c.r.ExpFloat64()))
	took := time.Duration(c.r.IntN(int(10 * time.Millisecond)))
	bad := !serves(time.Duration(c.now-zero) + took/2)
	v := c.Heard(c.now.Add(took), c.now, attribution.Reply{Busy: bad, Bare: bad, Load: attribution.LoadOf(1 + c.r.IntN(4)), Good: c.good})
	if bad {
		c.Overloaded(c.now, true)
	} else {
		c.good++
		c.Served(c.now, c.now)
	}
	return v
}

// fails is a host that fails at random.
func (c *called) fails(p float64) func(time.Duration) bool {
	return func(time.Duration) bool { return c.r.Float64() >= p }
}

// TestALimiterIsKnownByWhenItServes: a bucket that is asked for more than its rate is taken for
// a limiter after some 80 answers since its first refusal at most, in the mean of many.
func TestALimiterIsKnownByWhenItServes(t *testing.T) {
	const hosts = 20
	for _, rate := range []float64{.5, 10, 100} {
		for _, size := range []float64{1, 20} {
			for _, x := range []float64{1.1, 1.5, 3, 10} {
				sum := 0
				for seed := range uint64(hosts) {
					c, serves := calledHost(seed), bucketOf(rate, size)
					for !c.Suspected() {
						c.hear(time.Duration(1e9/rate/x), serves)
						if !c.Quiet() {
							sum++
						}
						if sum > 1000*hosts {
							t.Fatalf("%v/s of %v, asked for %v times as much: never", rate, size, x)
						}
					}
				}
				if mean := sum / hosts; mean > 80 {
					t.Errorf("%v/s of %v, asked for %v times as much: %d answers", rate, size, x, mean)
				}
			}
		}
	}
}

// TestWhatHasNoRateIsNoLimiter: a host that fails at random is hardly ever taken for a
// limiter, nor is one that goes down, or is overloaded for a while and then serves all.
func TestWhatHasNoRateIsNoLimiter(t *testing.T) {
	for _, every := range []time.Duration{time.Millisecond, 20 * time.Millisecond, time.Second} {
		for _, p := range []float64{.01, .05, .2, .5, .8} {
			taken, all := 0, 0
			for seed := range uint64(20) {
				c := calledHost(seed)
				for fails := c.fails(p); all < 1000*int(seed+1); all++ {
					if c.hear(every, fails); c.Suspected() {
						taken++
					}
				}
			}
			if taken > all/50 {
				t.Errorf("fails %v, asked every %v: taken for a limiter for %d of %d answers", p, every, taken, all)
			}
		}
		for _, p := range []float64{0, .02} {
			c := calledHost(1)
			for range 500 {
				c.hear(every, c.fails(p))
			}
			for range 50 {
				if c.hear(every, c.fails(1)); c.Suspected() {
					t.Fatalf("down, and failed %v before, asked every %v: taken for a limiter", p, every)
				}
			}
			taken := 0
			for range 5000 {
				if c.hear(every, c.fails(p)); c.Suspected() {
					taken++
				}
			}
			if taken > 3 { // those before the limit that would explain the end of the outage is refuted
				t.Errorf("up again, and fails %v, asked every %v: taken for a limiter for %d answers", p, every, taken)
			}
		}
	}
}

// TestALimiterThatFailsAtRandomIsNone: what was taken for a limiter is not for long once it
// fails at random, and is known as a limiter again when it limits again.
func TestALimiterThatFailsAtRandomIsNone(t *testing.T) {
	c := calledHost(4)
	serves := bucketOf(20, 10)
	until := func(want bool, serves func(time.Duration) bool) (n int, last attribution.Verdict) {
		for c.Suspected() != want && n < 1000 {
			last = c.hear(20*time.Millisecond, serves)
			n++
		}
		return n, last
	}
	if n, _ := until(true, serves); n > 100 {
		t.Errorf("a limiter after %d answers", n)
	}
	for range 1000 { // as sure as can be
		c.hear(20*time.Millisecond, serves)
	}
	if n, v := until(false, c.fails(.5)); n > 100 || v != attribution.NoLimiter {
		t.Errorf("no limiter after %d answers, verdict %v", n, v)
	}
	for range 1000 {
		c.hear(20*time.Millisecond, c.fails(.5))
	}
	if n, _ := until(true, bucketOf(20, 10)); n > 150 {
		t.Errorf("a limiter again after %d answers", n)
	}
}
