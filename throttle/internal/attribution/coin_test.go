package attribution_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/attribution"
)

// tossUntil tosses a coin with answers until it is known to be chance, and returns
// how many that took, at most most.
func tossUntil(most int, bad func() bool) int {
	var c attribution.Coin
	for n := range most {
		if c.Toss(bad()) {
			return n + 1
		}
	}
	return most
}

// Refusals by chance are known as such within a second or two at 100 answers a second.
func TestChanceIsRecognised(t *testing.T) {
	for _, p := range []float64{.6, .7, .8, .9} {
		r := rand.New(rand.NewPCG(5, uint64(100*p)))
		late := 0
		for range 1000 {
			if tossUntil(400, func() bool { return r.Float64() < p }) == 400 {
				late++
			}
		}
		if late > 20 {
			t.Errorf("p = %g: %d of 1000 coins took more than 400 answers", p, late)
		}
	}
}

// A limiter, asked by one or two requests at a time, is not taken for chance however
// long it is asked; nor is a host that refuses all.
func TestLimitersAreNoChance(t *testing.T) {
	for _, gap := range []time.Duration{5 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond} {
		for _, x := range []struct {
			what string
			take func(at time.Duration) (served bool)
		}{
			{"bucket of 10/s", bucketOf(10, 10)},
			{"bucket of 1/s", bucketOf(1, 5)},
			{"bucket of 8/s", bucketOf(8, 1)},
			{"window of 30 per 5 s", windowOf(30, 5*time.Second)},
			{"window of 5 per 1 s", windowOf(5, time.Second)},
			{"down", func(time.Duration) bool { return false }},
		} {
			t.Run(fmt.Sprint(x.what, " every ", gap), func(t *testing.T) {
				r := rand.New(rand.NewPCG(6, uint64(gap)))
				at := time.Duration(0)
				n := tossUntil(3000, func() bool {
					at += time.Duration(float64(gap) * (.8 + .4*r.Float64()))
					return !x.take(at)
				})
				if n < 3000 {
					t.Errorf("taken for chance after %d answers", n)
				}
			})
		}
	}
}

func bucketOf(rate, size float64) func(time.Duration) bool {
	left, last := size, time.Duration(0)
	return func(at time.Duration) bool {
		left, last = min(size, left+rate*(at-last).Seconds()), at
		if left < 1 {
			return false
		}
		left--
		return true
	}
}

func windowOf(n int, per time.Duration) func(time.Duration) bool {
	used, window := 0, time.Duration(-1)
	return func(at time.Duration) bool {
		if w := at / per; w != window {
			used, window = 0, w
		}
		used++
		return used <= n
	}
}
