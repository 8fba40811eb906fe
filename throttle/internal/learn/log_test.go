package learn

import "testing"

// TestMergedEntriesShowNoMoreThanThereWas: requests that pass a sliding window in groups
// that grow never show a level above its size, however coarse the log has become.
func TestMergedEntriesShowNoMoreThanThereWas(t *testing.T) {
	const size, per = 20, 2 * second
	for _, groups := range [][]int{{1, 2, 4, 8, 5}, {1, 1, 2, 4, 8, 4}, {8, 5, 4, 2, 1}, {10, 1, 9}} {
		var l Learner
		l.Sent(zero-per, 1)
		l.Refused(zero-per+trip, zero-per, 1, Refusal{})
		for w := range Instant(100) {
			at := zero + w*(per+second/1000)
			for _, n := range groups {
				for range n {
					l.Sent(at, 1)
				}
				for range n {
					l.Accepted(at+trip, at, 1)
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
		l.Sent(zero, 1)
		l.Accepted(zero+trip, zero, 1)
	}
	const refusals = 1000
	for i := range Instant(refusals) {
		at := zero + (i+1)*2*trip
		l.Sent(at, 1)
		l.Refused(at+trip, at, 1, Refusal{})
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
