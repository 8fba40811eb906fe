package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/farstore"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/store"
)

// TestFleetOutage is ten seconds of 16 processes in which the store is gone for
// four: refused connections, or silence.
func TestFleetOutage(t *testing.T) {
	const members = 16
	rate := meter.Spec{Limit: 160, Per: time.Second} // 144/s and 16 at once, or 10/s and 1 for each alone
	for _, hang := range []bool{false, true} {
		t.Run(fmt.Sprintf("hang=%t", hang), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := farstore.New(time.Millisecond)
				var out farstore.Sends
				var wgs []*sync.WaitGroup
				counts := make([]atomic.Int64, members)
				for i := range members {
					f := testFleet(t, s, Config{Members: members})
					wgs = append(wgs, load(f, on("k", rate), 4, 10*time.Second, &out, &counts[i]))
				}
				time.Sleep(3 * time.Second)
				s.Fail(errors.New("connection refused"), hang)
				down := time.Now()
				time.Sleep(4 * time.Second)
				s.Fail(nil, false)
				for _, wg := range wgs {
					wg.Wait()
				}
				// Before, during and after together: the meter's burst, one a
				// process, and the rate twice where two regimes meet.
				if got, most := out.Most(time.Second), 160+members+16; got > most {
					t.Errorf("%d requests in one second, want at most %d", got, most)
				}
				alone := 0
				for _, at := range out.At {
					if d := at.Sub(down); d > time.Second && d < 4*time.Second {
						alone++
					}
				}
				if alone < 380 || alone > 3*160+members {
					t.Errorf("%d requests in three seconds without the store, want 3 s of 144 to 160", alone)
				}
				for i := range counts {
					n := int(counts[i].Load())
					if n < 60 {
						t.Errorf("process %d got %d requests in 10 s, want its share of about 85", i, n)
					}
				}
				t.Log(out.Most(time.Second), alone, len(out.At))
			})
		})
	}
}

// TestFleetRepays: what was granted alone still counts when the store is back.
func TestFleetRepays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const members, limit = 8, 160
		s := farstore.New(time.Millisecond)
		var out farstore.Sends
		var wgs []*sync.WaitGroup
		var count atomic.Int64
		s.Fail(errors.New("connection refused"), false)
		for range members {
			f := testFleet(t, s, Config{Members: members})
			wgs = append(wgs, load(f, on("k", meter.Spec{Limit: limit, Per: time.Second, Burst: limit}), 8, 8*time.Second, &out, &count))
		}
		time.Sleep(4 * time.Second)
		s.Fail(nil, false)
		for _, wg := range wgs {
			wg.Wait()
		}
		// Until each is back the store does not know what it granted alone.
		if got, most := out.Most(time.Second), limit+limit/2+members; got > most {
			t.Errorf("%d requests in one second, want at most %d", got, most)
		}
		t.Log(out.Most(time.Second), count.Load())
	})
}

func TestFleetWhenDown(t *testing.T) {
	gone := errors.New("connection refused")
	for _, tc := range []struct {
		name    string
		c       Config
		granted int // of 20 in the first instant of an outage
		reason  Reason
	}{
		{"share", Config{WhenDown: Share, Members: 10}, 0, TooLong},
		{"closed", Config{WhenDown: Refuse}, 0, Down},
		{"open", Config{WhenDown: Pass}, 20, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := farstore.New(time.Millisecond)
				s.Fail(gone, false)
				f := testFleet(t, s, tc.c)
				granted := 0
				for range 20 {
					_, err := take(f, t.Context(), on("k", meter.Spec{Limit: 10, Per: time.Hour}), nil, 0, time.Millisecond)
					switch {
					case err == nil:
						granted++
					case err == nil || err.Reason != tc.reason:
						t.Fatalf("got %v, want %v", err, tc.reason)
					}
				}
				if granted != tc.granted {
					t.Errorf("%d of 20 were granted, want %d", granted, tc.granted)
				}
			})
		})
	}
}

func TestFleetStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		var mu sync.Mutex
		var got []State
		f := testFleet(t, s, Config{WhenDown: Pass, OnState: func(_, to State, _ error) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, to)
		}})
		spend := func(n int) {
			for range n {
				if _, err := take(f, t.Context(), on("k", meter.Spec{Limit: 10, Per: time.Second, Burst: 1000, Bucket: true}), nil, 0, time.Second); err != nil {
					t.Fatal(err)
				}
				time.Sleep(60 * time.Millisecond)
			}
		}
		spend(1)
		s.Fail(fmt.Errorf("redis: %w", store.ErrBusy), false)
		spend(10)
		busy := s.Books()
		s.Fail(nil, false)
		spend(20) // it is called busy for another second
		s.Fail(nil, true)
		spend(100) // six seconds: 3 calls, then probes after 0.2, 0.4, 0.8, 1.6, 3.2 s
		if n := s.Books() - busy - 20; n > 9 {
			t.Errorf("%d calls to a store that is gone, want at most 9", n)
		}
		s.Fail(nil, false)
		time.Sleep(5 * time.Second)
		spend(2)
		mu.Lock()
		defer mu.Unlock()
		if fmt.Sprint(got) != "[1 0 2 0]" {
			t.Errorf("states %v, want busy, up, gone, up", got)
		}
	})
}

// A slow store costs a request its deadline at most, and few requests that.
func TestFleetAddsItsDeadlineAtMost(t *testing.T) {
	hung, far := farstore.New(0), farstore.New(40*time.Second)
	hung.Fail(nil, true)
	for name, s := range map[string]*farstore.Store{"hangs": hung, "is far": far} {
		synctest.Test(t, func(t *testing.T) {
			f := testFleet(t, s, Config{WhenDown: Pass})
			slow := 0
			for range 50 {
				begin := time.Now()
				if _, err := take(f, t.Context(), on("k", meter.Spec{Limit: 1, Per: time.Second}), nil, 0, time.Minute); err != nil {
					t.Fatal(err)
				}
				if d := time.Since(begin); d > 50*time.Millisecond {
					t.Errorf("a store that %s cost %v, want at most 50 ms", name, d)
				} else if d > 0 {
					slow++
				}
			}
			if slow > 3 {
				t.Errorf("%d requests waited for a store that %s, want at most 3", slow, name)
			}
		})
	}
}

// TestFleetHeals kills the store's memory under eight processes. Without what
// they remember, the whole burst of 100 would be there again.
func TestFleetHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		var out farstore.Sends
		var wgs []*sync.WaitGroup
		var count atomic.Int64
		for range 8 {
			f := testFleet(t, s, Config{})
			wgs = append(wgs, load(f, on("k", meter.Spec{Limit: 10, Per: time.Second, Burst: 100, Bucket: true}), 2, 20*time.Second, &out, &count))
		}
		time.Sleep(10 * time.Second)
		s.Lose()
		for _, wg := range wgs {
			wg.Wait()
		}
		if most := int64(100 + 200 + 8); count.Load() > most {
			t.Errorf("%d requests in 20 s at 10/s and 100 at once, want at most %d", count.Load(), most)
		}
		t.Log(count.Load())
	})
}

func TestFleetTellsEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		a, b := testFleet(t, s, Config{}), testFleet(t, s, Config{})
		draws := on("k", meter.Spec{Limit: 1000, Per: time.Second, Burst: 1000})
		for range 100 {
			a.Tell("k", store.News{Pause: 3 * time.Second})
		}
		time.Sleep(10 * time.Millisecond)
		if s.Tells() != 2 {
			t.Errorf("100 news at once took %d calls, want 2", s.Tells())
		}
		begin := time.Now()
		if _, err := take(b, t.Context(), draws, nil, 0, time.Minute); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(begin); d < 2900*time.Millisecond || d > 3100*time.Millisecond {
			t.Errorf("the other process waited %v, want 3 s", d)
		}
		a.Tell("k", store.News{Stated: []store.Stated{{ID: "core", Unit: meter.Requests, Remaining: 0, Reset: time.Hour}}})
		time.Sleep(10 * time.Millisecond)
		if _, err := take(b, t.Context(), draws, nil, 0, time.Minute); err == nil || err.Reason != Paused || err.Wait < 59*time.Minute {
			t.Errorf("got %v, want a wait of an hour", err)
		}
	})
}

// TestFleetLease holds that one by one most requests cost no call, that what is
// left comes back, and that others see no more than the rate.
func TestFleetLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		f := testFleet(t, s, Config{Lease: 100 * time.Millisecond})
		draws := on("k", meter.Spec{Limit: 1000, Per: time.Hour, Burst: 1000})
		for range 500 {
			if _, err := take(f, t.Context(), draws, nil, 0, 0); err != nil {
				t.Fatal(err)
			}
		}
		if s.Books() > 60 {
			t.Errorf("500 requests took %d calls, want at most 60", s.Books())
		}
		f.Close()
		other := testFleet(t, s, Config{})
		g := 0
		for range 600 {
			if _, err := take(other, t.Context(), draws, nil, 0, 0); err == nil {
				g++
			}
		}
		if g != 500 {
			t.Errorf("after Close %d of 500 were left", g)
		}
	})
}

func TestFleetForgetsIdleQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := testFleet(t, farstore.New(0), Config{})
		for i := range 2000 {
			if _, err := take(f, context.Background(), on(fmt.Sprint(i), meter.Spec{Limit: 1, Per: time.Second}), nil, 0, 0); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(f.queues); n > 200 {
			t.Errorf("%d queues are kept of 2000 idle ones", n)
		}
	})
}
