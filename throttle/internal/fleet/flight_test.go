package fleet

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/farstore"
	"github.com/weirhttp/weir/throttle/store"
)

// aloftKey is a key under which n requests may be under way at a time.
func aloftKey(n int) []Key { return []Key{{ID: "k", Name: "k", InFlight: n}} }

// sky counts the requests that are under way in all processes.
type sky struct {
	mu        sync.Mutex
	now, most int
	served    map[int]int   // by process
	busy      time.Duration // of requests that ended in time
	ends      time.Time
}

func (s *sky) add(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now += n
	s.most = max(s.most, s.now)
}

// flyOnce books for a request of process i that is under way for d.
func (s *sky) flyOnce(ctx context.Context, f *Fleet, keys []Key, i int, d, maxWait time.Duration) *Refusal {
	g, r := f.Book(ctx, keys, nil, Options{MaxWait: maxWait, Held: true})
	if r != nil {
		return r
	}
	s.add(1)
	time.Sleep(d)
	s.add(-1)
	s.mu.Lock()
	if !time.Now().After(s.ends) {
		s.served[i]++
		s.busy += d
	}
	s.mu.Unlock()
	g.Answered()
	g.Done()
	return nil
}

// However many processes want more, never more requests are under way than may be, the
// places are used, and all processes get much the same of them.
func TestInFlightIsTheFleets(t *testing.T) {
	for _, test := range []struct {
		name         string
		members, n   int
		took, jitter time.Duration
		rtt          time.Duration
		each         int     // requests of a process
		use, share   float64 // of what there is at least, and of an equal part
	}{
		{"many processes, few places", 16, 8, 50 * time.Millisecond, 50 * time.Millisecond, time.Millisecond, 100, .75, .8},
		{"slow requests", 6, 3, 2 * time.Second, 2 * time.Second, time.Millisecond, 30, .9, .65},
		{"few processes", 3, 8, 50 * time.Millisecond, 50 * time.Millisecond, time.Millisecond, 500, .75, .8},
		{"quick requests", 4, 8, 5 * time.Millisecond, 5 * time.Millisecond, 500 * time.Microsecond, 1000, .4, .8},
		{"one process", 1, 8, 20 * time.Millisecond, 0, time.Millisecond, 1000, .85, 1},
		{"a hundred places", 16, 100, 100 * time.Millisecond, 100 * time.Millisecond, time.Millisecond, 500, .75, .7},
		{"a slow store", 8, 8, 200 * time.Millisecond, 200 * time.Millisecond, 20 * time.Millisecond, 500, .5, .7},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, air := farstore.New(test.rtt), &sky{served: make(map[int]int)}
				lasts := (test.took + test.jitter/2) * time.Duration(test.each*test.members/test.n)
				ends := time.Now().Add(lasts)
				air.ends = ends
				var wg sync.WaitGroup
				var fs []*Fleet
				for i := range test.members {
					f := New(s, Config{Members: test.members})
					fs = append(fs, f)
					places := make(chan struct{}, test.n) // as the process's own budget
					for range 2 * test.n {
						wg.Go(func() {
							r := rand.New(rand.NewPCG(uint64(i), 7))
							for time.Now().Before(ends) {
								places <- struct{}{}
								d := test.took
								if test.jitter > 0 {
									d += time.Duration(r.Int64N(int64(test.jitter)))
								}
								if why := air.flyOnce(context.Background(), f, aloftKey(test.n), i, d, time.Hour); why != nil {
									t.Errorf("refused: %+v", why)
								}
								<-places
							}
						})
					}
				}
				wg.Wait()
				for _, f := range fs {
					f.Close()
				}
				all, least, most := 0, 1<<30, 0
				for i := range test.members {
					n := air.served[i]
					all, least, most = all+n, min(least, n), max(most, n)
				}
				use := air.busy.Seconds() / lasts.Seconds() / float64(test.n)
				equal := float64(all) / float64(test.members)
				t.Logf("%d at a time, %.2f used, %d served, shares %.2f to %.2f, %d bookings and %d refunds", air.most, use, all, float64(least)/equal, float64(most)/equal, s.Books(), s.Refunds())
				if air.most > test.n || use < test.use || float64(least) < test.share*equal {
					t.Errorf("%d at a time of %d, %.2f of them used, shares %.2f to %.2f", air.most, test.n, use, float64(least)/equal, float64(most)/equal)
				}
			})
		})
	}
}

// What a killed process had under way is free when it has been silent for a while, and
// not before. What lives keeps its places however long it takes.
func TestInFlightOfKilledProcessesComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, air := farstore.New(time.Millisecond), &sky{served: make(map[int]int)}
		killed, lives := New(s, Config{Members: 2}), New(s, Config{Members: 2})
		defer lives.Close()
		for range 2 {
			if _, r := killed.Book(context.Background(), aloftKey(3), nil, Options{MaxWait: time.Hour, Held: true}); r != nil {
				t.Fatal(r)
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() { air.flyOnce(context.Background(), lives, aloftKey(3), 1, time.Minute, time.Hour) })
		time.Sleep(30 * time.Second)
		if r := air.flyOnce(context.Background(), lives, aloftKey(3), 1, 0, time.Second); r == nil || r.Reason != TooLong {
			t.Errorf("three were under way and a fourth went: %+v", r)
		}
		killed.Close()
		if r := air.flyOnce(context.Background(), lives, aloftKey(3), 1, 0, flightSilence-2*flightDue); r == nil {
			t.Error("a place came back at once")
		}
		begin := time.Now()
		if r := air.flyOnce(context.Background(), lives, aloftKey(3), 1, 0, 3*flightDue); r != nil {
			t.Errorf("no place came back within %v: %+v", flightSilence+flightDue, r)
		}
		t.Logf("back %v later", time.Since(begin))
		wg.Wait()
	})
}

// When one of a process's requests ends, the others keep their places however long they
// take.
func TestInFlightKeepsItsPlaceWhenOthersEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		f, other := New(s, Config{Members: 2}), New(s, Config{Members: 2})
		defer f.Close()
		defer other.Close()
		var grants []*Grant
		for range 2 {
			g, r := f.Book(t.Context(), aloftKey(2), nil, Options{MaxWait: time.Minute, Held: true})
			if r != nil {
				t.Fatal(r)
			}
			grants = append(grants, g)
			time.Sleep(flightDue) // so that each has a place of its own
		}
		grants[0].Done()
		time.Sleep(3 * flightSilence)
		a, r := other.Book(t.Context(), aloftKey(2), nil, Options{MaxWait: time.Second, Held: true})
		if r != nil {
			t.Errorf("the place of one that ended is taken: %+v", r)
		}
		if _, r := other.Book(t.Context(), aloftKey(2), nil, Options{MaxWait: time.Second, Held: true}); r == nil || r.Reason != TooLong {
			t.Errorf("the place of one that goes on is free: %+v", r)
		}
		a.Done()
		grants[1].Done()
	})
}

// A grant that ends twice, or after its place was taken for a silent process's, gives
// back one place at most.
func TestInFlightIsGivenBackOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		stands, lives := New(s, Config{Members: 2}), New(s, Config{Members: 2})
		defer lives.Close()
		defer stands.Close()
		book := func(f *Fleet, wait time.Duration) *Grant {
			g, _ := f.Book(context.Background(), aloftKey(2), nil, Options{MaxWait: wait, Held: true})
			return g
		}
		g, other := book(stands, 0), book(lives, 0)
		g.Done()
		g.Done()
		g.Cancel()
		time.Sleep(time.Second)
		if a, b := book(lives, 0), book(lives, 0); a == nil || b != nil {
			t.Errorf("ended thrice: %v and %v of one that was free", a != nil, b != nil)
		} else {
			a.Done()
		}
		time.Sleep(time.Second)
		g = book(stands, 0)
		stands.flightStands()
		time.Sleep(flightSilence + time.Second)
		a := book(lives, time.Second)
		if a == nil {
			t.Fatal("the place of a process that stood still did not come back")
		}
		g.Done() // too late
		time.Sleep(time.Second)
		if b := book(lives, time.Second); b != nil {
			t.Error("a place was given back that somebody else has")
		}
		other.Done()
		a.Done()
	})
}

// flightStands keeps f from saying what it has under way, as though it stood still.
func (f *Fleet) flightStands() {
	for _, q := range f.queues {
		q.mu.Lock()
		q.flight.close()
		q.flight.renewal = true
		q.mu.Unlock()
	}
}

// While the store is gone each process goes on with its share, and what it has under
// way then counts when the store is back.
func TestInFlightWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		a, b := New(s, Config{Members: 4}), New(s, Config{Members: 4})
		defer b.Close()
		defer a.Close()
		book := func(f *Fleet) *Grant {
			g, _ := f.Book(context.Background(), aloftKey(8), nil, Options{MaxWait: time.Second, Held: true})
			return g
		}
		s.Fail(errors.New("gone"), false)
		first, second, third := book(a), book(a), book(a)
		if first == nil || second == nil || third != nil {
			t.Errorf("alone it had %v, %v, %v of a share of two", first != nil, second != nil, third != nil)
		}
		s.Fail(nil, false)
		time.Sleep(10 * time.Second)
		n := 0
		var gs []*Grant
		for range 8 {
			if g := book(b); g != nil {
				n++
				gs = append(gs, g)
			}
		}
		if n != 6 {
			t.Errorf("%d beside two that began alone, want 6", n)
		}
		for _, g := range append(gs, first, second) {
			g.Done()
		}
		time.Sleep(time.Second)
		if g := book(b); g == nil {
			t.Error("nothing came back")
		} else {
			g.Done()
		}
	})
}

// A store that loses its state hears what is under way before it grants more.
func TestInFlightSurvivesALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		var fs [3]*Fleet
		var gs []*Grant
		for i := range fs {
			fs[i] = New(s, Config{Members: len(fs)})
			defer fs[i].Close()
			for range 2 {
				g, r := fs[i].Book(context.Background(), aloftKey(6), nil, Options{Held: true})
				if r != nil {
					t.Fatal(r)
				}
				gs = append(gs, g)
			}
		}
		s.Lose()
		for i := range fs {
			if _, r := fs[i].Book(context.Background(), aloftKey(6), nil, Options{MaxWait: 2 * time.Second, Held: true}); r == nil {
				t.Errorf("process %d booked a seventh of six", i)
			}
		}
		for _, g := range gs {
			g.Done()
		}
		g, r := fs[0].Book(context.Background(), aloftKey(6), nil, Options{MaxWait: flightSilence + 2*time.Second, Held: true})
		if r != nil {
			t.Fatalf("nothing came back: %+v", r)
		}
		g.Done()
	})
}

// Callers that give up while a booking of theirs is on its way harm nobody, whatever
// the store then says of it.
func TestInFlightOutlivesThoseThatGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(20 * time.Millisecond)
		f, air := New(s, Config{Members: 2}), &sky{served: make(map[int]int)}
		defer f.Close()
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 7 * time.Millisecond)
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+i*37%101)*3*time.Millisecond)
				defer cancel()
				air.flyOnce(ctx, f, aloftKey(2), 0, 300*time.Millisecond, time.Hour) // or gives up
			})
		}
		wg.Wait()
		time.Sleep(time.Second)
		if air.most != 2 {
			t.Errorf("%d at a time of 2", air.most)
		}
		for range 2 {
			wg.Go(func() {
				if r := air.flyOnce(context.Background(), f, aloftKey(2), 0, time.Second, 100*time.Millisecond); r != nil {
					t.Errorf("a place was lost: %+v", r)
				}
			})
		}
		wg.Wait()
	})
}

// Requests under way leave no timer behind, and a key without them has no more in the
// store than before.
func TestInFlightAsksForNothingElse(t *testing.T) {
	q := newQueue(New(store.NewMemory(), Config{Members: 1}), on("k", rates("5/s")...))
	if b := q.booking(time.Now()); len(b.Draws[0].Units) != 1 || len(b.Draws[0].Limits) != 2 {
		t.Errorf("%+v", b)
	}
}
