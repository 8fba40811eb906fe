package fleet

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Of processes that hear of each window in the same order, and then draw what they may,
// the last ones get as much as the first: nobody is ever six units off an equal part.
func TestLeadsAreEven(t *testing.T) {
	const k, windows = 16, 12
	for _, size := range []int{22, 60, 183} {
		tally := NewTally("x", "requests")
		leads, drawn := make([]Lead, k), make([]int, k)
		now := meter.Instant(time.Hour)
		for range windows {
			left := size
			for i := range leads {
				leads[i].Lacks(now, false)
			}
			for ; left > 0; now = now.Add(mostTurn) {
				for i := range leads {
					for left > 0 {
						share := float64(left) / k
						ahead := leads[i].Ahead(int64(drawn[i]), tally.count, k, float64(size)) + 1 - share
						if leads[i].Wait(now, ahead, max(1, share), mostTurn, tally.count-int64(drawn[i]), 0) > 0 {
							break
						}
						leads[i].Drew(1)
						drawn[i]++
						tally.count++
						left--
					}
				}
			}
			for i, n := range drawn {
				if part := float64(tally.count) / k; math.Abs(float64(n)-part) >= 6 {
					t.Fatalf("of %d per window, process %d drew %d, want about %.1f: %v", size, i, n, part, drawn)
				}
			}
		}
	}
}

// All processes go by what the store counts: together their leads are zero, whatever each drew,
// was refused by the store, or gave back. A unit counts from when it is drawn.
func TestLeadsAreZeroTogether(t *testing.T) {
	const k, size = 8, 800
	r := rand.New(rand.NewPCG(7, 7))
	leads, own, all := make([]Lead, k), make([]int64, k), int64(0)
	ahead := func(i int) float64 { return leads[i].Ahead(own[i], all, k, size) }
	for range 1000 {
		i := r.IntN(k)
		before := ahead(i)
		leads[i].Drew(1)
		if got := ahead(i); math.Abs(got-before-1) > 1e-9 {
			t.Fatalf("%.2f ahead after a unit more, want %.2f", got, before+1)
		}
		switch r.IntN(3) {
		case 0:
			leads[i].Drew(-1) // the store booked nothing
		case 1:
			own[i]++
			all++
		case 2: // it was booked, and given back
			own[i]++
			all++
			ahead(i)
			own[i]--
			all--
		}
	}
	sum := 0.0
	for i := range leads {
		sum += ahead(i)
	}
	if math.Abs(sum) > 1e-6 {
		t.Errorf("all together are %.2f units ahead, want 0", sum)
	}
}

// What the store never counts, as it was gone or the request drew on too much else, is forgotten
// once nothing is on its way to the store.
func TestLeadForgetsWhatTheStoreNeverCounts(t *testing.T) {
	var l Lead
	l.Drew(3)
	if got := l.Ahead(0, 0, 4, 100); got != 3 {
		t.Errorf("%v ahead, want 3", got)
	}
	if l.Counted(); l.Ahead(0, 0, 4, 100) != 0 {
		t.Errorf("%v ahead, want 0", l.Ahead(0, 0, 4, 100))
	}
}

// A process that has more to do than others, which draw nothing any more, waits for them less
// and less, also if the limit is short in between; and as long as at first if they draw again,
// or if it cannot hear whether they do.
func TestWaitsForOthersThatDrawNothingGetShorter(t *testing.T) {
	var l Lead
	now := meter.Instant(time.Hour)
	turn := func(others int64, alone bool) time.Duration {
		l.Lacks(now, alone)
		begin := now
		for {
			d := l.Wait(now, 4, 1, mostTurn, others, 0)
			if d == 0 {
				return now.Sub(begin)
			}
			now = now.Add(d)
		}
	}
	const longest = mostTurns * mostTurn
	for want := longest; want >= longest/16; want /= 2 {
		if got := turn(100, false); got != want {
			t.Errorf("waits %v for others that draw nothing, want %v", got, want)
		}
	}
	if got := turn(101, false); got != longest {
		t.Errorf("waits %v for others that have drawn, want %v", got, longest)
	}
	for range 2 {
		if got := turn(101, true); got != longest {
			t.Errorf("waits %v for others that it does not hear of, want %v", got, longest)
		}
	}
}

// However fast a limit seems to be, a turn for others lasts until they have asked the Store.
func TestTurnsLastUntilOthersHaveAsked(t *testing.T) {
	for _, members := range []int{2, 16, 40} {
		var l Lead
		if got, want := l.Wait(meter.Instant(time.Hour), 1, 1, Turn(time.Millisecond, members), 0, 0), AskPause(members); got < want {
			t.Errorf("a turn for %d members lasts %v, want %v", members, got, want)
		}
	}
}

// A process that sees room where others see none waits for these, a turn for each unit that it
// is ahead: it does not draw all that they leave. If they need nothing, it does.
func TestWaitsForOthersThatLackGetLonger(t *testing.T) {
	const k = 16
	drawn := func(lack bool) (units int64) {
		var l Lead
		asked := int64(0)
		for now := meter.Instant(time.Hour); now < meter.Instant(time.Hour+time.Minute); now = now.Add(100 * time.Millisecond) {
			if lack {
				asked++
			}
			for range 10 { // each time there is room for ten more
				if l.Wait(now, l.Ahead(units, units, k, k)+1, 1, 500*time.Millisecond, 0, asked) > 0 {
					break
				}
				l.Drew(1)
				units++
			}
		}
		return units
	}
	if n := drawn(true); n < 5 || n > 12 {
		t.Errorf("drew %d units in a minute in which others had too little, want about 8", n)
	}
	if n := drawn(false); n < 5000 {
		t.Errorf("drew %d units in a minute in which others needed nothing, want nearly all", n)
	}
}
