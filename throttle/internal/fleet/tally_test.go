package fleet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/farstore"
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
