package throttle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// TestFleetOutage is ten seconds of 16 processes in which the store is gone for
// four: refused connections, or silence.
func TestFleetOutage(t *testing.T) {
	const members = 16
	rate := Rate{Limit: 160, Per: time.Second} // 144/s and 16 at once, or 10/s and 1 for each alone
	for _, hang := range []bool{false, true} {
		t.Run(fmt.Sprintf("hang=%t", hang), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlowStore(time.Millisecond)
				var out fleetSends
				var wgs []*sync.WaitGroup
				counts := make([]int, members)
				for i := range members {
					f := testFleet(t, s, FleetConfig{Members: members})
					wgs = append(wgs, fleetLoad(f, fleetOn("k", rate), 4, 10*time.Second, &out, &counts[i]))
				}
				time.Sleep(3 * time.Second)
				s.set(errors.New("connection refused"), hang)
				down := time.Now()
				time.Sleep(4 * time.Second)
				s.set(nil, false)
				for _, wg := range wgs {
					wg.Wait()
				}
				// Before, during and after together: the meter's burst, one a
				// process, and the rate twice where two regimes meet.
				if got, most := out.most(time.Second), 160+members+16; got > most {
					t.Errorf("%d requests in one second, want at most %d", got, most)
				}
				alone := 0
				for _, at := range out.at {
					if d := at.Sub(down); d > time.Second && d < 4*time.Second {
						alone++
					}
				}
				if alone < 380 || alone > 3*160+members {
					t.Errorf("%d requests in three seconds without the store, want 3 s of 144 to 160", alone)
				}
				for i, n := range counts {
					if n < 60 {
						t.Errorf("process %d got %d requests in 10 s, want its share of about 85", i, n)
					}
				}
				t.Log(out.most(time.Second), alone, len(out.at))
			})
		})
	}
}

// TestFleetRepays: what was granted alone still counts when the store is back.
func TestFleetRepays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const members, limit = 8, 160
		s := newSlowStore(time.Millisecond)
		var out fleetSends
		var wgs []*sync.WaitGroup
		var count int
		s.set(errors.New("connection refused"), false)
		for range members {
			f := testFleet(t, s, FleetConfig{Members: members})
			wgs = append(wgs, fleetLoad(f, fleetOn("k", Rate{Limit: limit, Per: time.Second, Burst: limit}), 8, 8*time.Second, &out, &count))
		}
		time.Sleep(4 * time.Second)
		s.set(nil, false)
		for _, wg := range wgs {
			wg.Wait()
		}
		// Until each is back the store does not know what it granted alone.
		if got, most := out.most(time.Second), limit+limit/2+members; got > most {
			t.Errorf("%d requests in one second, want at most %d", got, most)
		}
		t.Log(out.most(time.Second), count)
	})
}

// After Close nothing is granted, whatever the state of the store was and
// whatever goes on without it.
func TestNothingIsGrantedAfterClose(t *testing.T) {
	for _, down := range []WhenDown{ShareRates, Closed, Open} {
		for _, gone := range []error{nil, errors.New("connection refused"), ErrStoreBusy} {
			synctest.Test(t, func(t *testing.T) {
				s := newSlowStore(time.Millisecond)
				s.set(gone, false)
				l, err := NewLimiter(LimiterConfig{Default: MustParseBudget("100/s burst 100"), Store: s, Fleet: FleetConfig{Members: 1, WhenDown: down}})
				if err != nil {
					t.Fatal(err)
				}
				for range 5 {
					l.Take(t.Context(), "k", nil)
				}
				l.Close()
				var e *Error
				if _, err := l.Take(t.Context(), "k", nil); !errors.As(err, &e) || e.Reason != StoreDown || !strings.Contains(err.Error(), "Close") {
					t.Errorf("when down %d, %v: got %v, want a refusal that names Close", down, gone, err)
				}
			})
		}
	}
}

func TestFleetWhenDown(t *testing.T) {
	gone := errors.New("connection refused")
	for _, tc := range []struct {
		name    string
		c       FleetConfig
		granted int // of 20 in the first instant of an outage
		reason  Reason
	}{
		{"share", FleetConfig{WhenDown: ShareRates, Members: 10}, 0, WaitTooLong},
		{"closed", FleetConfig{WhenDown: Closed}, 0, StoreDown},
		{"open", FleetConfig{WhenDown: Open}, 20, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlowStore(time.Millisecond)
				s.set(gone, false)
				f := testFleet(t, s, tc.c)
				granted := 0
				for range 20 {
					_, err := f.take(t.Context(), fleetOn("k", Rate{Limit: 10, Per: time.Hour}), nil, 0, time.Millisecond)
					var e *Error
					switch {
					case err == nil:
						granted++
					case !errors.As(err, &e) || e.Reason != tc.reason:
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
		s := newSlowStore(time.Millisecond)
		var mu sync.Mutex
		var got []string
		f := testFleet(t, s, FleetConfig{WhenDown: Open, OnStore: func(c StoreChange) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, c.To.String())
		}})
		take := func(n int) {
			for range n {
				if _, err := f.take(t.Context(), fleetOn("k", Rate{Limit: 10, Per: time.Second, Bucket: 1000}), nil, 0, time.Second); err != nil {
					t.Fatal(err)
				}
				time.Sleep(60 * time.Millisecond)
			}
		}
		take(1)
		s.set(fmt.Errorf("redis: %w", ErrStoreBusy), false)
		take(10)
		busy := s.calls(&s.books)
		s.set(nil, false)
		take(20) // it is called busy for another second
		s.set(nil, true)
		take(100) // six seconds: 3 calls, then probes after 0.2, 0.4, 0.8, 1.6, 3.2 s
		if n := s.calls(&s.books) - busy - 20; n > 9 {
			t.Errorf("%d calls to a store that is gone, want at most 9", n)
		}
		s.set(nil, false)
		time.Sleep(5 * time.Second)
		take(2)
		mu.Lock()
		defer mu.Unlock()
		if fmt.Sprint(got) != "[busy up gone up]" {
			t.Errorf("states %v, want [busy up gone up]", got)
		}
	})
}

// TestFleetAddsItsDeadlineAtMost is promise P15 of a slow store, also of one that
// does not look at its contexts, as a file system does not.
func TestFleetAddsItsDeadlineAtMost(t *testing.T) {
	hung, deaf := newSlowStore(0), newSlowStore(40*time.Second)
	hung.set(nil, true)
	for name, s := range map[string]*slowStore{"hangs": hung, "is deaf": deaf} {
		synctest.Test(t, func(t *testing.T) {
			f := testFleet(t, s, FleetConfig{WhenDown: Open})
			slow := 0
			for range 50 {
				begin := time.Now()
				if _, err := f.take(t.Context(), fleetOn("k", Rate{Limit: 1, Per: time.Second}), nil, 0, time.Minute); err != nil {
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
			time.Sleep(time.Minute) // the deaf one returns
		})
	}
}

// Of calls that a store does not return from, few are left behind, and once it
// answers again it is used again.
func TestFewCallsAreLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowStore(time.Hour)
		f := testFleet(t, s, FleetConfig{WhenDown: Open})
		take := func(d time.Duration) {
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Second) {
				if _, err := f.take(t.Context(), fleetOn("k", Rate{Limit: 100, Per: time.Second}), nil, 0, time.Minute); err != nil {
					t.Fatal(err)
				}
			}
		}
		if take(30 * time.Minute); s.calls(&s.books) > mostOverdue {
			t.Errorf("%d calls are under way, want at most %d", s.calls(&s.books), mostOverdue)
		}
		s.mu.Lock()
		s.rtt = time.Millisecond
		s.mu.Unlock()
		if take(45 * time.Minute); f.guard.now() != StoreUp {
			t.Error("the store answers again and is not asked")
		}
		begin := time.Now()
		f.close()
		if d := time.Since(begin); d > time.Second {
			t.Errorf("close took %v", d)
		}
		time.Sleep(time.Hour) // all calls return
	})
}

// TestFleetHeals kills the store's memory under eight processes. Without what
// they remember, the whole burst of 100 would be there again.
func TestFleetHeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowStore(time.Millisecond)
		var out fleetSends
		var wgs []*sync.WaitGroup
		var count int
		for range 8 {
			f := testFleet(t, s, FleetConfig{})
			wgs = append(wgs, fleetLoad(f, fleetOn("k", Rate{Limit: 10, Per: time.Second, Bucket: 100}), 2, 20*time.Second, &out, &count))
		}
		time.Sleep(10 * time.Second)
		s.lose()
		for _, wg := range wgs {
			wg.Wait()
		}
		if most := 100 + 200 + 8; count > most {
			t.Errorf("%d requests in 20 s at 10/s and 100 at once, want at most %d", count, most)
		}
		t.Log(count)
	})
}

func TestFleetTellsEverybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowStore(time.Millisecond)
		a, b := testFleet(t, s, FleetConfig{}), testFleet(t, s, FleetConfig{})
		draws := fleetOn("k", Rate{Limit: 1000, Per: time.Second, Burst: 1000})
		for range 100 {
			a.tell("k", store.News{Pause: 3 * time.Second})
		}
		time.Sleep(10 * time.Millisecond)
		if s.calls(&s.tells) != 2 {
			t.Errorf("100 news at once took %d calls, want 2", s.calls(&s.tells))
		}
		begin := time.Now()
		if _, err := b.take(t.Context(), draws, nil, 0, time.Minute); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(begin); d < 2900*time.Millisecond || d > 3100*time.Millisecond {
			t.Errorf("the other process waited %v, want 3 s", d)
		}
		a.tell("k", store.News{Stated: []store.Stated{{ID: "core", Unit: "requests", Remaining: 0, Reset: time.Hour}}})
		time.Sleep(10 * time.Millisecond)
		var e *Error
		if _, err := b.take(t.Context(), draws, nil, 0, time.Minute); !errors.As(err, &e) || e.Reason != Paused || e.RetryAfter < 59*time.Minute {
			t.Errorf("got %v, want a wait of an hour", err)
		}
	})
}

// TestFleetLease holds that one by one most requests cost no call, that what is
// left comes back, and that others see no more than the rate.
func TestFleetLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowStore(time.Millisecond)
		f := testFleet(t, s, FleetConfig{Lease: 100 * time.Millisecond})
		draws := fleetOn("k", Rate{Limit: 1000, Per: time.Hour, Burst: 1000})
		for range 500 {
			if _, err := f.take(t.Context(), draws, nil, 0, 0); err != nil {
				t.Fatal(err)
			}
		}
		if s.calls(&s.books) > 60 {
			t.Errorf("500 requests took %d calls, want at most 60", s.calls(&s.books))
		}
		f.close()
		other := testFleet(t, s, FleetConfig{})
		g := 0
		for range 600 {
			if _, err := other.take(t.Context(), draws, nil, 0, 0); err == nil {
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
		f := testFleet(t, newSlowStore(0), FleetConfig{})
		for i := range 2000 {
			if _, err := f.take(context.Background(), fleetOn(fmt.Sprint(i), Rate{Limit: 1, Per: time.Second}), nil, 0, 0); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(f.queues); n > 200 {
			t.Errorf("%d queues are kept of 2000 idle ones", n)
		}
	})
}

func TestFleetConfigNamesFaults(t *testing.T) {
	for want, c := range map[string]FleetConfig{
		"throttle: Fleet.Members: 0: a share of the rates needs the number of processes": {},
		"throttle: Fleet.Members: -1 is negative":                                        {Members: -1},
		"throttle: Fleet.WhenDown: 3 is unknown":                                         {WhenDown: 3},
		"throttle: Fleet.Deadline: -1s is negative":                                      {WhenDown: Open, Deadline: -time.Second},
		"throttle: Fleet.Lease: 2m0s is not within 0 and 1 min":                          {WhenDown: Open, Lease: 2 * time.Minute},
	} {
		if _, err := newFleet(store.NewMemory(), c); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// answeredLate is a context that ends when the call under it has returned.
type answeredLate struct{ context.Context }

func (answeredLate) Done() <-chan struct{} {
	synctest.Wait()
	over := make(chan struct{})
	close(over)
	return over
}

func (answeredLate) Err() error { return context.DeadlineExceeded }

// An answer that is there when its deadline comes is not left behind.
func TestAnswersAtTheDeadlineCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := new(prompt)
		for range 64 {
			if n, err := within(answeredLate{t.Context()}, p, func() (int, error) { return 7, nil }); n != 7 || err != nil {
				t.Fatalf("got %d, %v, want what the call returned", n, err)
			}
		}
		if n := p.overdue.Load(); n != 0 {
			t.Errorf("%d calls were left behind", n)
		}
	})
}
