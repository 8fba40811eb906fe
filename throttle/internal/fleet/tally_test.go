package fleet

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/farstore"
	"github.com/weirhttp/weir/throttle/store"
)

// tallied is a key without rates and with a tally of its own.
func tallied(most int64) ([]Key, *Tally) {
	t := NewTally("limit", "requests")
	t.Bound(most)
	return []Key{{ID: "k", Name: "k", Tallies: []*Tally{t}}}, t
}

func book(f *Fleet, keys []Key) (*Grant, *Refusal) {
	return f.Book(context.Background(), keys, nil, Options{MaxWait: time.Hour, Held: true})
}

// Processes together book no more of a tally than it may hold, and who is refused
// knows how much was booked.
func TestTalliesAreBookedUpToTheirBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		type end struct {
			spent bool
			count int64
		}
		ends := make(chan end)
		for range 5 {
			f := New(s, Config{Members: 5})
			defer f.Close()
			keys, tally := tallied(7)
			for range 3 {
				go func() {
					g, r := book(f, keys)
					if r != nil {
						n, _ := tally.Count()
						ends <- end{r.Reason == Spent, n}
						return
					}
					n, known := g.Counts(tally)
					if !known || n < 1 || n > 7 {
						t.Errorf("booked as %d, %v", n, known)
					}
					ends <- end{false, n}
				}()
			}
		}
		spent, as := 0, make(map[int64]bool)
		for range 15 {
			if e := <-ends; !e.spent {
				as[e.count] = true
			} else if spent++; e.count != 7 {
				t.Errorf("refused at a count of %d", e.count)
			}
		}
		if spent != 8 || len(as) != 7 {
			t.Errorf("%d refused of 15, and counts of %v", spent, as)
		}
	})
}

// The count of a process goes on when the store begins anew, after its hour or
// because it lost it, and a refund takes back.
func TestTallyGoesOnWhenTheStoreBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		f := New(s, Config{Members: 1})
		defer f.Close()
		keys, tally := tallied(Unbounded)
		count := func(want int64) {
			t.Helper()
			g, r := book(f, keys)
			if r != nil {
				t.Fatal(r)
			}
			if n, known := g.Counts(tally); !known || n != want {
				t.Errorf("a count of %d, %v, want %d", n, known, want)
			}
		}
		for i := range int64(9) {
			count(i + 1)
		}
		time.Sleep(2 * tallyPer)
		count(10)
		tally.Bound(11)
		count(11)
		if _, r := book(f, keys); r == nil || r.Reason != Spent {
			t.Errorf("beyond its bound: %+v", r)
		}
		tally.Bound(Unbounded)
		g, _ := book(f, keys)
		g.Cancel()
		synctest.Wait()
		time.Sleep(time.Second)
		count(12)
	})
}

// While the store is gone nobody counts.
func TestTalliesBindNobodyAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		s.Fail(context.DeadlineExceeded, true)
		f := New(s, Config{Members: 2})
		defer f.Close()
		keys, tally := tallied(1)
		for range 3 {
			g, r := book(f, keys)
			if r != nil || !g.Alone() {
				t.Fatal(g, r)
			}
			if _, known := g.Counts(tally); known {
				t.Error("a count without the store")
			}
		}
	})
}

// Of two calls at the same time by the store's clock the answers may come in any order:
// the lower count is then of the one before, not of a store that lost the other.
func TestTallyHearsTwoAnswersInAnyOrder(t *testing.T) {
	tally := NewTally("limit", "requests")
	tally.heard(store.Standing{At: 1}, 6, 1, time.Time{})
	if n := tally.heard(store.Standing{At: 1}, 2, 1, time.Time{}); n != 2 {
		t.Errorf("the overtaken one was booked as %d, want 2", n)
	}
	n, _ := tally.Count()
	others, _ := tally.Others()
	if n != 6 || others != 4 {
		t.Errorf("a count of %d, %d of others, want 6 and 4", n, others)
	}
}

// What goes back is no overtaken answer: who hears of it when a request is refused knows
// that the count has fallen.
func TestTallyHearsOfARefund(t *testing.T) {
	tally := NewTally("limit", "requests")
	tally.heard(store.Standing{At: 1}, 9, 1, time.Time{})
	for range 3 {
		tally.heard(store.Standing{At: 1}, 7, 0, time.Time{})
	}
	if n, _ := tally.Count(); n != 7 {
		t.Errorf("a count of %d, want 7", n)
	}
}

// An answer that was asked for after another one was heard is later, whatever time either tells.
func TestTallyHearsWhateverTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, at := range []int64{math.MaxInt64, 3_600_000_000} {
			tally := NewTally("limit", "requests")
			tally.heard(store.Standing{At: at}, 6, 1, time.Now())
			time.Sleep(time.Second)
			begin := time.Now()
			tally.heard(store.Standing{At: 5}, 8, 1, begin)
			if n, _ := tally.Count(); n != 8 {
				t.Errorf("a count of %d after one at %d, want 8", n, at)
			}
			time.Sleep(time.Second)
			tally.heard(store.Standing{At: 4}, 7, 1, begin.Add(-time.Second/2)) // overtaken
			if n, _ := tally.Count(); n != 8 {
				t.Errorf("a count of %d after an answer that was overtaken, want 8", n)
			}
		}
	})
}

// A process tells apart what it booked and what others did, also when some of it goes
// back, and what it adds without a request.
func TestTalliesKnowOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		var fs [2]*Fleet
		var keys [2][]Key
		var tallies [2]*Tally
		for i := range fs {
			fs[i] = New(s, Config{Members: 2})
			defer fs[i].Close()
			keys[i], tallies[i] = tallied(Unbounded)
		}
		others := func(i int, want int64) {
			t.Helper()
			fs[i].Ask(keys[i][0], nil, func() {})
			time.Sleep(time.Second)
			if n, known := tallies[i].Others(); !known || n != want {
				t.Errorf("process %d: others have %d, %v, want %d", i, n, known, want)
			}
		}
		g, _ := book(fs[0], keys[0])
		for range 3 {
			if _, r := book(fs[0], keys[0]); r != nil {
				t.Fatal(r)
			}
		}
		others(0, 0)
		others(1, 4)
		if _, r := book(fs[1], keys[1]); r != nil {
			t.Fatal(r)
		}
		others(0, 1)
		g.Cancel()
		time.Sleep(time.Second)
		others(0, 1)
		others(1, 3)
		for range 3 {
			fs[1].Add("k", tallies[1:], []int64{5})
		}
		time.Sleep(time.Second)
		others(0, 16)
		others(1, 3)
	})
}

// Processes hear how often others asked because they had too little, and of no other questions.
func TestQuestionsOfThoseThatWaitAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		fs, asked := [2]*Fleet{}, [2]*Tally{}
		ask := func(i int, waits *Tally) {
			fs[i].Ask(Key{ID: "k", Tallies: asked[i : i+1]}, waits, func() {})
			time.Sleep(time.Second)
		}
		for i := range fs {
			fs[i] = testFleet(t, s, Config{Members: 2})
			_, count := tallied(Unbounded)
			asked[i] = count.Questions()
		}
		for range 3 {
			ask(0, asked[0])
			ask(0, nil)
			ask(1, asked[1])
		}
		ask(1, nil)
		if n, known := asked[1].Others(); n != 3 || !known {
			t.Errorf("the other process asked %d times while it waited (%v), want 3", n, known)
		}
	})
}

// A bound that holds while another count is still, holds no longer when that goes on.
func TestTallyIsBoundAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		f, other := New(s, Config{Members: 2}), New(s, Config{Members: 2})
		defer f.Close()
		defer other.Close()
		units, lost := NewTally("units", "requests"), NewTally("lost", "lost")
		keys := []Key{{ID: "k", Name: "k", Tallies: []*Tally{units, lost}, AtOnce: true}}
		units.BoundWhile(100, lost)
		if _, r := book(f, keys); r != nil {
			t.Fatal(r)
		}
		other.Add("k", []*Tally{NewTally("lost", "lost")}, []int64{1})
		time.Sleep(time.Second)
		if _, r := book(f, keys); r != nil {
			t.Fatal("nobody had heard", r)
		}
		if _, r := book(f, keys); r == nil || r.Reason != Spent {
			t.Errorf("booked under a bound of before: %+v", r)
		}
		units.BoundWhile(100, lost)
		if _, r := book(f, keys); r != nil {
			t.Error(r)
		}
	})
}

// Nothing is booked into a pause where all that is counted is to be sent at once.
func TestNothingIsBookedAheadOfAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		f, other := New(s, Config{Members: 2}), New(s, Config{Members: 2})
		defer f.Close()
		defer other.Close()
		keys, tally := tallied(Unbounded)
		keys[0].AtOnce = true
		other.Pause("k", time.Now().Add(900*time.Millisecond), false)
		time.Sleep(100 * time.Millisecond)
		begin := time.Now()
		go book(f, keys)
		time.Sleep(700 * time.Millisecond)
		if n, _ := tally.Count(); n != 0 {
			t.Errorf("%d booked during a pause", n)
		}
		time.Sleep(300 * time.Millisecond)
		if n, _ := tally.Count(); n != 1 {
			t.Errorf("%d booked %v after", n, time.Since(begin))
		}
	})
}
