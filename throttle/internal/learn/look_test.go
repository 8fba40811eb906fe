package learn

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestALimitThatHeldForLongIsTriedAgain: however often more was tried in vain, those who
// wait soon find out that a limit has risen, and seldom ask while it has not.
func TestALimitThatHeldForLongIsTriedAgain(t *testing.T) {
	for _, c := range []struct {
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
		served, refused, found := 0, 0, 0
		for seed := range uint64(3) {
			g := newGame(rate, c.size, 20*time.Millisecond, 100)
			g.limit, g.r = c.limit, rand.New(rand.NewPCG(seed, 7))
			g.play(zero + 600*second)
			g.refused = 0
			held := g.now
			g.play(held + 600*second)
			served, refused = served+g.since(held), refused+g.refused
			if g.limit.family == bucket {
				g.limit.per /= 10
			}
			g.size *= 10
			rose := g.now
			g.play(rose + c.soon + 10*second)
			found += g.since(rose + c.soon)
		}
		if refused > served/20 || float64(served) < .95*3*600*rate {
			t.Errorf("%v/s: %d served in three times ten minutes, %d refused", rate, served, refused)
		}
		if n := float64(found) / 30; n < 7*rate {
			t.Errorf("%v/s: %v/s are served %v after it rose tenfold", rate, n, time.Duration(c.soon))
		}
	}
}

// A few callers of a window find out, too, that more is accepted, though several shapes explain
// equally well what it has refused before.
func TestFewCallersFindARiseWhoeverIsRightAboutTheShape(t *testing.T) {
	for _, c := range []struct {
		limit shape
		size  float64
	}{
		{shape{family: slidingLog, per: 30 * second}, 200},
		{shape{family: slidingLog, per: 15 * second}, 40},
		{shape{family: windowFirst, per: 10 * second}, 30},
	} {
		found := 0
		for seed := range uint64(4) {
			g := newGame(1, c.size, 30*time.Millisecond, 4)
			g.limit, g.hint, g.r = c.limit, waits(time.Duration(c.limit.per)/2), rand.New(rand.NewPCG(seed, 5))
			g.play(zero + 40*second)
			g.size *= 2
			rose := g.now
			g.play(rose + 180*second)
			found += g.since(rose + 120*second)
		}
		if most := 4 * 60 * 2 * c.limit.rate(c.size); float64(found) < .8*most {
			t.Errorf("%v per %v: %d of %v served two minutes after it was doubled", c.size, time.Duration(c.limit.per), found, most)
		}
	}
}

// TestALimitStaysKnown: for a quarter of an hour that a limit holds it is not taken for another, so
// that at most one is refused for each twelve that are served.
func TestALimitStaysKnown(t *testing.T) {
	for _, c := range []struct {
		limit shape
		size  float64
		says  Refusal
		least float64 // of what it bears is served
	}{
		{shape{family: slidingLog, per: 2 * second}, 4, Refusal{}, .98},
		{shape{family: slidingLog, per: second}, 20, Refusal{}, .98},
		{shape{family: slidingLog, per: second}, 20, waits(time.Second), .95}, // a pause is longer than need be
		{shape{family: slidingLog, per: 10 * second}, 30, Refusal{}, .98},
		{shape{family: windowFirst, per: 10 * second}, 30, Refusal{}, .98},
		{shape{family: windowClock, per: 10 * second}, 50, Refusal{}, .98},
		{shape{family: counter, per: 10 * second, phase: second / 3}, 30, Refusal{}, .96}, // a burst fills two windows
		{shape{family: counter, per: 10 * second, phase: second / 3}, 30, waits(time.Second), .95},
		{shape{family: counter, per: 60 * second, phase: second / 3}, 100, Refusal{}, .96},
		{shape{family: bucket, per: second / 3}, 5, Refusal{}, .98},
	} {
		refused, served, rate := 0, 0, c.limit.rate(c.size)
		for seed := range uint64(3) {
			g := newGame(rate, c.size, 20*time.Millisecond, 100)
			g.limit, g.hint, g.r = c.limit, c.says, rand.New(rand.NewPCG(seed, 11))
			known := zero + max(60*second, 3*c.limit.per)
			g.play(known)
			g.refused = 0
			g.play(known + 900*second)
			refused, served = refused+g.refused, served+g.since(known)
		}
		if most := 3 * 900 * rate; refused > served/12 || float64(served) < c.least*most {
			t.Errorf("%v per %v, of kind %d, says %v: %d of %.0f are served and %d refused", c.size, time.Duration(c.limit.per), c.limit.family, c.says.Hint.Wait, served, most, refused)
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
