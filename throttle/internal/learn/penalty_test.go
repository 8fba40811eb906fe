package learn

import (
	"math"
	"testing"
)

// slots is a replay of so many slots, each of which ends with a refusal that shows a size of 10.
func slots(n int) *replay {
	p := &replay{n: n}
	for i := range n {
		p.slots[i] = slot{reached: 10, level: 9.5, sharp: 9.5, own: 9.5, clear: 9.5, later: -1, epoch: uint16(i + 1)}
	}
	return p
}

// TestWhatCameBeforeARiseDoesNotCount: neither what was against a size before the limit rose to it,
// nor what only doubt about arrivals explained then.
func TestWhatCameBeforeARiseDoesNotCount(t *testing.T) {
	for _, c := range []struct {
		name string
		old  func(*slot)
	}{
		{"refused with room", func(s *slot) { s.level, s.sharp, s.own, s.clear = 4, 4, 4, 4 }},
		{"refused by the doubt about arrivals", func(s *slot) { s.sharp = 4 }},
	} {
		p := slots(12)
		for i := range 8 {
			c.old(&p.slots[i])
		}
		before, doubt := p.penalty(10)
		if before+doubt < 2*riseOdds {
			t.Fatalf("%s: %v and %v are against it, which tells nothing", c.name, before, doubt)
		}
		p.risen = p.slots[7].epoch
		if against, doubt := p.penalty(10); math.Abs(against-riseOdds) > 1e-9 || doubt != 0 {
			t.Errorf("%s: %v and %v are against it after the rise, want %v and 0", c.name, against, doubt, riseOdds)
		}
	}
}

// TestWhatOnlyMergedEntriesExplainIsUnjudged: if nobody knows any more when the units were sent that
// would explain a refusal, it is neither explained nor refuted.
func TestWhatOnlyMergedEntriesExplainIsUnjudged(t *testing.T) {
	p := slots(1)
	if against, _ := p.penalty(10); against != 0 {
		t.Fatalf("%v is against a size that explains all", against)
	}
	p.slots[0].clear = 4
	if against, _ := p.penalty(10); math.Abs(against-unjudged*p.weight(0)) > 1e-9 {
		t.Errorf("%v is against it, want %v", against, unjudged)
	}
}
