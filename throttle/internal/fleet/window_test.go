package fleet

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/farstore"
)

// windowFleets are n processes that share a window.
func windowFleets(t *testing.T, s *farstore.Store, n int) (fs []*Fleet, ws []*Window, keys [][]Key) {
	for range n {
		f, w := New(s, Config{Members: n}), NewWindow("w")
		t.Cleanup(f.Close)
		fs, ws = append(fs, f), append(ws, w)
		keys = append(keys, []Key{{ID: "k", Name: "k", Window: w, Tallies: w.Tallies()}})
	}
	return fs, ws, keys
}

// bookPlace books one that may wait for so long, and reports whether it got it.
func bookPlace(f *Fleet, keys []Key, most time.Duration) (*Grant, bool) {
	g, r := f.Book(context.Background(), keys, nil, Options{MaxWait: most, Held: true})
	return g, r == nil
}

// What one process says of a window holds for all, whether it became smaller or larger, and
// of two that say so at once the smaller one counts.
func TestAWindowIsThatOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, ws, keys := windowFleets(t, farstore.New(time.Millisecond), 3)
		hear := func(want Width) {
			t.Helper()
			time.Sleep(10 * time.Millisecond)
			for i, f := range fs {
				g, _ := bookPlace(f, keys[i], time.Millisecond)
				g.Done()
				if got, _ := ws[i].Width(); got.Most != want.Most || got.Shown != want.Shown {
					t.Errorf("process %d hears of %+v, want %+v", i, got, want)
				}
				time.Sleep(10 * time.Millisecond)
			}
		}
		hear(Width{})
		fs[0].Widen("k", ws[0], Width{Most: 9})
		hear(Width{Most: 9})
		fs[1].Widen("k", ws[1], Width{Most: 3, Shown: true})
		hear(Width{Most: 3, Shown: true})
		for i, n := range []int{5, 2, 7} {
			fs[i].Widen("k", ws[i], Width{Most: n})
		}
		hear(Width{Most: 2})
		fs[2].Widen("k", ws[2], Width{})
		hear(Width{})
		fs[0].Widen("k", ws[0], Width{Most: 4000000})
		hear(Width{Most: mostWindow - 1})
	})
}

// No more requests are under way in all processes than the window says. Those of a process
// that dies, and those that take long, make room when they are not heard of for its patience.
func TestPlacesOfAWindowAreTheFleets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = 16 * time.Second
		fs, ws, keys := windowFleets(t, farstore.New(time.Millisecond), 2)
		fs[0].Widen("k", ws[0], Width{Most: 2, Patience: patience})
		time.Sleep(10 * time.Millisecond)
		heard, _ := bookPlace(fs[1], keys[1], 0)
		heard.Done()
		time.Sleep(10 * time.Millisecond)
		first, _ := bookPlace(fs[0], keys[0], 0)
		if _, ok := bookPlace(fs[0], keys[0], 0); first == nil || !ok {
			t.Fatal("the two places are not there")
		}
		if _, ok := bookPlace(fs[1], keys[1], time.Second); ok {
			t.Error("a third request is under way")
		}
		first.Done()
		second, ok := bookPlace(fs[1], keys[1], 500*time.Millisecond)
		if !ok {
			t.Error("what was given back is not free")
		}
		time.Sleep(patience) // fs[0] never ends the other one
		third, ok := bookPlace(fs[1], keys[1], 100*time.Millisecond)
		if !ok {
			t.Error("the place of a process that died is not free")
		}
		second.Done() // that the store has let go
		third.Done()
		for range 2 {
			if _, ok := bookPlace(fs[0], keys[0], 100*time.Millisecond); !ok {
				t.Error("a place got lost")
			}
		}
		if _, ok := bookPlace(fs[1], keys[1], 100*time.Millisecond); ok {
			t.Error("there is a place too many")
		}
	})
}

// A store that forgot the window is told again by whoever knows it.
func TestAWindowOutlivesItsStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		fs, ws, keys := windowFleets(t, s, 2)
		fs[0].Widen("k", ws[0], Width{Most: 2})
		time.Sleep(10 * time.Millisecond)
		g, _ := bookPlace(fs[0], keys[0], time.Second)
		g.Done()
		time.Sleep(2 * tallyPer) // the mark began anew
		g, _ = bookPlace(fs[0], keys[0], time.Second)
		g.Done()
		fs[0].Keep("k", ws[0])
		time.Sleep(10 * time.Millisecond)
		g, _ = bookPlace(fs[1], keys[1], 5*time.Second)
		g.Done()
		if got, _ := ws[1].Width(); got.Most != 2 {
			t.Errorf("the other process hears of %+v", got)
		}
	})
}

// A process that asked for a place by a window that had become smaller meanwhile does not
// send: the request gives the place back, and waits for one that there is.
func TestAPlaceOfAWiderWindowIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		fs, ws, keys := windowFleets(t, s, 2)
		fs[0].Widen("k", ws[0], Width{Most: 2})
		time.Sleep(10 * time.Millisecond)
		g, _ := bookPlace(fs[1], keys[1], 0)
		g.Done()
		time.Sleep(10 * time.Millisecond)
		g, _ = bookPlace(fs[0], keys[0], 0)
		fs[0].Widen("k", ws[0], Width{Most: 1, Shown: true})
		time.Sleep(10 * time.Millisecond) // fs[1] has not heard of that
		begin := time.Now()
		time.AfterFunc(time.Second, g.Done)
		go func() { // so that one of two is booked
			if g, ok := bookPlace(fs[1], keys[1], 5*time.Second); ok {
				g.Done()
			}
		}()
		late, ok := bookPlace(fs[1], keys[1], 5*time.Second)
		if waited := time.Since(begin); !ok || waited < time.Second || waited > 2*time.Second {
			t.Errorf("granted %v after %v, want it soon after the first ended", ok, waited)
		}
		late.Done()
		time.Sleep(10 * time.Millisecond)
		if n := late.Among(); n != 1 {
			t.Errorf("%d had a place, want 1", n)
		}
		last, ok := bookPlace(fs[0], keys[0], 0)
		if !ok {
			t.Error("a place got lost")
		}
		last.Done()
	})
}

// While all places are taken for long, each process that waits asks and says once a second that
// it waits, and not for each request that waits.
func TestThoseThatWaitForPlacesAskSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lasts = 2 * time.Second
		s := farstore.New(time.Millisecond)
		fs, ws, keys := windowFleets(t, s, 8)
		fs[0].Widen("k", ws[0], Width{Most: 1})
		time.Sleep(10 * time.Millisecond)
		g, _ := bookPlace(fs[0], keys[0], 0)
		for i, f := range fs[1:] {
			ws[i+1].Lasts(lasts)
			for range 4 {
				go func() {
					if g, ok := bookPlace(f, keys[i+1], time.Minute); ok {
						g.Done()
					}
				}()
			}
		}
		time.Sleep(3 * lasts) // until all know how many wait, and that nothing moves
		before := s.Books()
		time.Sleep(5 * lasts)
		if n, most := s.Books()-before, 2*8*10; n > most {
			t.Errorf("asked %d times, want at most %d", n, most)
		}
		g.Done()
		time.Sleep(10 * time.Second)
	})
}

// While the store is gone, the shares of a window add up to it, on average, and those of a budget
// to no more than it, or to one each.
func TestSharesOfAWindowAddUp(t *testing.T) {
	const members, fleets = 16, 400
	for _, most := range []int64{16, 17, 24, 31, 32, 100} {
		var window, budget int64
		for range fleets * members {
			f := New(farstore.New(0), Config{Members: members})
			window += f.places(Key{Window: NewWindow("w")}, most)
			budget += f.places(Key{InFlight: int(most)}, most)
			f.Close()
		}
		if mean := float64(window) / fleets; math.Abs(mean-float64(most)) > 1 { // 10 deviations
			t.Errorf("%d places: the processes have %.1f", most, mean)
		}
		if budget > most*fleets {
			t.Errorf("%d places of a budget: the processes have %d", most, budget/fleets)
		}
	}
}
