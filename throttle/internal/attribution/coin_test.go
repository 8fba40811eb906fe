package attribution_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/attribution"
)

// tossUntil tosses a coin with answers to what is sent gap apart, more or less by
// jitter of it, until it is known to be chance, and returns how many that took, at most
// most.
func tossUntil(r *rand.Rand, most int, gap time.Duration, jitter float64, load func() int, bad func(at time.Duration) bool) int {
	var c attribution.Coin
	at := time.Duration(0)
	for n := range most {
		at += time.Duration(float64(gap) * (1 + jitter*(2*r.Float64()-1)))
		c.Toss(attribution.Tossed{Sent: zero.Add(at), Load: attribution.LoadOf(load()), Bad: bad(at)})
		if c.Likelier() {
			return n + 1
		}
	}
	return most
}

func alone() int { return 1 }

// Refusals by chance are known as such, whatever their share is and however many are
// under way, as long as that varies or they are sent alone.
func TestChanceIsRecognised(t *testing.T) {
	for p, most := range map[float64]int{.1: 1200, .2: 200, .3: 100, .5: 60, .7: 100, .8: 200, .9: 400} {
		for name, varied := range map[string]bool{"alone": false, "1 to 20 at a time": true} {
			var took []int
			for seed := range uint64(200) {
				r := rand.New(rand.NewPCG(seed, uint64(100*p)))
				load := alone
				if varied {
					load = func() int { return 1 + r.IntN(20) }
				}
				took = append(took, tossUntil(r, 3000, 10*time.Millisecond, .9, load, func(time.Duration) bool { return r.Float64() < p }))
			}
			slices.Sort(took)
			if median := took[100]; median > most/2 {
				t.Errorf("p = %g, %s: half of the coins take more than %d answers, want %d", p, name, median, most/2)
			}
			if took[180] > 2*most {
				t.Errorf("p = %g, %s: a tenth takes more than %d answers, want %d", p, name, took[180], 2*most)
			}
		}
	}
}

// A limiter is not taken for chance however it is asked; nor is a host that refuses all.
func TestLimitersAreNoChance(t *testing.T) {
	for _, gap := range []time.Duration{5 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond, 300 * time.Millisecond} {
		for _, jitter := range []float64{0, .2, .9} {
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
				t.Run(fmt.Sprint(x.what, " every ", gap, " ", jitter), func(t *testing.T) {
					r := rand.New(rand.NewPCG(6, uint64(gap)))
					n := tossUntil(r, 3000, gap, jitter, alone, func(at time.Duration) bool { return !x.take(at) })
					if n < 3000 {
						t.Errorf("taken for chance after %d answers", n)
					}
				})
			}
		}
	}
}

// A host that refuses what is beyond so many at a time, nine times in ten, is no chance.
func TestRefusalsOfManyAtATimeAreNoChance(t *testing.T) {
	for _, limit := range []int{2, 5, 12} {
		r := rand.New(rand.NewPCG(7, uint64(limit)))
		load := 1
		n := tossUntil(r, 3000, 10*time.Millisecond, .9,
			func() int { load = 1 + r.IntN(2*limit+2); return load },
			func(time.Duration) bool { return (load > limit) != (r.IntN(10) == 0) })
		if n < 3000 {
			t.Errorf("limit %d: taken for chance after %d answers", limit, n)
		}
	}
}

// What was taken for chance is not for ever: a host that goes down has another reason.
func TestChanceMayEnd(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	var c attribution.Coin
	at := zero
	toss := func(bad bool) {
		at = at.Add(10 * time.Millisecond)
		c.Toss(attribution.Tossed{Bad: bad, Sent: at, Load: attribution.LoadOf(1 + r.IntN(8))})
	}
	for range 400 {
		toss(r.IntN(2) == 0)
	}
	if !c.Likelier() || c.Unlikely() {
		t.Fatal("the coin is not known")
	}
	take := windowOf(20, time.Second)
	for n := 0; !c.Unlikely(); n++ {
		if toss(!take(time.Duration(at))); n > 2000 {
			t.Fatal("it is taken for a coin for ever")
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

// That a host has no limit takes a hundred answers from the first bad one, however clear
// they are.
func TestOnlyManyAnswersAreSure(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	var c attribution.Coin
	for i := range 50 { // before it refuses, which tells nothing
		c.Toss(attribution.Tossed{Sent: zero.Add(time.Duration(i))})
	}
	likely, sure := 0, 0
	for n := 1; sure == 0 && n < 1000; n++ {
		c.Toss(attribution.Tossed{Bad: n == 1 || r.IntN(2) == 0, Sent: zero.Add(time.Duration(n) * 10 * time.Millisecond)})
		if likely == 0 && c.Likelier() {
			likely = n
		}
		if c.Sure() {
			sure = n
		}
	}
	if likely == 0 || likely > 60 || sure < 100 || sure > 200 {
		t.Errorf("chance is likelier after %d answers, and sure after %d", likely, sure)
	}
	var none attribution.Coin
	for i := range 300 { // as many, and nothing is likelier than a host that is down
		none.Toss(attribution.Tossed{Bad: true, Sent: zero.Add(time.Duration(i) * time.Millisecond)})
	}
	if none.Sure() {
		t.Error("a host that refuses all is sure to be chance")
	}
}
