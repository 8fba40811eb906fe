package learn

import (
	"math/rand/v2"
	"testing"
)

// TestTheTruthIsNeverDropped: a candidate that nothing speaks against stays,
// whatever else is proposed.
func TestTheTruthIsNeverDropped(t *testing.T) {
	for name, s := range shapes {
		if s.family == bucket {
			s.per = second / 5 // rates are proposed by what was accepted; this one is round
		}
		b := serve(rand.New(rand.NewPCG(2, 5)), &s, 10)
		b.timing = timing{slack: 1}
		b.of = []candidate{{shape: s}}
		b.rebuild()
		found := false
		for i := range b.of {
			found = found || b.of[i].alike(&candidate{shape: s}) && b.of[i].against < 1
		}
		if !found {
			t.Errorf("%s is gone: %v", name, b.of)
		}
	}
}

// TestTheOrderOfAnswersDoesNotMatter within a flight: those that were sent
// together tell the same, whichever is heard first.
func TestTheOrderOfAnswersDoesNotMatter(t *testing.T) {
	outcome := func(order []int) string {
		var l Learner
		for i := range 8 {
			l.Sent(zero + Instant(i)*10*second/1000)
		}
		for _, i := range order {
			sent, now := zero+Instant(i)*10*second/1000, zero+second/5
			if i < 5 {
				l.Accepted(now, sent)
			} else {
				l.Refused(now, sent, Refusal{})
			}
		}
		l.Next(zero+second/5, 3)
		return l.Words()
	}
	want := outcome([]int{0, 1, 2, 3, 4, 5, 6, 7})
	for _, order := range [][]int{{7, 6, 5, 4, 3, 2, 1, 0}, {3, 5, 0, 7, 1, 6, 2, 4}} {
		if got := outcome(order); got != want {
			t.Errorf("in order %v: %s, want %s", order, got, want)
		}
	}
}

// TestAFullLogStaysFull: merging and dropping keep the log within its bound,
// in order, and lose nobody who is still young.
func TestAFullLogStaysFull(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	var b bank
	now := zero
	for range 20000 {
		now += Instant(r.ExpFloat64() * .02e9)
		b.send(now, 1, 0, 0)
		b.accepted(now, 1)
		if len(b.log) > maxEntries || cap(b.log) > 2*maxEntries {
			t.Fatalf("%d records of %d", len(b.log), cap(b.log))
		}
	}
	n := 0.0
	for i := range b.log {
		if i > 0 && b.log[i].at < b.log[i-1].last {
			t.Fatalf("record %d is older than the one before", i)
		}
		if b.log[i].at > now-second {
			n += b.log[i].units(false)
		}
	}
	if n < 25 || n > 90 {
		t.Errorf("%v of about 50 requests of the last second are kept", n)
	}
}

// TestALogThatIsMergedKeepsTheLevels: what is in use stays the same when the log gets
// shorter, and nothing is judged again for it.
func TestALogThatIsMergedKeepsTheLevels(t *testing.T) {
	var b bank
	b.grain, b.of, b.live = 1, []candidate{{shape: shape{family: slidingLog, per: 10 * second}, size: 50, weight: 1}}, 1
	merged := 0
	for i := range 1000 {
		now, before := zero+Instant(i)*second/4, len(b.log)
		b.send(now, 1, 1, 0)
		b.accepted(now, 1)
		if len(b.log) > before {
			continue
		}
		merged++
		if c := b.of[0]; b.stale || max(c.level-40, 40-c.level) > 1 {
			t.Fatalf("after %d, %v are in use; stale: %v", i, c.level, b.stale)
		}
	}
	if merged == 0 {
		t.Error("the log was never merged")
	}
}

// TestABurstIsNotMergedWithWhatFollows: however short the log gets, a bucket seems as
// full as it is to who looks at the log alone.
func TestABurstIsNotMergedWithWhatFollows(t *testing.T) {
	s := shape{family: bucket, per: second / 100}
	st := s.begin(zero)
	var b bank
	b.grain = leastGrain
	now, merged := zero, 0
	for i := range 2000 {
		switch i % 200 {
		case 0:
			now += second
		case 1, 8:
			now += second / 25
		default:
			if now += second / 1000; i%200 > 90 {
				now += second * 9 / 1000
			}
		}
		s.pass(&st, now, nil, 0)
		before := len(b.log)
		b.send(now, 1, 0, 0)
		b.accepted(now, 1)
		if s.add(&st, now, 1); len(b.log) > before {
			continue
		}
		merged++
		var p replay
		p.run(&s, &b.record, timing{})
		if off := p.end.level - st.level; max(off, -off) > 1 {
			t.Fatalf("after %d, %.1f of what was sent is in the bucket; by a log of %d records it is %.1f", i, st.level, len(b.log), p.end.level)
		}
	}
	if merged == 0 {
		t.Error("the log was never merged")
	}
}
