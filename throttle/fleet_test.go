package throttle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// slowStore is a Store in memory behind a round trip of its own, which can be
// cut, be busy, or lose its state. In a bubble a round trip takes exactly rtt.
type slowStore struct {
	rtt time.Duration

	mu      sync.Mutex
	s       Store
	err     error // of every call
	hang    bool  // until the context ends
	books   int
	refunds int
	tells   int
	asked   []store.Booking
}

func newSlowStore(rtt time.Duration) *slowStore { return &slowStore{rtt: rtt, s: store.NewMemory()} }

func (s *slowStore) set(err error, hang bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.hang = err, hang
}

func (s *slowStore) calls(count *int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *count
}

func (s *slowStore) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.s = store.NewMemory()
}

// trip is the way there.
func (s *slowStore) trip(ctx context.Context, count *int) (Store, error) {
	s.mu.Lock()
	*count++
	st, err, hang, rtt := s.s, s.err, s.hang, s.rtt
	s.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	time.Sleep(rtt)
	return st, err
}

func (s *slowStore) Book(ctx context.Context, b store.Booking) (store.Booked, error) {
	st, err := s.trip(ctx, &s.books)
	if err != nil {
		return store.Booked{}, err
	}
	s.mu.Lock()
	s.asked = append(s.asked, b)
	s.mu.Unlock()
	return st.Book(ctx, b)
}

func (s *slowStore) Refund(ctx context.Context, r store.Refund) error {
	st, err := s.trip(ctx, &s.refunds)
	if err != nil {
		return err
	}
	return st.Refund(ctx, r)
}

func (s *slowStore) Tell(ctx context.Context, key string, n store.News) error {
	st, err := s.trip(ctx, &s.tells)
	if err != nil {
		return err
	}
	return st.Tell(ctx, key, n)
}

func testFleet(t *testing.T, s Store, c FleetConfig) *fleet {
	t.Helper()
	if c.Members == 0 {
		c.Members = 4
	}
	f, err := newFleet(s, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.close)
	return f
}

func fleetOn(key string, rates ...Rate) []fleetDraw { return []fleetDraw{{key, key, rates}} }

// fleetSends collects when requests went.
type fleetSends struct {
	mu sync.Mutex
	at []time.Time
}

func (s *fleetSends) add() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = append(s.at, time.Now())
}

// most is the largest number of fleetSends in any half-open window.
func (s *fleetSends) most(per time.Duration) int {
	most, lo := 0, 0
	for hi := range s.at {
		for s.at[hi].Sub(s.at[lo]) >= per {
			lo++
		}
		most = max(most, hi-lo+1)
	}
	return most
}

// fleetLoad runs callers that take again and again for d.
func fleetLoad(f *fleet, draws []fleetDraw, callers int, d time.Duration, s *fleetSends, count *int) *sync.WaitGroup {
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	for range callers {
		wg.Go(func() {
			for {
				left := time.Until(end)
				if left <= 0 {
					return
				}
				if _, err := f.take(context.Background(), draws, nil, 0, left); err != nil {
					return
				}
				s.add()
				s.mu.Lock()
				*count++
				s.mu.Unlock()
			}
		})
	}
	return &wg
}

func TestFleetStaysWithinRates(t *testing.T) {
	for _, tc := range []struct {
		name  string
		rate  Rate
		most  int // per window
		least int // in 10 s
		lease time.Duration
	}{
		{"meter", Rate{Limit: 100, Per: time.Second}, 100, 850, 0},
		{"log", Rate{Limit: 20, Per: time.Second}, 20, 180, 0},
		{"burst of everything", Rate{Limit: 200, Per: time.Second, Burst: 200}, 200, 1800, 0},
		{"bucket", Rate{Limit: 50, Per: time.Second, Bucket: 10}, 60, 490, 0},
		{"leaky", Rate{Limit: 100, Per: time.Second, Burst: 1}, 100, 930, 0},
		{"lease", Rate{Limit: 100, Per: time.Second}, 100, 700, 200 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlowStore(time.Millisecond)
				var out fleetSends
				var wgs []*sync.WaitGroup
				var count int
				for range 16 {
					f := testFleet(t, s, FleetConfig{Lease: tc.lease})
					wgs = append(wgs, fleetLoad(f, fleetOn("k", tc.rate), 3, 10*time.Second, &out, &count))
				}
				for _, wg := range wgs {
					wg.Wait()
				}
				if got := out.most(tc.rate.Per); got > tc.most {
					t.Errorf("%d requests in one window, want at most %d", got, tc.most)
				}
				if count < tc.least {
					t.Errorf("%d requests in 10 s, want at least %d", count, tc.least)
				}
				t.Logf("%d requests, %d in a window, %d calls", count, out.most(tc.rate.Per), s.calls(&s.books))
			})
		})
	}
}

func TestFleetCoalesces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowStore(time.Millisecond)
		f := testFleet(t, s, FleetConfig{})
		draws := fleetOn("k", Rate{Limit: 100000, Per: time.Second, Bucket: 100000})
		var wg sync.WaitGroup
		begin := time.Now()
		for range 256 {
			wg.Go(func() {
				for range 10 {
					if _, err := f.take(t.Context(), draws, nil, 0, time.Second); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if got := time.Since(begin); got > 25*time.Millisecond {
			t.Errorf("10 rounds of 256 took %v of 1 ms round trips, want at most 25 ms", got)
		}
		if s.calls(&s.books) > 45 {
			t.Errorf("%d calls for 2560 requests, want at most 45", s.calls(&s.books))
		}
	})
}

func TestFleetWaitTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := testFleet(t, newSlowStore(time.Millisecond), FleetConfig{})
		draws := fleetOn("k", Rate{Limit: 2, Per: time.Minute})
		for range 2 {
			if _, err := f.take(t.Context(), draws, nil, 0, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second) // who was served last asks last
		begin := time.Now()
		_, err := f.take(t.Context(), draws, nil, 0, 20*time.Second)
		var e *Error
		if !errors.As(err, &e) || e.Reason != WaitTooLong || e.RetryAfter < 28*time.Second || e.RetryAfter > time.Minute {
			t.Fatalf("got %v, want WaitTooLong of most of a minute", err)
		}
		if d := time.Since(begin); d > 5*time.Millisecond {
			t.Errorf("told after %v, want one round trip", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err = f.take(ctx, draws, nil, 0, time.Hour); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want DeadlineExceeded", err)
		}
		if _, err = f.take(t.Context(), draws, Cost{"requests": 3}, 0, time.Hour); !errors.As(err, &e) || e.Reason != NeverFits {
			t.Errorf("got %v, want NeverFits", err)
		}
	})
}

func TestFleetCancelGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowStore(time.Millisecond)
		f := testFleet(t, s, FleetConfig{})
		draws := fleetOn("k", Rate{Limit: 5, Per: time.Minute, Burst: 5})
		g, err := f.take(t.Context(), draws, Cost{"requests": 5}, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		g.cancel()
		g.cancel()
		synctest.Wait()
		time.Sleep(time.Second)
		if s.calls(&s.refunds) != 1 {
			t.Errorf("%d refunds were sent, want 1", s.calls(&s.refunds))
		}
		if _, err := f.take(t.Context(), draws, Cost{"requests": 5}, 0, time.Second); err != nil {
			t.Errorf("after a refund of everything: %v", err)
		}
	})
}

func TestFleetSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := testFleet(t, newSlowStore(time.Millisecond), FleetConfig{})
		draws := fleetOn("k", Rate{Limit: 60, Per: time.Minute, Burst: 60, Unit: "tokens"})
		take := func(n int64) (*fleetGrant, error) {
			return f.take(t.Context(), draws, Cost{"tokens": n}, 0, time.Second)
		}
		g, err := take(30)
		if err != nil {
			t.Fatal(err)
		}
		g.settle(Cost{"tokens": 10})
		time.Sleep(time.Second)
		if _, err = take(50); err != nil {
			t.Fatalf("50 of 50 left: %v", err)
		}
		time.Sleep(65 * time.Second)
		if g, err = take(10); err != nil {
			t.Fatal(err)
		}
		g.settle(Cost{"tokens": 40})
		time.Sleep(time.Second)
		if _, err = take(21); err == nil {
			t.Error("21 of 20 left were granted")
		}
		if _, err = take(20); err != nil {
			t.Errorf("20 of 20 left: %v", err)
		}
	})
}

func TestFleetPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := testFleet(t, newSlowStore(time.Millisecond), FleetConfig{})
		draws := fleetOn("k", Rate{Limit: 1, Per: time.Second})
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				if _, err := f.take(t.Context(), draws, nil, i/4, time.Minute); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
			})
			time.Sleep(10 * time.Millisecond)
		}
		wg.Wait()
		if got, want := fmt.Sprint(order), fmt.Sprint([]int{0, 4, 5, 1, 2, 3}); got != want {
			t.Errorf("order %v, want %v", got, want)
		}
	})
}
