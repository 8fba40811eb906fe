package learn

import (
	"math/rand/v2"
	"testing"
)

// TestBeats: a candidate that is dropped before all is known of it has no higher score than asked,
// and whichever has is judged as fit does.
func TestBeats(t *testing.T) {
	for name, s := range shapes {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 5))
			b := serve(r, &s, float64(1+r.IntN(30)))
			b.half, b.slack = trip/2, trip/4
			for _, other := range shapes { // most do not explain what s did
				c := candidate{shape: other, prior: 1}
				var p replay
				b.fit(&c, &p)
				for _, off := range [...]float64{-100, -1, -1e-9, 0, 1e-9, 1, 100} {
					d := candidate{shape: other, prior: 1}
					if got, want := b.beats(&d, c.score+off, &p), off < 0; got != want {
						t.Fatalf("%s, of which the score is %v: beats(%v) is %v", name, c.score, c.score+off, got)
					} else if got && d != c {
						t.Fatalf("%s: got %+v, want %+v", name, d, c)
					}
				}
			}
		}
	}
}
