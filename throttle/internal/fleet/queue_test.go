package fleet

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/farstore"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/store"
)

// queueOn is a queue of f on key "k" that is not in f's list.
func queueOn(f *Fleet, budget string) *queue {
	return newQueue(f, on("k", rates(budget)...))
}

// waitsIn is somebody who enters a queue and can wait that long.
func waitsIn(n int64, d time.Duration) *waiter {
	return &waiter{cost: []int64{n}, since: time.Now(), ends: time.Now().Add(d), done: make(chan struct{})}
}

// What the rates of a queue ask of those that answer late: of several, the most.
func TestFleetLateNeeds(t *testing.T) {
	ms := time.Millisecond
	for _, test := range []struct {
		budget            string
		c                 Config
		slack, due, ahead time.Duration
	}{
		{"200/s", Config{Lease: time.Second}, 0, 0, time.Second},
		{"5/s bucket 5", Config{}, 0, 0, time.Second},
		{"5/s burst 5", Config{}, 50 * ms, 125 * ms, 500 * ms},
		{"5/s burst 5", Config{Lease: 20 * ms}, 70 * ms, 125 * ms, 500 * ms},
		{"5/s burst 5", Config{Spread: ms}, ms, 125 * ms, 500 * ms},
		{"5/2s burst 5", Config{}, 50 * ms, 250 * ms, time.Second},
		{"5/m burst 5", Config{}, 50 * ms, 7500 * ms, time.Second},
		{"5/2m burst 5", Config{}, 50 * ms, 10 * time.Second, time.Second},
		{"5/100ms burst 5, 9/s burst 9", Config{}, 5 * ms, 12500 * time.Microsecond, 50 * ms},
		{"9/s burst 9, 5/100ms burst 5, 200/s", Config{}, 5 * ms, 12500 * time.Microsecond, 50 * ms},
	} {
		n := newLateness(on("k", rates(test.budget)...), test.c, time.Unix(0, 0))
		if n.slack != test.slack || n.due != test.due || n.ahead() != test.ahead {
			t.Errorf("%s: a slack of %v, told within %v, %v ahead; want %v, %v, %v", test.budget, n.slack, n.due, n.ahead(), test.slack, test.due, test.ahead)
		}
	}
}

// Costs are kept once per unit, requests first.
func TestFleetQueueUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := testFleet(t, farstore.New(0), Config{})
		q := queueOn(f, "5/s, 6/m, 7 tokens/s, 8 tokens/m, 9 bytes/s")
		if want := []string{meter.Requests, "tokens", "bytes"}; !slices.Equal(q.units, want) {
			t.Errorf("%v, want %v", q.units, want)
		}
		if got, want := q.vector(nil, map[string]int64{"tokens": 4}), []int64{1, 4, 0}; !slices.Equal(got, want) {
			t.Errorf("costs %v, want %v", got, want)
		}
	})
}

// Who cannot wait as long as the store said is refused, but for one that asks
// for less when nobody is ahead: it asks the store.
func TestFleetEnterAfterARefusal(t *testing.T) {
	for _, test := range []struct {
		name    string
		ahead   int
		cost    int64
		wait    time.Duration
		asks    bool // is about to ask the store
		refused bool
	}{
		{"as much", 0, 5, time.Second, false, true},
		{"more", 0, 6, time.Second, false, true},
		{"less", 0, 4, time.Second, true, false},
		{"less, behind one", 1, 4, time.Second, false, true},
		{"less, behind two", 2, 4, time.Second, false, true},
		{"as much, with time", 0, 5, 10 * time.Second, false, false},
		{"hardly with time", 0, 5, 10*time.Second - 1, false, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := queueOn(testFleet(t, farstore.New(0), Config{}), "200/s")
			for range test.ahead {
				q.waiting = append(q.waiting, waitsIn(5, time.Minute))
			}
			now := time.Now()
			q.calls, q.short = 1, true // nothing goes until that call is back
			q.notBefore, q.refused = now.Add(5*time.Second), shortage{cost: []int64{5}, until: now.Add(10 * time.Second)}
			w := waitsIn(test.cost, test.wait)
			q.enter(w)
			if w.gone != test.refused || q.notBefore.Equal(now) != test.asks || len(q.waiting) == test.ahead != test.refused {
				t.Errorf("%s: refused %t, %d waiting, asks in %v", test.name, w.gone, len(q.waiting), q.notBefore.Sub(now))
			}
			q.still()
		})
	}
}

// What a process guessed holds up the others, but refuses only those whose time is over. What
// is certain of a pause refuses those at once that cannot wait for it.
func TestGuessesRefuseNobodyEarly(t *testing.T) {
	for name, test := range map[string]struct {
		news          store.News
		patience      time.Duration
		after, within time.Duration // until it is refused, or granted
		granted       bool
		outlook       time.Duration // of the next one
	}{
		"it can wait":          {store.News{Guess: 3 * time.Second}, 5 * time.Second, 3 * time.Second, time.Second, true, 0},
		"its time ends before": {store.News{Guess: 3 * time.Second}, time.Second, time.Second, 100 * time.Millisecond, false, 0},
		"it does not wait":     {store.News{Guess: 3 * time.Second}, 0, 0, 10 * time.Millisecond, false, 0},
		"a part is certain":    {store.News{Pause: 2 * time.Second, Guess: 3 * time.Second}, time.Second, 0, 10 * time.Millisecond, false, 2 * time.Second},
		"more is certain":      {store.News{Pause: 4 * time.Second, Guess: 3 * time.Second}, time.Second, 0, 10 * time.Millisecond, false, 4 * time.Second},
		"it waits beyond that": {store.News{Pause: time.Second, Guess: 3 * time.Second}, 2 * time.Second, 2 * time.Second, 100 * time.Millisecond, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := farstore.New(time.Millisecond)
				a, b := testFleet(t, s, Config{}), testFleet(t, s, Config{})
				a.Tell("k", test.news)
				time.Sleep(10 * time.Millisecond)
				keys := on("k", meter.Spec{Limit: 1000, Per: time.Second, Burst: 1000})
				begin := time.Now()
				_, r := take(b, t.Context(), keys, nil, 0, test.patience)
				if took := time.Since(begin) + 10*time.Millisecond; (r == nil) != test.granted || took < test.after || took > test.after+test.within+10*time.Millisecond {
					t.Errorf("granted %t after %v, want %t after %v", r == nil, took, test.granted, test.after)
				}
				if r != nil && r.Reason != Paused {
					t.Errorf("refused because of %v, want a pause", r.Reason)
				}
				if wait := b.Outlook(keys); (wait - test.outlook).Abs() > 20*time.Millisecond {
					t.Errorf("the next one hears of a wait of %v, want %v", wait, test.outlook)
				}
			})
		})
	}
}

// Who is granted is not refused any more, and a wait ends once.
func TestFleetWaitEndsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queueOn(testFleet(t, farstore.New(0), Config{}), "200/s")
		w, first := waitsIn(1, time.Second), &Refusal{Reason: TooLong}
		q.grant(w, nil, time.Now())
		q.end(w, first)
		if w.grant == nil || w.refusal != nil || w.gone {
			t.Errorf("granted, and then %v", w.refusal)
		}
		w, other := waitsIn(1, time.Second), waitsIn(1, time.Second)
		q.waiting = []*waiter{w, other}
		q.end(w, first)
		q.end(w, &Refusal{Reason: Down})
		if w.refusal != first || len(q.waiting) != 1 || q.waiting[0] != other {
			t.Errorf("ended by %v, want the first; %d wait", w.refusal, len(q.waiting))
		}
	})
}

// The second call goes for no fewer requests than the first has, a third never,
// and with what is short there is one.
func TestFleetCallsOnTheirWay(t *testing.T) {
	for _, test := range []struct {
		calls, riding, waiting int
		short, goes            bool
	}{
		{0, 0, 1, false, true}, {0, 0, 1, true, true}, {1, 3, 2, false, false}, {1, 3, 3, false, true}, {1, 3, 4, false, true},
		{1, 3, 3, true, false}, {1, 1, 1, true, false}, {2, 3, 4, false, false}, {2, 1, 1, false, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := farstore.New(time.Second)
			q := queueOn(testFleet(t, s, Config{Deadline: 2 * time.Second}), "200/s")
			q.calls, q.riding, q.short = test.calls, test.riding, test.short
			for range test.waiting {
				q.waiting = append(q.waiting, waitsIn(1, time.Minute))
			}
			q.mu.Lock()
			q.pump(time.Now())
			q.mu.Unlock()
			synctest.Wait()
			q.mu.Lock()
			defer q.mu.Unlock()
			if went := s.Books() == 1; went != test.goes || len(q.waiting) == 0 != test.goes {
				t.Errorf("%+v: went %t, %d left", test, went, len(q.waiting))
			}
			q.waiting = nil
		})
	}
}

// Keys are short if there was room for one of several alone, lest it was for
// the lease that only one went.
func TestFleetIsShort(t *testing.T) {
	for _, test := range []struct {
		batch int
		alone bool
		extra int64
		short bool
	}{{1, false, 0, false}, {1, true, 0, true}, {1, true, 1, false}, {2, false, 0, false}} {
		synctest.Test(t, func(t *testing.T) {
			q := queueOn(testFleet(t, farstore.New(0), Config{Lease: time.Second}), "200/s")
			call := &ride{q: q, booking: q.booking(time.Now()), sent: time.Now(), extra: test.extra, alone: test.alone}
			for range test.batch {
				call.batch = append(call.batch, waitsIn(1, time.Second))
			}
			q.waiting = append(q.waiting, waitsIn(1, time.Second)) // it may have come meanwhile
			q.short = !test.short
			q.mu.Lock()
			defer q.mu.Unlock()
			q.answered(call, store.Booked{Outcome: store.BookedAll, Keys: []store.Standing{{Levels: []float64{1}}}})
			if q.short != test.short {
				t.Errorf("%+v: short %t", test, q.short)
			}
			if g := call.batch[0].grant; g == nil || q.lease.held(time.Now()) != (test.extra > 0) {
				t.Errorf("%+v: a grant of %+v, a lease of %d", test, g, q.lease.left)
			}
			q.lease.left = 0 // the store knows nothing of it
			q.lease.end()
			q.waiting = nil
		})
	}
}

// A server's late answer is told, once, and one within the slack never.
func TestFleetTellsLateAnswersOnce(t *testing.T) {
	for late, want := range map[time.Duration]int{0: 0, 50 * time.Millisecond: 0, 50*time.Millisecond + 1: 1, 100 * time.Millisecond: 1} {
		synctest.Test(t, func(t *testing.T) {
			f := testFleet(t, farstore.New(0), Config{})
			draws := on("k", rates("5/s burst 5")...)
			g, err := f.Book(t.Context(), draws, nil, Options{Held: true})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(late)
			q := f.queues["k"]
			for i := range 2 { // the second time its body is read to the end
				g.Answered()
				q.mu.Lock()
				if n := &q.late; len(n.late) != want || len(n.open) != 0 {
					t.Errorf("answered after %v, time %d: %d to tell, %d open", late, i, len(n.late), len(n.open))
				}
				q.mu.Unlock()
			}
		})
	}
}

// What was granted alone is charged with the first answer, and known from then on.
func TestFleetRepaysWhatItKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(0)
		f := testFleet(t, s, Config{})
		q := queueOn(f, "5/s burst 5")
		now := time.Now()
		at := now.UnixMicro()
		q.local = []store.Ledger{{Gen: 1, At: at, Expires: at + 9e6, Accounts: []store.Account{{Kind: store.LogLimit, ID: "1s", Entries: []store.Entry{{At: at, Units: 3}}}}}}
		q.repay(context.Background(), time.Now())
		if levels := f.recall("k", 1, now).Levels; !slices.Equal(levels, []float64{3}) {
			t.Errorf("levels %v, want 3", levels)
		}
		q.repay(context.Background(), time.Now()) // there is nothing left to charge
		q.local = spent(q.booking(now), now)
		q.repay(context.Background(), time.Now()) // nothing was granted
		if n := s.Books(); n != 1 || q.local != nil {
			t.Errorf("charged %d times", n)
		}
	})
}

// A request that a lease serves has a grant as any other: it can be given back.
func TestFleetLeasedGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		f := testFleet(t, s, Config{Lease: time.Second})
		draws := on("k", rates("200/s")...)
		for i := range 2 {
			g, err := take(f, t.Context(), draws, nil, 0, time.Second)
			if err != nil || g == nil || g.batch == nil {
				t.Fatalf("take %d: %+v, %v", i, g, err)
			}
			if n := s.Books(); n != 1 {
				t.Errorf("take %d: %d calls, want 1", i, n)
			}
			if i == 1 {
				g.Cancel()
			}
		}
		time.Sleep(10 * time.Millisecond)
		if n := s.Refunds(); n != 1 {
			t.Errorf("%d refunds", n)
		}
	})
}

// A queue is kept for each thing that would be lost with it.
func TestFleetQueueIdle(t *testing.T) {
	for name, change := range map[string]func(q *queue, now time.Time){
		"":                func(*queue, time.Time) {},
		"who waits":       func(q *queue, _ time.Time) { q.waiting = []*waiter{waitsIn(1, time.Second)} },
		"a call":          func(q *queue, _ time.Time) { q.calls = 1 },
		"no answer":       func(q *queue, _ time.Time) { q.late.open = make([]*Grant, 1) },
		"a late answer":   func(q *queue, _ time.Time) { q.late.late = make([]*Grant, 1) },
		"a lease":         func(q *queue, now time.Time) { q.lease.left, q.lease.until = 1, now.Add(1) },
		"a time to ask":   func(q *queue, now time.Time) { q.notBefore = now.Add(1) },
		"its own ledgers": func(q *queue, _ time.Time) { q.local, q.f.guard.state = []store.Ledger{}, Gone },
	} {
		synctest.Test(t, func(t *testing.T) {
			q := &queue{f: testFleet(t, farstore.New(0), Config{})}
			now := time.Now()
			change(q, now)
			if got := q.idle(now); got != (name == "") {
				t.Errorf("with %q: idle %t", name, got)
			}
		})
	}
}

// Higher priorities are booked first, and among equals those that came first.
func TestFleetOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := testFleet(t, farstore.New(time.Millisecond), Config{})
		draws := on("k", meter.Spec{Limit: 1, Per: time.Second, Burst: 1, Bucket: true})
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		take(f, t.Context(), draws, nil, 0, time.Minute)
		take(f, t.Context(), draws, nil, 0, time.Minute) // the next one is booked ahead
		for i, priority := range []int{0, 0, 2, 1, 2, 0} {
			wg.Go(func() {
				if _, err := take(f, t.Context(), draws, nil, priority, time.Minute); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			})
			synctest.Wait()
		}
		wg.Wait()
		if len(order) != 6 || !slices.Equal(order[1:], []int{2, 4, 3, 1, 5}) && !slices.Equal(order, []int{2, 4, 3, 0, 1, 5}) {
			t.Errorf("in the order %v", order)
		}
	})
}

// Keys in another order or cut elsewhere are another queue's.
func TestQueueNames(t *testing.T) {
	if queueName([]Key{{ID: "a"}, {ID: "b"}}) == queueName([]Key{{ID: "ab"}, {ID: ""}}) || queueName([]Key{{ID: "a"}}) != "a" {
		t.Error("names of queues")
	}
}
