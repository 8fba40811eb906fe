package fleet

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/farstore"
	"github.com/weirhttp/weir/throttle/store"
)

// Follow asks every AskPause until it is told to stop, and hears what others booked meanwhile.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		f, other := testFleet(t, s, Config{}), testFleet(t, s, Config{})
		mine, theirs := NewTally("x", "requests"), NewTally("x", "requests")
		keys := func(t *Tally) []Key { return []Key{{ID: "k", Name: "k", Tallies: []*Tally{t}}} }
		var heard []int64
		f.Follow(keys(mine)[0], func(ok bool) bool {
			n, _ := mine.Others()
			heard = append(heard, n)
			return ok && len(heard) < 3
		})
		if _, r := take(other, t.Context(), keys(theirs), nil, 0, time.Second); r != nil {
			t.Fatal(r)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if len(heard) != 3 || heard[0] != 1 || s.Books() != 4 {
			t.Errorf("heard %v in %d calls", heard, s.Books())
		}
	})
}

// It ends when the store does not answer, and at once with Close.
func TestFollowEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		f := testFleet(t, s, Config{})
		var calls, good atomic.Int32
		follow := func() {
			f.Follow(Key{ID: "k", Name: "k"}, func(ok bool) bool {
				if calls.Add(1); ok {
					good.Add(1)
				}
				return ok
			})
		}
		follow()
		time.Sleep(AskPause(4) * 5 / 2)
		s.Fail(context.DeadlineExceeded, false)
		time.Sleep(time.Second)
		if calls.Load() != 3 || good.Load() != 2 {
			t.Errorf("heard %d times, %d of them from the store", calls.Load(), good.Load())
		}
		s.Fail(nil, false)
		time.Sleep(guardPatience * 10)
		follow()
		begin := time.Now()
		f.Close()
		if d := time.Since(begin); d > 0 || calls.Load() != 3 {
			t.Errorf("closed after %v, and heard %d times", d, calls.Load())
		}
		follow() // does nothing
	})
}

// Who has to wait hears of that, and of nothing when the request is granted.
func TestHeardWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		f := testFleet(t, s, Config{})
		if err := s.Tell(t.Context(), "k", store.News{Pause: 3 * time.Second}); err != nil {
			t.Fatal(err)
		}
		var heard []time.Duration
		begin := time.Now()
		_, r := f.Book(t.Context(), []Key{{ID: "k", Name: "k"}}, nil, Options{MaxWait: time.Minute, Heard: func() {
			heard = append(heard, time.Since(begin))
		}})
		if r != nil || len(heard) == 0 || heard[0] > 10*time.Millisecond || heard[len(heard)-1] >= 3*time.Second {
			t.Errorf("refusal %v, heard after %v", r, heard)
		}
	})
}
