package learn

import (
	"container/heap"
	"math/rand/v2"
	"testing"
	"time"
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

// oddServers are servers that refuse as no limiter does: the i-th request, which arrives at at.
var oddServers = map[string]func(i int, at Instant, r *rand.Rand) bool{
	"half by chance":   func(_ int, _ Instant, r *rand.Rand) bool { return r.IntN(2) == 0 },
	"a tenth likewise": func(_ int, _ Instant, r *rand.Rand) bool { return r.IntN(10) == 0 },
	"every second":     func(i int, _ Instant, _ *rand.Rand) bool { return i%2 == 0 },
	"two of seven":     func(i int, _ Instant, _ *rand.Rand) bool { return i%7 > 4 },
	"by a fast clock":  func(_ int, at Instant, _ *rand.Rand) bool { return at%(second/50) < second/100 },
	"by a slower one":  func(_ int, at Instant, _ *rand.Rand) bool { return at%(second/10) < second/15 },
}

// playOdd plays such a server, with callers that never wait for one another. Before each call of the
// Learner it calls step, and calls what that returns after it.
func playOdd(refuse func(i int, at Instant, r *rand.Rand) bool, hint func(r *rand.Rand) Refusal, trip Instant, steps int, step func(l *Learner) func()) {
	l, r, now := new(Learner), rand.New(rand.NewPCG(1, uint64(trip))), zero
	var under events
	for i := 0; i < steps; {
		done := step(l)
		p := l.Next(now, 20)
		done()
		done = step(l)
		switch {
		case p.At <= now && len(under) < 64:
			l.Sent(now)
			i++
			heap.Push(&under, event{at: now + trip + Instant(r.Int64N(int64(trip))), sent: now, ok: !refuse(i, now+trip/2, r)})
		case p.At > now && (len(under) == 0 || p.At < under[0].at):
			now = p.At
		default:
			e := heap.Pop(&under).(event)
			if now = max(now, e.at); e.ok {
				l.Accepted(now, e.sent)
			} else {
				l.Refused(now, e.sent, hint(r))
			}
		}
		done()
	}
}

// TestAStepIsBounded: whatever a server does, no single call of a Learner replays its log for more
// than so many candidates. Entries are counted, so that it does not depend on the machine: each takes
// some 40 ns, with all that is made of it.
func TestAStepIsBounded(t *testing.T) {
	const most = 400 * maxEntries
	for name, refuse := range oddServers {
		for hint, says := range map[string]func(r *rand.Rand) Refusal{
			"nothing":  func(*rand.Rand) Refusal { return Refusal{} },
			"a second": func(*rand.Rand) Refusal { return waits(time.Second) },
			"anything": func(r *rand.Rand) Refusal { return waits(time.Duration(r.IntN(3e8))) },
		} {
			for _, trip := range []Instant{second / 1000, second / 20} {
				playOdd(refuse, says, trip, 250, func(l *Learner) func() {
					passed := func() uint32 {
						if l.mind == nil {
							return 0
						}
						return l.mind.bank.passed
					}
					before := passed()
					return func() {
						if n := passed() - before; n > most {
							t.Errorf("refuses %s, says %s, trip %v: a call passed over %d entries, want %d at most", name, hint, time.Duration(trip), n, most)
						}
					}
				})
			}
		}
	}
}

// TestALimitRoseWhereMoreIsAcceptedThanItsBelieversBear: by one for a leader that is likely by itself,
// and by half where several are likely only together, whether they agree or not. It has not risen if
// one of those bears all. It is news once.
func TestALimitRoseWhereMoreIsAcceptedThanItsBelieversBear(t *testing.T) {
	const size = 10
	for _, c := range []struct {
		name    string
		weights []float64 // of windows
		apart   Instant   // by how much each is longer than the one before
		large   float64   // the size of the last one
		taken   int       // since the last refusal
		rose    bool
	}{
		{"a sure leader, a few more", []float64{.9}, 0, size, size + 3, true},
		{"a sure leader, as many", []float64{.9}, 0, size, size, false},
		{"three that agree, a few more", []float64{.4, .3, .3}, second, size, size + 3, false},
		{"three that agree, half as many more", []float64{.4, .3, .3}, second, size, 3*size/2 + 3, true},
		{"three that do not agree, half as many more", []float64{.4, .3, .3}, 900 * second, size, 3*size/2 + 3, true},
		{"three, of which one bears all", []float64{.4, .3, .3}, 900 * second, 2 * size, 3*size/2 + 3, false},
		{"three, of which one that is unlikely bears all", []float64{.5, .45, .05}, 900 * second, 2 * size, 3*size/2 + 3, true},
		{"nobody is sure", []float64{.3}, 0, size, 2*size + 3, false},
	} {
		b := &bank{live: len(c.weights)}
		b.grain = leastGrain
		for i, w := range c.weights {
			b.of = append(b.of, candidate{shape: shape{family: windowFirst, per: 120*second + Instant(i)*c.apart}, size: size, weight: w})
		}
		b.of[len(b.of)-1].size = c.large
		l := b.sent(zero, 1, 0, 0)
		l.under, l.refused = 0, 1
		b.record.refused(l, zero+trip, zero, -1)
		for i := range c.taken {
			l := b.sent(zero+second+Instant(i)*second, 1, 0, 0)
			l.under, l.taken = 0, 1
		}
		var p replay
		if got := b.rise(&p); got != c.rose || c.rose != (p.risen == b.lastID) {
			t.Errorf("%s: rose is %t, after epoch %d, want %t", c.name, got, p.risen, c.rose)
		}
		if b.rise(&p) {
			t.Errorf("%s: it rose again", c.name)
		}
	}
}
