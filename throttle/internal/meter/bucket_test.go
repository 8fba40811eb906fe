package meter

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// A bucket that runs short has an account, which has what the bucket says, to a
// nanosecond's worth, whenever all that was taken has been charged to it: whatever was taken, given back, hushed
// or overdrawn before, as long as nothing is young.
func TestBucketIsItsAccount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rateOf(rapid.SampledFrom([]string{
			"10/s burst 3", "5/s bucket 40", "1000/m burst 100", "7/d bucket 2", "1000000/s burst 500000", "1/s bucket 1000000",
		}).Draw(t, "rate"))
		var b bucket
		now := Instant(1)
		b.fill(now, s.perSecond, s.Burst, float64(s.Burst))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(Seconds(rapid.Float64Range(0, 1.2).Draw(t, "share") * float64(s.Burst) / s.perSecond))
			n := int64(rapid.IntRange(1, s.Burst).Draw(t, "units"))
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			default:
				if b.at(now, s, n) == now {
					b.take(now, s, n, false)
				}
			case 0:
				b.take(now, s, n, false) // a settlement
			case 1:
				full := b.take(now, s, n, false)
				b.back(now.Add(Seconds(0.1*float64(n)/s.perSecond)), s, n, full)
				now = b.seen
			case 2:
				b.drain(now, now.Add(Seconds(float64(n)/s.perSecond)), s)
			case 3:
				b.resume(now, s)
			}
			b.look(now, s)
			x := b.scarce
			if x == nil || x.lim == nil {
				if b.tokens < 1 {
					t.Fatalf("%v tokens are no plenty, and there is no account", b.tokens)
				}
				continue
			}
			if x.noted != 0 {
				continue
			}
			got, least := x.lim.TokensAt(now.Time()), s.perSecond*1e-9+float64(s.Burst)*1e-12
			if math.Abs(got-b.tokens) > least {
				t.Fatalf("the account has %v, the bucket %v", got, b.tokens)
			}
		}
	})
}

// Costs beyond all measure are a debt in the account as well, whatever was noted
// before.
func TestBucketOwesWithoutEnd(t *testing.T) {
	s := rateOf("5/s bucket 40")
	most := min(math.MaxInt64/2, 999*float64(math.MaxInt/2))
	var b bucket
	b.fill(1, s.perSecond, s.Burst, float64(s.Burst))
	b.take(1, s, 5, false)
	for range 3 {
		b.take(1, s, math.MaxInt64, false)
		if got := b.scarce.lim.TokensAt(Instant(1).Time()); got > -most || b.tokens > -math.MaxInt64/2 {
			t.Errorf("the account has %v, the bucket %v", got, b.tokens)
		}
	}
}
