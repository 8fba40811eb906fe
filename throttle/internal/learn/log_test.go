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
