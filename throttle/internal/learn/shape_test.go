package learn

import (
	"math"
	"math/rand/v2"
	"testing"
)

var shapes = map[string]shape{
	"bucket":       {family: bucket, per: second / 7},
	"sliding log":  {family: slidingLog, per: 3 * second},
	"first window": {family: windowFirst, per: 3 * second},
	"clock window": {family: windowClock, per: 3 * second, phase: second},
	"counter":      {family: counter, per: 3 * second, phase: second},
}

// TestThereIsRoomWhenReady: at the instant that ready names there is room, and
// shortly before it there is none.
func TestThereIsRoomWhenReady(t *testing.T) {
	for name, s := range shapes {
		r := rand.New(rand.NewPCG(1, 9))
		var log []entry
		at := zero
		st := s.begin(at)
		const size = 12
		waited := 0
		for range 3000 {
			at += Instant(r.ExpFloat64() * .1e9)
			s.pass(&st, at, log, 0)
			ready := s.ready(st, size, at, log, 0)
			if got := s.peek(&st, ready, log, 0) + 1; got > size+1e-3 {
				t.Fatalf("%s: %v of %d in use when it is ready", name, got, size)
			}
			if early := ready - 1e6; early > at {
				waited++
				if got := s.peek(&st, early, log, 0) + 1; got <= size-1e-3 {
					t.Fatalf("%s: %v of %d in use before it is ready", name, got, size)
				}
			}
			at = ready
			log = append(log, entry{at: at, last: at, taken: 1})
			s.pass(&st, at, log, 0)
			s.add(&st, at, 1)
		}
		if waited < 100 {
			t.Errorf("%s: waited %d times", name, waited)
		}
	}
}

// TestARateIsWhatWhoSendsWhenReadyGets: in the long run, of a limiter of any size.
func TestARateIsWhatWhoSendsWhenReadyGets(t *testing.T) {
	for name, s := range shapes {
		for _, size := range []float64{1, 2, 3, 7, 40} {
			var log []entry
			at, n := zero, 0
			st := s.begin(at)
			end := zero + 400*s.per
			for ; at < end && n < 50_000; n++ {
				at = s.ready(st, size, at, log, 0)
				log = append(log, entry{at: at, last: at, taken: 1})
				s.pass(&st, at, log, 0)
				s.add(&st, at, 1)
			}
			if got, want := (float64(n)-size)/(float64(at-zero)/1e9), s.rate(size); got < .97*want || got > 1.03*want {
				t.Errorf("%s of %v: %.3f/s, want %.3f/s", name, size, got, want)
			}
		}
	}
}

// TestTheLevelDoesNotDependOnTheSize: one replay explains every size, so what a
// limiter of any size accepts and refuses is explained by that size.
func TestTheLevelDoesNotDependOnTheSize(t *testing.T) {
	for name, s := range shapes {
		for seed := range uint64(40) {
			r := rand.New(rand.NewPCG(seed, 5))
			size := float64(1 + r.IntN(30))
			b := serve(r, &s, size)
			var p replay
			p.run(&s, &b.record, timing{slack: 1})
			if x, _ := p.penalty(size); x > 1e-6 { // but the doubt of a nanosecond
				t.Fatalf("%s of %v: %v speaks against the truth", name, size, x)
			}
			if got, _, _ := p.size(0, math.Inf(1)); math.Abs(got-size) > 1 {
				t.Errorf("%s of %v: found %v", name, size, got)
			}
		}
	}
}

// TestEvenUnitsCountWhereTheyCame: an entry of units that were sent evenly counts on both sides of
// a border as if each of them had an entry of its own.
func TestEvenUnitsCountWhereTheyCame(t *testing.T) {
	for _, f := range []family{windowClock, counter} {
		s := shape{family: f, per: 2 * second, phase: second / 3}
		for seed := range uint64(200) {
			r := rand.New(rand.NewPCG(seed, uint64(f)))
			at, gap, n := zero+Instant(r.Int64N(int64(s.per))), Instant(r.Int64N(int64(second)))+1, 2+r.IntN(8)
			each, merged := s.begin(zero), s.begin(zero)
			for i := range Instant(n) {
				s.pass(&each, at+i*gap, nil, 0)
				s.add(&each, at+i*gap, 1)
			}
			s.spread(&merged, &entry{at: at, last: at + Instant(n-1)*gap, taken: uint16(n)}, nil, 0)
			if each.start != merged.start || each.level != merged.level || f == counter && each.prev != merged.prev {
				t.Errorf("family %d, seed %d: %v and %v before, want %v and %v", f, seed, merged.level, merged.prev, each.level, each.prev)
			}
		}
	}
}

// serve is the log of a limiter that gets more than it allows.
func serve(r *rand.Rand, s *shape, size float64) *bank {
	b := &bank{}
	b.grain = 1
	at := zero
	st := s.begin(at)
	for range 150 {
		at += Instant(r.ExpFloat64()*.05e9) + 10
		l := b.sent(at, 1, 0, 0)
		l.under = 0
		s.pass(&st, at, b.log, 0)
		if s.inUse(&st, at)+1 <= size {
			l.taken = 1
			s.add(&st, at, 1)
		} else {
			l.refused = 1
			b.record.refused(l, at+1, at, -1)
			at += Instant(r.ExpFloat64() * .5e9)
		}
	}
	return b
}

// TestABanExplainsRefusalsUntilItEnds: what arrives later, by the doubt about arrivals or
// more, is refused for another reason, and begins another ban.
func TestABanExplainsRefusalsUntilItEnds(t *testing.T) {
	const ends, slack, ban = zero + 5*second, second / 10, 3 * second
	for _, c := range []struct {
		at        Instant
		again     bool
		explained bool
		ends      Instant
	}{
		{ends - second, false, true, ends},
		{ends - second, true, true, ends - second + ban}, // each refusal begins it anew
		{ends + slack - 1, false, true, ends},
		{ends + slack, false, false, ends + slack + ban},
	} {
		s := shape{family: windowFirst, per: second, ban: ban, again: c.again}
		st := state{barred: ends}
		if got := s.refuses(&st, c.at, slack); got != c.explained || st.barred != c.ends {
			t.Errorf("%v after the end of a ban, again %t: explained is %t, and it ends after %v; want %t, %v", c.at-ends, c.again, got, st.barred-ends, c.explained, c.ends-ends)
		}
	}
	if s := shapes["bucket"]; s.refuses(&state{barred: ends}, zero, slack) {
		t.Error("a limiter without bans explains a refusal by one")
	}
}

// TestTheLeastThatWasRefusedLaterCounts: of the later refusals of an epoch the one with
// the least in use says most.
func TestTheLeastThatWasRefusedLaterCounts(t *testing.T) {
	var p replay
	p.push(slot{level: 9, later: -1})
	for _, c := range []struct{ level, want float64 }{{7, 7}, {8, 7}, {5, 5}, {5.5, 5}, {0, 0}, {3, 0}} {
		if p.later(c.level); p.slots[0].later != c.want {
			t.Errorf("after one with %v in use, the least is %v, want %v", c.level, p.slots[0].later, c.want)
		}
	}
}

// TestRoundNumbers: the likeliest number of an interval is one that people write.
func TestRoundNumbers(t *testing.T) {
	for _, c := range []struct{ lo, hi, want float64 }{
		{97, 104, 100}, {37, 44, 40}, {58, 61, 60}, {4.6, 5.3, 5}, {.48, .53, .5}, {900, 1100, 1000}, {14.2, 15.6, 15},
	} {
		if got := roundest(c.lo, c.hi); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("roundest(%v, %v) = %v, want %v", c.lo, c.hi, got, c.want)
		}
	}
	for range 1000 {
		lo := math.Exp(rand.Float64()*20 - 8)
		hi := lo * (1 + rand.Float64())
		if got := roundest(lo, hi); got < lo*(1-1e-9) || got > hi*(1+1e-9) {
			t.Fatalf("roundest(%v, %v) = %v", lo, hi, got)
		}
	}
}
