package learn

import "testing"

// TestMergedEntriesShowNoMoreThanThereWas: requests that pass a sliding window in groups
// that grow never show a level above its size, however coarse the log has become.
func TestMergedEntriesShowNoMoreThanThereWas(t *testing.T) {
	const size, per = 20, 2 * second
	for _, groups := range [][]int{{1, 2, 4, 8, 5}, {1, 1, 2, 4, 8, 4}, {8, 5, 4, 2, 1}, {10, 1, 9}} {
		var l Learner
		l.Sent(zero - per)
		l.Refused(zero-per+trip, zero-per, Refusal{})
		for w := range Instant(100) {
			at := zero + w*(per+second/1000)
			for _, n := range groups {
				for range n {
					l.Sent(at)
				}
				for range n {
					l.Accepted(at+trip, at)
				}
				at += trip
			}
		}
		var p replay
		p.run(&shape{family: slidingLog, per: per}, &l.mind.bank.record, l.mind.bank.timing)
		for _, s := range p.slots[:p.n] {
			if s.reached > size+1e-3 || s.reached < size*3/4 && s.reached > 0 {
				t.Errorf("groups of %v: a level of %v is shown, want at most %d", groups, s.reached, size)
			}
		}
	}
}

// TestRefusalsPushOutNothingThatCounts: however often a full window refuses, what filled it is
// remembered, and how many were refused as well.
func TestRefusalsPushOutNothingThatCounts(t *testing.T) {
	var l Learner
	for range 100 {
		l.Sent(zero)
		l.Accepted(zero+trip, zero)
	}
	const refusals = 1000
	for i := range Instant(refusals) {
		at := zero + (i+1)*2*trip
		l.Sent(at)
		l.Refused(at+trip, at, Refusal{})
	}
	taken, refused := 0, 0
	for i := range l.mind.bank.log {
		taken += int(l.mind.bank.log[i].taken)
		refused += int(l.mind.bank.log[i].refused)
	}
	if l.mind.bank.cut || taken != 100 || refused != refusals {
		t.Errorf("%d that were accepted and %d that were refused are remembered, want 100 and %d", taken, refused, refusals)
	}
}

// TestMergedEntriesBlurTheirOwnWindowsAlone: of windows by a clock, those that began after a merged
// entry are known to the unit, and of the one that it reaches into no more than its own units are in
// doubt.
func TestMergedEntriesBlurTheirOwnWindowsAlone(t *testing.T) {
	const per, merged, last = 60 * second, 2000, 10 * second
	for _, phase := range []Instant{zero - 20*second, zero + 4*second, zero + 31*second} { // where a window begins, before, within and after the entry
		var r record
		r.grain = leastGrain
		r.log = append(r.log, entry{at: zero, last: zero + last, taken: merged, uneven: 8000})
		for at := zero + last + second; at < zero+80*second; at += 3 * second {
			e := r.sent(at, 1, 0, 0)
			e.under, e.taken = 0, 1
			e = r.sent(at+second, 1, 0, 0)
			e.under, e.refused = 0, 1
			r.refused(e, at+second+trip, at+second, -1)
		}
		var p replay
		p.run(&shape{family: windowClock, per: per, phase: phase}, &r, timing{})
		if p.n < 20 {
			t.Fatalf("%d slots", p.n)
		}
		for i, n := 0, 0; i < p.n-1; i++ {
			at := zero + last + second + Instant(i)*3*second
			begin := at - mod(at-phase, per)
			if n++; i > 0 && begin > at-3*second {
				n = 1
			}
			least, most := float64(n), float64(n)
			if begin <= zero+last {
				most += merged
			}
			if s := &p.slots[i]; s.reached < least || s.level < most || s.level > most {
				t.Errorf("windows begin at %v: after %d of its own, slot %d says from %v to %v, want %v or more and %v", phase-zero, n, i, s.reached, s.level, least, most)
			}
		}
	}
}
