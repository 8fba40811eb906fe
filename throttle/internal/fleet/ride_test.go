package fleet

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle/internal/farstore"
	"github.com/weirhttp/weir/throttle/store"
)

// lone is a store that grants everything after as long as it says, or when the
// call ends, and notes on how many goroutines more than base it was called.
type lone struct {
	store.Store
	takes time.Duration
	base  int
	more  int // by the newest call
	calls int
}

func (s *lone) Book(ctx context.Context, b store.Booking) (store.Booked, error) {
	s.more, s.calls = testnet.Goroutines()-s.base, s.calls+1
	t := time.NewTimer(max(1, s.takes))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return store.Booked{}, ctx.Err()
	}
	r := store.Booked{Outcome: store.BookedAll, Draw: -1, Limit: -1}
	for _, d := range b.Draws {
		r.Keys = append(r.Keys, store.Standing{Gen: 1, At: time.Now().UnixMicro(), Levels: make([]float64, len(d.Limits))})
	}
	return r, nil
}

func (s *lone) Refund(context.Context, store.Refund) error { return nil }

// One caller at a time makes its calls itself, once the store is known to be quick.
func TestOneCallerNeedsNoOtherGoroutine(t *testing.T) {
	for takes, most := range map[time.Duration]int{time.Millisecond: 0, 20 * time.Millisecond: 1} {
		synctest.Test(t, func(t *testing.T) {
			s := &lone{takes: takes}
			f := testFleet(t, s, Config{})
			s.base = testnet.Goroutines()
			for i := range 10 {
				if _, err := take(f, t.Context(), on("k", rates("1000/s")...), nil, 0, time.Minute); err != nil {
					t.Fatal(err)
				}
				if i > 0 && s.more > most {
					t.Errorf("call %d that takes %v: %d goroutines more, want %d", i, takes, s.more, most)
				}
				synctest.Wait()
			}
		})
	}
}

// A store that is slow all of a sudden holds up one that makes its call itself for
// 50 ms, and is asked again if requests wait for longer; then as others are, until
// it has answered.
func TestACallOfOnesOwnIsCutOff(t *testing.T) {
	for _, x := range []struct {
		deadline, takes, most time.Duration
		calls                 int
	}{
		{0, 10 * time.Second, 60 * time.Millisecond, 1},
		{10 * time.Millisecond, 10 * time.Second, 20 * time.Millisecond, 1},
		{time.Second, 300 * time.Millisecond, 360 * time.Millisecond, 2},
		{time.Second, 10 * time.Second, 1060 * time.Millisecond, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &lone{takes: time.Millisecond}
			f := testFleet(t, s, Config{Deadline: x.deadline})
			s.base = testnet.Goroutines()
			one := func() (took time.Duration) {
				begin := time.Now()
				if _, err := take(f, t.Context(), on("k", rates("1000/s")...), nil, 0, time.Minute); err != nil {
					t.Error(err)
				}
				return time.Since(begin)
			}
			for range 5 {
				one()
			}
			s.takes, s.calls = x.takes, 0
			if took := one(); took > x.most || s.calls != x.calls {
				t.Errorf("deadline %v: %d calls of %v: %v, want %d and at most %v", x.deadline, s.calls, x.takes, took, x.calls, x.most)
			}
			s.takes = time.Millisecond
			time.Sleep(20 * time.Second)
			for range 40 { // the store is back, and known to be quick
				one()
				time.Sleep(time.Second)
			}
			if s.base = testnet.Goroutines(); s.more != 0 {
				one()
			}
			if one(); s.more != 0 {
				t.Errorf("deadline %v: %d goroutines more afterwards", x.deadline, s.more)
			}
		})
	}
}

// Calls of one's own share the timer that cuts them off: however many came before
// it, one that takes less than seven eighths of 50 ms is left alone.
func TestACallOfOnesOwnHasItsTime(t *testing.T) {
	more := 0 // goroutines, of which one that another bubble leaves counts, too
	for before := range 60 {
		synctest.Test(t, func(t *testing.T) {
			s := &lone{takes: time.Millisecond}
			f := testFleet(t, s, Config{Deadline: time.Second})
			s.base = testnet.Goroutines()
			for range 5 + before {
				take(f, t.Context(), on("k", rates("1000/s")...), nil, 0, time.Minute)
			}
			s.takes, s.calls = 43*time.Millisecond, 0
			take(f, t.Context(), on("k", rates("1000/s")...), nil, 0, time.Minute)
			if more += max(0, s.more); s.calls != 1 {
				t.Errorf("after %d quick ones: %d calls, want 1", before, s.calls)
			}
		})
	}
	if more > 6 {
		t.Errorf("%d goroutines more in 60 calls, want none", more)
	}
}

// Close ends a call of one's own after Deadline, as others.
func TestCloseEndsACallOfOnesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lone{takes: time.Millisecond}
		f := New(s, Config{Members: 4, Deadline: 30 * time.Millisecond})
		keys := on("k", rates("1000/s")...)
		for range 5 {
			take(f, t.Context(), keys, nil, 0, time.Minute)
		}
		s.takes = time.Hour
		var ended atomic.Bool
		go func() {
			take(f, t.Context(), keys, nil, 0, time.Minute)
			ended.Store(true)
		}()
		synctest.Wait()
		begin := time.Now()
		f.Close()
		if synctest.Wait(); !ended.Load() || time.Since(begin) > 30*time.Millisecond {
			t.Errorf("ended %v after %v", ended.Load(), time.Since(begin))
		}
	})
}

// Many callers share calls, and what a grant costs each is little: what waits for it, and how that
// is woken.
func TestManyCallersShareCalls(t *testing.T) {
	const callers, each = 64, 100
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		f := testFleet(t, s, Config{})
		keys := on("k", rates("1000000/s bucket 1000000")...)
		all := func() {
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for range each {
						if _, err := take(f, t.Context(), keys, nil, 0, time.Minute); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
		}
		all() // those that come first do not come together
		calls := s.Books()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		all()
		runtime.ReadMemStats(&after)
		calls = s.Books() - calls
		if most := 3 * each; calls > most {
			t.Errorf("%d calls for %d grants, want at most %d", calls, callers*each, most)
		}
		if got := float64(after.Mallocs-before.Mallocs) / (callers * each); got > 4 && !testnet.Race {
			t.Errorf("%.1f allocations for each grant, want at most 4", got)
		}
		t.Logf("%d calls, %.1f allocations for each grant", calls, float64(after.Mallocs-before.Mallocs)/(callers*each))
	})
}
