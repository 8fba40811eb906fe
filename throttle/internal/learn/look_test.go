package learn

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestALimitThatHeldForLongIsTriedAgain: however often more was tried in vain, those who
// wait soon find out that a limit has risen, and seldom ask while it has not.
func TestALimitThatHeldForLongIsTriedAgain(t *testing.T) {
	for i, c := range []struct {
		limit shape
		size  float64
		soon  Instant
	}{
		{shape{family: bucket, per: second}, 1, 60 * second},
		{shape{family: bucket, per: second / 5}, 5, 45 * second},
		{shape{family: bucket, per: second / 20}, 20, 45 * second},
		{shape{family: windowClock, per: 10 * second}, 50, 60 * second},
	} {
		rate := c.limit.rate(c.size)
		g := newGame(rate, c.size, 20*time.Millisecond, 100)
		g.limit, g.r = c.limit, rand.New(rand.NewPCG(uint64(i), 7))
		g.play(zero + 600*second)
		g.refused = 0
		held := g.now
		g.play(held + 600*second)
		n := g.since(held)
		if g.refused > n/20 || float64(n) < .95*600*rate {
			t.Errorf("%v/s: %d served in ten minutes, %d refused", rate, n, g.refused)
		}
		if g.limit.family == bucket {
			g.limit.per /= 10
		}
		g.size *= 10
		rose := g.now
		g.play(rose + c.soon + 10*second)
		if n := float64(g.since(rose+c.soon)) / 10; n < 7*rate {
			t.Errorf("%v/s: %v/s are served %v after it rose tenfold", rate, n, time.Duration(c.soon))
		}
	}
}

// TestALimitStaysKnown: for a quarter of an hour that a limit holds it is not taken for another, so
// that at most one is refused for each twelve that are served.
func TestALimitStaysKnown(t *testing.T) {
	for _, c := range []struct {
		limit shape
		size  float64
	}{
		{shape{family: slidingLog, per: 2 * second}, 4},
		{shape{family: slidingLog, per: second}, 20},
		{shape{family: slidingLog, per: 10 * second}, 30},
		{shape{family: windowFirst, per: 10 * second}, 30},
		{shape{family: windowClock, per: 10 * second}, 50},
		{shape{family: bucket, per: second / 3}, 5},
	} {
		refused, served, rate := 0, 0, c.limit.rate(c.size)
		for seed := range uint64(3) {
			g := newGame(rate, c.size, 20*time.Millisecond, 100)
			g.limit, g.r = c.limit, rand.New(rand.NewPCG(seed, 11))
			g.play(zero + 60*second)
			g.refused = 0
			g.play(zero + 960*second)
			refused, served = refused+g.refused, served+g.since(zero+60*second)
		}
		if most := 3 * 900 * rate; refused > served/12 || float64(served) < .98*most {
			t.Errorf("%v per %v, of kind %d: %d of %.0f are served and %d refused", c.size, time.Duration(c.limit.per), c.limit.family, served, most, refused)
		}
	}
}

// TestWhatIsTakenBackWasNotThere: a limiter stands where it would stand if what is taken
// back had never come, whatever comes afterwards.
func TestWhatIsTakenBackWasNotThere(t *testing.T) {
	for _, f := range []family{bucket, slidingLog, windowFirst, windowClock, counter} {
		s := shape{family: f, per: 2 * second}
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, uint64(f)))
			var log []entry
			with, without := s.begin(zero), s.begin(zero)
			with.level, without.level = 5, 5
			if f == slidingLog {
				with.level, without.level = 0, 0
			}
			now := zero
			for range 20 {
				now += Instant(r.Float64() * 3e8)
				log = append(log, entry{at: now, last: now, taken: 1})
				s.pass(&with, now, log, 0)
				s.pass(&without, now, log, 0)
				s.add(&with, now, 1)
				s.add(&without, now, 1)
			}
			at := now + second/10
			s.pass(&with, at, log, 0)
			s.add(&with, at, 1)
			log = append(log, entry{at: at, last: at, refused: 1})
			later := at + Instant(r.Float64()*1e9)
			s.pass(&with, later, log, 0)
			s.pass(&without, later, log, 0)
			s.takeBack(&with, len(log)-1, at, 1)
			got, want := s.inUse(&with, later), s.inUse(&without, later)
			if d := got - want; d > 1e-6 || d < -1e-6 {
				t.Errorf("family %d, seed %d: %v in use, want %v", f, seed, got, want)
			}
		}
	}
}
