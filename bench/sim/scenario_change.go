package sim

import (
	"context"
	"math"
	"testing"
	"time"
)

// steps is E3: a quota that changes while the client is saturated.
func steps(d dialect) scenario {
	strategies := []strategy{weirWith(patient())}
	if d == silent {
		strategies = append(append(strategies, adaptiveRetry()), libraries(stubborn())...)
	}
	return scenario{
		id: "E3", what: "bucket 50/s, 25/s from 60 s, 100/s from 120 s to 240 s, " + d.String(),
		strategies: strategies,
		targets: []target{most("found down (s)", 3, 8), most("found up (s)", 25, 40),
			most("refusals in phase 1", 30, 60), most("refusals in phase 2", 15, 40), most("refusals in phase 3", 20, 60)},
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			q := newBucket(50, 50)
			s := newServer(seed, q, d)
			c := st.make(s, seed)
			s.keep = true
			ctx, cancel := context.WithTimeout(t.Context(), 240*time.Second)
			defer cancel()
			s.change(q, 60*time.Second, 25)
			s.change(q, 120*time.Second, 100)
			jobs(ctx, c, 1<<30, 64)
			accepted, refused := make([]float64, 241), make([]float64, 241)
			for _, m := range s.log {
				i := min(240, int(m.at/time.Second))
				if m.ok {
					accepted[i]++
				} else {
					refused[i]++
				}
			}
			r.add("found down (s)", foundAfter(accepted, 60, 120, 25))
			r.add("found up (s)", foundAfter(accepted, 120, 240, 100))
			for i, span := range [][2]int{{0, 60}, {60, 120}, {120, 240}} {
				name := "phase " + string(rune('1'+i))
				r.add("refusals in "+name, sum(refused[span[0]:span[1]]))
				r.add("utilisation in "+name, sum(accepted[span[0]:span[1]])/([]float64{50, 25, 100}[i]*float64(span[1]-span[0])))
			}
		},
	}
}

// change gives a bucket of s another rate and size, after a while.
func (s *server) change(q *bucket, after time.Duration, rate float64) {
	time.AfterFunc(after, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		q.fill(time.Now())
		q.rate, q.size, q.tokens = rate, rate, min(q.tokens, rate)
	})
}

// foundAfter is how many seconds after from the accepted rate first is within a
// tenth of rate, as a mean of three seconds.
func foundAfter(accepted []float64, from, to int, rate float64) float64 {
	for i := from; i+3 <= to; i++ {
		if mean := sum(accepted[i:i+3]) / 3; math.Abs(mean-rate) <= rate/10 {
			return float64(i - from)
		}
	}
	return float64(to - from)
}

func sum(v []float64) (n float64) {
	for _, x := range v {
		n += x
	}
	return n
}
