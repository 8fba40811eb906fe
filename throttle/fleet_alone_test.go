package throttle_test

import (
	"testing"
	"testing/synctest"
	"time"
)

// While the store is gone, whether it was ever there or not, each process takes its
// part of what the server states.
func TestFleetWithoutBudgetsAndStore(t *testing.T) {
	for _, never := range []bool{false, true} {
		for _, seed := range []uint64{11, 12, 13} {
			synctest.Test(t, func(t *testing.T) {
				b := newBudgeted(seed, "fixed", "ietf")
				if b.outage = 1; !never {
					b.outage = 2 * b.per
				}
				w := b.work(t, 16, 4, 0, 8*b.per)
				if w.served < 8*b.size*4/5 || w.refused > 3*16 {
					t.Errorf("from %v: %d per %v: %d served, %d refused", b.outage, b.size, b.per, w.served, w.refused)
				}
			})
		}
	}
}

// A process that has never met the store sends as many at a time as one without.
func TestFleetThatNeverMetItsStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudgeted(11, "fixed", "ietf")
		b.size, b.per, b.outage = 5000, 10*time.Second, 1
		b.way = func() time.Duration { return 50 * time.Millisecond }
		if w := b.work(t, 16, 4, 0, b.per); w.served < 3000 {
			t.Errorf("%d served of some 5000", w.served)
		}
	})
}

// While the store is gone each process takes its part of a limit that they found.
func TestFleetOfUnstatedLimitsWithoutStore(t *testing.T) {
	const processes, windows, outage = 16, 9, 4
	all, sum, seeds := 0.0, 0.0, fleetSeeds(2)
	for _, counts := range countsIn {
		for _, states := range statesIn[2:] {
			var served, refused float64 // of what there is, and by each process in a window
			for _, seed := range seeds {
				synctest.Test(t, func(t *testing.T) {
					b := newBudgeted(seed, counts, states)
					b.outage = outage * b.per
					var before working
					time.AfterFunc(max(1, b.outage), func() {
						b.mu.Lock()
						defer b.mu.Unlock()
						before = working{served: b.served, refused: b.refused}
					})
					w := b.work(t, processes, 4, 0, windows*b.per)
					served += float64(w.served-before.served) / float64((windows-outage)*b.size*len(seeds))
					refused += float64(w.refused-before.refused) / float64((windows-outage)*processes*len(seeds))
				})
			}
			t.Logf("%s, %s: %.2f of what there is served, %.2f refused", counts, states, served, refused)
			if served < 0.25 { // a sliding log that says nothing is served .40 to .82 by chance
				t.Errorf("%s, %s: %.2f of what there is was served", counts, states, served)
			}
			all, sum = all+served, sum+refused
		}
	}
	if mean := all / 6; mean < 0.7 {
		t.Errorf("%.2f of what there is was served", mean)
	}
	if mean := sum / 6; mean > 1.3 { // with the whole of it each: 1.86. Buckets that say nothing refuse .6 to 2.9, as none knows what others send
		t.Errorf("each was refused %.2f times in a window", mean)
	}
}

// While the store is gone, nobody waits for ever until the others have used what there is room
// for: it does not depend on when a process would have tried whether more is accepted.
func TestFleetWithoutStoreGoesOn(t *testing.T) {
	const windows, outage = 12, 4
	for _, seed := range []uint64{700, 716, 722} {
		synctest.Test(t, func(t *testing.T) {
			b := newBudgeted(seed, "log", "silent")
			b.outage = outage * b.per
			var before int
			time.AfterFunc(max(1, (windows-4)*b.per), func() {
				b.mu.Lock()
				defer b.mu.Unlock()
				before = b.served
			})
			w := b.work(t, 16, 4, 0, windows*b.per)
			got := float64(w.served-before) / float64(4*b.size)
			t.Logf("%d: %.2f of what there is served in the end", seed, got)
			if got < .4 {
				t.Errorf("%d: %.2f of what there is served in the end", seed, got)
			}
		})
	}
}
