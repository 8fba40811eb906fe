package attribution_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/attribution"
)

// A wait is taken for one of few until who asks is refused, too. Then all keep it, and one asks
// again after one, two, four such waits.
func TestAWaitBindsFewUntilWhoAsksIsRefused(t *testing.T) {
	var r attribution.Reach
	now := zero.Add(time.Hour)
	asked := []int{}
	for wait := range 20 {
		few, asks := r.Refused(now, now.Add(sec), time.Minute, false, 0)
		if few != asks {
			t.Fatalf("wait %d binds few %t, and one asks %t", wait, few, asks)
		}
		if asks {
			asked = append(asked, wait)
			if few, _ := r.Refused(now.Add(2*sec), now.Add(3*sec), time.Minute, true, 0); few {
				t.Errorf("wait %d binds few though who asked was refused", wait)
			}
		}
		if few, _ := r.Refused(now.Add(2*sec), now.Add(4*sec), time.Minute, true, 0); few {
			t.Errorf("wait %d binds few after it bound all", wait)
		}
		now = now.Add(2 * time.Minute)
	}
	if want := []int{0, 1, 3, 7, 15}; len(asked) != len(want) || asked[4] != want[4] {
		t.Errorf("asked in waits %v, want %v", asked, want)
	}
	now = now.Add(attribution.Remembered)
	if few, asks := r.Refused(now, now, time.Minute, true, 0); !few || !asks {
		t.Errorf("after ten minutes it binds few %t, and one asks %t", few, asks)
	}
}

// As many others as the caller says are refused in a row before a wait binds all; whoever is
// refused a second time is none of them.
func TestSomeAreRefusedBeforeAWaitBindsAll(t *testing.T) {
	for most := range 5 {
		var r attribution.Reach
		r.Refused(zero, zero.Add(sec), time.Minute, false, most)
		for other := range most {
			r.Refused(zero.Add(sec), zero.Add(2*sec), time.Minute, false, most)
			if few, asks := r.Refused(zero.Add(sec), zero.Add(2*sec), time.Minute, true, most); !few || !asks {
				t.Errorf("%d of %d others were refused: it binds few %t, and one asks %t", other+1, most, few, asks)
			}
		}
		if few, asks := r.Refused(zero.Add(sec), zero.Add(2*sec), time.Minute, true, most); few || asks {
			t.Errorf("%d others were refused, of %d: it binds few %t, and one asks %t", most+1, most, few, asks)
		}
	}
}

// All are asked before a wait binds all for the first time; when some ask again whether it
// does, four are enough.
func TestFourAreRefusedBeforeAWaitBindsAllAgain(t *testing.T) {
	for most, want := range map[int][2]int{1: {2, 2}, 3: {4, 4}, 20: {21, 4}} {
		var r attribution.Reach
		now := zero.Add(time.Hour)
		for again, want := range want {
			asked := 0
			for few, _ := r.Refused(now, now.Add(sec), time.Minute, false, most); few; asked++ {
				few, _ = r.Refused(now.Add(sec), now.Add(2*sec), time.Minute, true, most)
			}
			if asked != want {
				t.Errorf("at most %d: %d others were refused before it bound all, want %d (again: %d)", most, asked, want, again)
			}
			now = now.Add(2 * time.Minute)
		}
	}
}

// Who is served in the first half of a wait that was sent after it began speaks for waits that
// bind few; whoever else is served says nothing.
func TestWhoIsServedWhileAWaitLastsSpeaksForFew(t *testing.T) {
	for _, test := range []struct {
		sent time.Duration // after the refused request was
		few  bool
	}{{0, false}, {1, true}, {2 * sec, true}, {31*sec - 1, true}, {31 * sec, false}, {time.Minute, false}} {
		var r attribution.Reach
		r.Refused(zero, zero.Add(sec), time.Minute, false, 0)
		for range 3 {
			r.Served(zero.Add(test.sent))
		}
		if few, _ := r.Refused(zero.Add(2*sec), zero.Add(3*sec), time.Minute, true, 0); few != test.few {
			t.Errorf("served %v after the refused: the next refusal binds few %t", test.sent, few)
		}
	}
}

// If another was refused, others ask in the first half of a wait or after it, unless one who asked
// was served.
func TestNobodyAsksInTheSecondHalfOfAWait(t *testing.T) {
	for _, says := range []struct{ refused, served bool }{{false, false}, {true, false}, {true, true}} {
		var r attribution.Reach
		if now := zero.Add(sec); r.Asks(now) != now {
			t.Error("one has to wait to ask, though nobody was told to stay away")
		}
		r.Refused(zero, zero.Add(sec), time.Minute, false, 3)
		if says.refused {
			r.Refused(zero, zero.Add(sec), time.Minute, true, 3)
		}
		if says.served {
			r.Served(zero.Add(2 * sec))
		}
		for _, test := range []struct {
			now  time.Duration
			late bool
		}{{2 * sec, false}, {31*sec - 1, false}, {31 * sec, true}, {61*sec - 1, true}, {61 * sec, false}} {
			now, want := zero.Add(test.now), zero.Add(test.now)
			if test.late && says.refused && !says.served {
				want = zero.Add(61 * sec)
			}
			if got := r.Asks(now); got != want {
				t.Errorf("%+v: at %v one asks in %v, want %v", says, test.now, got.Sub(now), want.Sub(now))
			}
		}
	}
}

// The first to ask that is served is news, once.
func TestTheFirstWhoAsksAndIsServedIsNews(t *testing.T) {
	var r attribution.Reach
	r.Refused(zero, zero.Add(sec), time.Minute, false, 0)
	if r.Served(zero.Add(sec / 2)) {
		t.Error("who was sent before the refusal was heard did not ask")
	}
	r = attribution.Reach{}
	r.Refused(zero, zero.Add(sec), time.Minute, false, 0)
	if !r.Served(zero.Add(sec)) || r.Served(zero.Add(sec)) {
		t.Error("want news of the first, and none of the second")
	}
}

// A host that refuses a tenth by chance is soon taken for one whose waits bind few, and is not
// asked any more; one that refuses nine in ten, as a bucket that hardly fills, is taken for one
// whose waits bind all.
func TestTheShareThatIsRefusedTellsHowFarAWaitReaches(t *testing.T) {
	for _, test := range []struct {
		refuses     float64
		least, most float64 // share of refusals that bind few
	}{{.02, .9, 1}, {.1, .8, 1}, {.9, 0, .3}} {
		few, all := 0, 0
		for seed := range uint64(40) {
			var r attribution.Reach
			dice, now := rand.New(rand.NewPCG(seed, 9)), zero.Add(time.Hour)
			for range 2000 {
				now = now.Add(100 * time.Millisecond)
				if dice.Float64() >= test.refuses {
					r.Served(now)
					continue
				}
				ok, _ := r.Refused(now, now, time.Minute, true, 2)
				if all++; ok {
					few++
				} else {
					now = now.Add(time.Minute)
				}
			}
		}
		if share := float64(few) / float64(all); share < test.least || share > test.most {
			t.Errorf("%v refused: %.3f of the refusals bind few, want %v to %v", test.refuses, share, test.least, test.most)
		}
	}
}
