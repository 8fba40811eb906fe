package store_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// TestLedgerClockSteps polices by a clock that steps: a caller that asks all the
// time, and is refused or let in at once. By true time a step back neither
// stalls it nor mints anything; one ahead lets the size through again.
func TestLedgerClockSteps(t *testing.T) {
	for _, l := range []store.Limit{
		{ID: "m", Kind: store.MeterLimit, Size: 5, Rate: 5},
		{ID: "m", Kind: store.MeterLimit, Size: 2, Rate: 8.0 / 1.05, Credit: 8},
		{ID: "l", Kind: store.LogLimit, Size: 5, Per: time.Second},
		{ID: "l", Kind: store.LogLimit, Size: 200, Per: 40 * time.Second, Grain: 400 * time.Millisecond},
	} {
		most := func(w time.Duration) float64 { return l.Size + l.Rate*w.Seconds() }
		if l.Kind == store.LogLimit {
			most = func(w time.Duration) float64 { return l.Size * float64(1+w/l.Per) }
		}
		t.Run(fmt.Sprint(l.Kind, l.Size), func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, uint64(l.Size)))
			var ledgers [1]store.Ledger
			var in []time.Duration
			var ahead int
			clock := time.Unix(1_800_000_000, 0)
			for now := time.Duration(0); now < 400*time.Second; {
				d := time.Duration(r.IntN(int(50 * time.Millisecond)))
				now, clock = now+d, clock.Add(d)
				switch r.IntN(2000) {
				case 0:
					clock = clock.Add(-time.Duration(r.Int64N(int64(time.Hour))))
				case 1:
					clock = clock.Add(time.Duration(r.Int64N(int64(time.Hour))))
					ahead++
				}
				b := store.Booking{Draws: []store.Draw{{Key: "k", Limits: []store.Limit{l}, Units: []store.UnitCost{{Unit: "requests", First: 1, All: 1}}}}}
				next, k := store.Book(clock, ledgers[:], b)
				if next != nil {
					ledgers[0] = next[0]
				}
				if k.Outcome == store.BookedAll {
					in = append(in, now)
				}
			}
			var longest time.Duration
			for i := 1; i < len(in); i++ {
				longest = max(longest, in[i]-in[i-1])
			}
			// What passed since the last write is lost with a step.
			if limit := 2*max(l.Per, time.Second) + 100*time.Millisecond; longest > limit {
				t.Errorf("nobody was let in for %v, want %v at most", longest, limit)
			}
			for _, w := range []time.Duration{l.Per + time.Second, 10 * time.Second, 100 * time.Second} {
				lo := 0
				for hi := range in {
					for in[hi]-in[lo] >= w {
						lo++
					}
					if n := float64(hi - lo + 1); n > most(w)+float64(ahead)*l.Size {
						t.Fatalf("%v let in within %v with %d steps ahead, want at most %v and the size for each", n, w, ahead, most(w))
					}
				}
			}
			t.Log(len(in), longest, ahead)
		})
	}
}
