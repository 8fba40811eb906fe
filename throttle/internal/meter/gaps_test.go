package meter

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// replayed is a bucket that knows all that was taken, and works out from the
// beginning what it would hold if what came back had never been taken.
type replayed struct {
	s     *Rate
	takes []Entry
}

func (r *replayed) tokens(now Instant) float64 {
	size := float64(r.s.Burst)
	tokens, seen := size, Instant(1)
	for _, t := range append(r.takes, Entry{At: now}) {
		tokens = min(size, tokens+float64(t.At-seen)/1e9*r.s.perSecond) - float64(t.N)
		seen = t.At
	}
	return tokens
}

// What comes back to a bucket, however late and in whatever order, leaves it as
// if it had not been taken: never with more, and unless it owed, with less by a
// grain for each time at most.
func TestBucketTakesBackAsIfNotTaken(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := NewRate(Spec{Limit: 1000, Per: time.Second, Burst: rapid.SampledFrom([]int{1, 10, 100, 900}).Draw(rt, "burst")})
		m, model := NewRated(1, s, nil), replayed{s: s}
		var marks []Token
		now, backs, owed := Instant(1), 0, false
		for range rapid.IntRange(1, 100).Draw(rt, "steps") {
			now += Instant(rapid.Float64Range(0, 0.3).Draw(rt, "sleep") * float64(s.Burst) * 1e6)
			if rapid.Bool().Draw(rt, "take") || len(marks) == 0 {
				n := rapid.Int64Range(1, int64(s.Burst)).Draw(rt, "n")
				if m.bucket.at(now, s, n) > now {
					if rapid.IntRange(0, 19).Draw(rt, "owe") > 0 {
						continue
					}
					owed = true
				}
				marks = append(marks, m.bucket.take(now, s, n, false))
				model.takes = append(model.takes, Entry{now, n})
			} else {
				i := rapid.IntRange(max(0, len(marks)-20), len(marks)-1).Draw(rt, "which")
				n := rapid.Int64Range(0, model.takes[i].N).Draw(rt, "back")
				m.bucket.back(now, s, n, marks[i])
				model.takes[i].N -= n
				backs++
			}
			m.bucket.look(now, s)
			got, want := m.bucket.tokens, model.tokens(now)
			if grain := float64(s.Burst) / gapParts; got > want+1e-6 || !owed && got < want-float64(backs+1)*grain {
				rt.Fatalf("at %v: %v tokens, want %v or up to %v less for each of %d that came back", now, got, want, grain, backs)
			}
			if w := m.bucket.gaps.wide; w != nil && len(w.log) > gapParts {
				rt.Fatalf("%d gaps are kept", len(w.log))
			}
		}
	})
}

// As long as a bucket is far from full, all comes back, however late.
func TestBusyBucketTakesBackAll(t *testing.T) {
	s := rateOf("1000/s burst 100")
	m, now := NewRated(1, s, nil), Instant(1)
	m.Take(now, 90, false)
	k := m.Take(now, 10, false)
	for range 100 {
		now = now.Add(50 * time.Millisecond)
		m.Take(now, 50, false)
	}
	m.Return(now, 10, k, 1, 1)
	if got := m.bucket.tokens; math.Abs(got-10) > 1e-6 {
		t.Errorf("%v tokens after 10 came back 5 s later, want 10", got)
	}
	now = now.Add(100 * time.Millisecond) // full
	k = m.Take(now, 10, false)
	now = now.Add(20 * time.Millisecond) // again
	m.Take(now, 10, false)
	m.Return(now, 10, k, now-1, now-1)
	if got := m.bucket.tokens; math.Abs(got-90) > 1e-6 {
		t.Errorf("%v tokens after what had overflowed came back, want 90", got)
	}
}
