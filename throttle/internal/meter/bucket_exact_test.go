package meter

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

// rational is a bucket without rounding.
type rational struct {
	rate   *big.Rat // tokens per nanosecond
	size   int64
	tokens *big.Rat
	seen   Instant
}

func (m *rational) look(now Instant) {
	m.tokens.Add(m.tokens, new(big.Rat).Mul(m.rate, new(big.Rat).SetInt64(int64(now-m.seen))))
	if full := new(big.Rat).SetInt64(m.size); m.tokens.Cmp(full) > 0 {
		m.tokens = full
	}
	m.seen = now
}

// at is the exact time until n tokens are there, in nanoseconds.
func (m *rational) at(n int64) *big.Rat {
	missing := new(big.Rat).SetInt64(n)
	missing.Sub(missing, m.tokens)
	if missing.Sign() <= 0 {
		return new(big.Rat)
	}
	return missing.Quo(missing, m.rate)
}

// quiet leaves one token at until, at most.
func (m *rational) quiet(now, until Instant) {
	there := new(big.Rat).Mul(m.rate, new(big.Rat).SetInt64(int64(until-now)))
	there.Sub(new(big.Rat).SetInt64(1), there)
	if m.tokens.Cmp(there) > 0 {
		m.tokens = there
	}
}

// TestWaitsAreExact: after whatever spending, cancelling and pausing, the wait
// that a bucket tells is right to the nanosecond, rounded up.
func TestWaitsAreExact(t *testing.T) {
	for _, text := range []string{"3/h", "5/m", "1/m bucket 3", "60/m bucket 5", "1000/d bucket 1000", "100/h burst 10", "7/11s burst 3", "2/s bucket 40"} {
		s := rateOf(text)
		for seed := range uint64(100) {
			if err := exactly(s, rand.New(rand.NewPCG(seed, 9))); err != nil {
				t.Errorf("%s, seed %d: %v", text, seed, err)
				break
			}
		}
	}
}

func exactly(s *Rate, r *rand.Rand) error {
	m := &rational{big.NewRat(int64(s.Limit), int64(s.Per)), int64(s.Burst), new(big.Rat).SetInt64(int64(s.Burst)), 1}
	var b bucket
	b.fill(1, s.perSecond, s.Burst, float64(s.Burst))
	now := Instant(1)
	for i := range 200 {
		now += Instant(r.Int64N(int64(s.Per)/int64(s.Limit)*2) / 1e6 * 1e6)
		m.look(now)
		n := 1 + r.Int64N(min(3, m.size))
		switch r.IntN(8) {
		case 0:
			until := now + Instant(r.IntN(100))*Instant(time.Second)
			b.drain(now, until, s)
			m.quiet(now, until)
		case 1:
			b.back(now, s, n, b.take(now, s, n, false))
		default:
			if b.at(now, s, n) == now {
				b.take(now, s, n, false)
				m.tokens.Sub(m.tokens, new(big.Rat).SetInt64(n))
			}
		}
		want, got := m.at(n), new(big.Rat).SetInt64(int64(b.at(now, s, n)-now))
		// A thousandth of a nanosecond is taken for rounding, so a whole number
		// has to be met, and any other to be rounded up.
		late, _ := new(big.Rat).Sub(got, want).Float64()
		if late < -1e-2 || late >= 1-1e-2 || want.IsInt() && late != 0 {
			f, _ := want.Float64()
			return fmt.Errorf("step %d: wait of %v for %d, want %.3fns", i, time.Duration(b.at(now, s, n)-now), n, f)
		}
	}
	return nil
}
