package throttle_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle"
)

// Where the time goes at a bucket that only says when to come back: what a
// client that knew all would have used, of what flowed in, and this one did not.
// The pauses are the server's, and up to two refusals after the first find the rate,
// because nothing else tells it: so much is lost. The rest is to be little.
func TestWhereTheTimeGoes(t *testing.T) {
	for _, c := range []struct {
		rate, size float64
		jobs       int
		most       [5]float64 // seconds: first pause, ramp, pauses after it, then, left in the bucket
	}{
		{50, 10, 500, [5]float64{.82, .15, 1.64, .1, .2}},
		{200, 50, 1000, [5]float64{.77, .12, 1.54, .05, .2}},
	} {
		level, last := c.size, time.Duration(0)
		var lost [5]float64
		b := play(t, 2, c.jobs, c.jobs, time.Minute, func(b *bout) {
			b.trip = 200 * time.Microsecond
			serve := bucketServer(c.rate, c.size, 1)
			b.serve = func(now time.Duration) (int, headers.Signal) {
				level += (now - last).Seconds() * c.rate
				if over := level - c.size; over > 0 {
					pauses := min(b.pauses, 2)
					part := max(0, 2*pauses-2)
					if pauses > 0 && !paused(t, b.tr) { // whoever asks finds what the pause lost
						part++
					}
					level, lost[part] = c.size, lost[part]+over/c.rate
				}
				last = now
				status, s := serve(now)
				if status == 200 {
					level--
				}
				return status, s
			}
		})
		lost[4] = level / c.rate
		sum := 0.0
		for i, most := range c.most {
			if sum += lost[i]; lost[i] > most {
				t.Errorf("%v/s of %v: part %d of what is lost is %.2f s, want at most %.2f", c.rate, c.size, i, lost[i], most)
			}
		}
		ideal := (float64(c.jobs) - c.size) / c.rate
		t.Logf("%v/s of %v: %.2f s, ideal %.2f; lost in the first pause %.2f, on the ramp %.2f, in the second pause %.2f, later %.2f, left %.2f",
			c.rate, c.size, b.took.Seconds(), ideal, lost[0], lost[1], lost[2], lost[3], lost[4])
		if math.Abs(b.took.Seconds()-ideal-sum) > 0.01 {
			t.Errorf("%v/s of %v: took %.3f s, ideal %.3f and %.3f lost", c.rate, c.size, b.took.Seconds(), ideal, sum)
		}
	}
}

// paused reports whether a pause is learned that is not known to be over.
func paused(t *testing.T, tr *throttle.Transport) bool {
	return slices.ContainsFunc(statsOf(t, tr).Learned, func(l throttle.LearnedLimit) bool { return l.Kind == throttle.LearnedPause })
}
