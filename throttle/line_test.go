package throttle

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// queued starts Takes, one after the other, and notes how each ended.
type queued struct {
	t     *testing.T
	l     *Limiter
	start time.Time
	mu    sync.Mutex
	at    map[string]time.Duration
	err   map[string]error
	wg    sync.WaitGroup
}

func newQueued(t *testing.T, l *Limiter) *queued {
	return &queued{t: t, l: l, start: time.Now(), at: make(map[string]time.Duration), err: make(map[string]error)}
}

func (q *queued) take(ctx context.Context, name string, c Cost) {
	q.wg.Go(func() {
		_, err := q.l.Take(ctx, "k", c)
		q.mu.Lock()
		defer q.mu.Unlock()
		q.at[name], q.err[name] = time.Since(q.start), err
	})
	synctest.Wait()
}

func (q *queued) want(name string, at time.Duration, granted bool) {
	q.t.Helper()
	if got := q.at[name]; got < at || got > at+time.Microsecond || (q.err[name] == nil) != granted {
		q.t.Errorf("%s: got %v at %v, want granted %t at %v", name, q.err[name], got, granted, at)
	}
}

// Who certainly cannot be granted in time any more is refused at that moment, and
// those behind it move up.
func TestRefusedWaiterMovesOthersUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "1/s bucket 10")
		g, err := l.Take(t.Context(), "k", Cost{requests: 10})
		if err != nil {
			t.Fatal(err)
		}
		q := newQueued(t, l)
		q.take(WithMaxWait(t.Context(), 6*sec), "large", Cost{requests: 5})
		q.take(t.Context(), "small", nil)
		time.Sleep(sec)
		g.Settle(Cost{requests: 20})
		q.wg.Wait()
		q.want("large", sec, false)
		q.want("small", 11*sec, true)
	})
}

// Each wait ends at its own time, in whatever order they began.
func TestEachWaitEndsAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "1 in flight")
		if _, err := l.Take(t.Context(), "k", nil); err != nil {
			t.Fatal(err)
		}
		q := newQueued(t, l)
		for name, d := range map[string]time.Duration{"10": 10 * sec, "5": 5 * sec, "20": 20 * sec, "7": 7 * sec, "7 too": 7 * sec} {
			q.take(WithMaxWait(t.Context(), d), name, nil)
		}
		q.wg.Wait()
		q.want("5", 5*sec, false)
		q.want("7", 7*sec, false)
		q.want("7 too", 7*sec, false)
		q.want("10", 10*sec, false)
		q.want("20", 20*sec, false)
		again := newQueued(t, l) // the timer has been stopped
		again.take(WithMaxWait(t.Context(), 3*sec), "3", nil)
		again.wg.Wait()
		again.want("3", 3*sec, false)
	})
}

// A caller who leaves is told its own cause, also if there is a deadline.
func TestCancelIsNotTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "1/m")
		burst(t, l, 1)
		cause := errors.New("changed my mind")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		ctx, leave := context.WithCancelCause(ctx)
		time.AfterFunc(time.Second, func() { leave(cause) })
		_, err := l.Take(ctx, "k", nil)
		var e *Error
		if err != cause || errors.As(err, &e) {
			t.Errorf("got %v, want the cause", err)
		}
	})
}

// A request's own Cancel ends its wait with an error of its own.
func TestRequestCancelEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), Config{Default: MustParseBudget("1/m")})
		mustGet(t, tr, "http://h/")
		r, _ := http.NewRequest("GET", "http://h/", nil)
		cancel := make(chan struct{})
		r.Cancel = cancel //lint:ignore SA1019 old callers still set it
		time.AfterFunc(sec, func() { close(cancel) })
		start := time.Now()
		if _, err := tr.RoundTrip(r); err != errCanceled && (err == nil || !strings.Contains(err.Error(), errCanceled.Error())) || time.Since(start) != sec {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

// Of two waiters the one of the higher class goes first, and of one class the
// older one.
func TestRank(t *testing.T) {
	for _, test := range []struct {
		p, q   int
		s, t   uint64
		before bool
	}{{0, 0, 1, 2, true}, {0, 0, 2, 1, false}, {1, 0, 2, 1, true}, {0, 1, 1, 2, false}, {-1, 0, 1, 2, false}} {
		w, v := &waiter{ask: ask{priority: test.p, seq: test.s}}, &waiter{ask: ask{priority: test.q, seq: test.t}}
		if w.before(v) != test.before {
			t.Errorf("%+v: %t", test, !test.before)
		}
	}
}

// fill makes a line of waiters: priority, lane and units of each, by arrival.
func fill(places ...ask) (*line, []*waiter) {
	l := &line{a: &account{}}
	var all []*waiter
	for i, q := range places {
		w := &waiter{ask: q}
		w.seq = uint64(i + 1)
		l.add(w, q.upTo)
		all = append(all, w)
	}
	return l, all
}

// What goes before a newcomer: all of higher classes, its own lane, and as many
// turns of each other lane as it has to await itself.
func TestUnitsAhead(t *testing.T) {
	l, _ := fill(ask{lane: "a", upTo: 1}, ask{lane: "a", upTo: 2}, ask{lane: "b", upTo: 10}, ask{lane: "b", upTo: 10},
		ask{lane: "b", upTo: 10}, ask{priority: 1, upTo: 100}, ask{priority: -1, upTo: 1000})
	for _, test := range []struct {
		priority int
		lane     string
		want     int64
	}{
		{2, "a", 0}, {1, "a", 100 / 1}, {1, "", 100}, {-1, "", 1000 + 33 + 100}, {-2, "", 1133},
		{0, "a", 100 + 3 + 30}, // third in its lane: three turns of the other
		{0, "b", 100 + 30 + 3}, // fourth: all of the other
		{0, "c", 100 + 33*2/5}, // first: one turn of each
	} {
		if got := l.ahead(&ask{priority: test.priority, lane: test.lane}); got != test.want {
			t.Errorf("priority %d, lane %q: %d units, want %d", test.priority, test.lane, got, test.want)
		}
	}
	l, _ = fill(ask{lane: "a", upTo: 10}, ask{lane: "a", upTo: 10})
	for lane, want := range map[string]int64{"a": 20, "b": 10} {
		if got := l.ahead(&ask{lane: lane}); got != want {
			t.Errorf("lane %q: %d units, want %d", lane, got, want)
		}
	}
}

// Of eight grants made while lower classes wait, one goes to the oldest of
// them; the count begins anew when they come.
func TestShareOfLowerClasses(t *testing.T) {
	var places []ask
	for range 20 {
		places = append(places, ask{priority: 1})
	}
	l, _ := fill(places...)
	grant := func() *waiter {
		w := l.pick()
		l.remove(w.claims[0], true)
		w.claims = nil
		return w
	}
	for range 3 {
		grant() // while nobody of a lower class waits
	}
	var low []*waiter
	for i, p := range []int{-1, 0, 0} {
		w := &waiter{ask: ask{priority: p, seq: uint64(100 + i)}}
		l.add(w, 1)
		low = append(low, w)
	}
	for round, want := range low[:2] {
		for i := range share - 1 {
			if w := grant(); w.priority != 1 {
				t.Fatalf("round %d: grant %d to class %d", round, i, w.priority)
			}
		}
		if w := grant(); w != want {
			t.Fatalf("round %d: the share went to %d, want %d", round, w.seq, want.seq)
		}
	}
	if l.size() != 4 || l.oldest() != l.pick() {
		t.Errorf("%d are left", l.size())
	}
}

// What a wait is for is told, also if no time is known.
func TestWhatIsWaitedForIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []Wait
		l, err := NewLimiter(LimiterConfig{Default: MustParseBudget("1 in flight"), OnWait: func(w Wait) { told = append(told, w) }})
		if err != nil {
			t.Fatal(err)
		}
		g, _ := l.Take(t.Context(), "k", nil)
		if d := l.Try("k", nil); d.Allowed || d.RetryAfter != unknown {
			t.Errorf("got %+v, want a wait of unknown length", d)
		}
		time.AfterFunc(sec, g.Cancel)
		if _, err := l.Take(t.Context(), "k", nil); err != nil {
			t.Fatal(err)
		}
		if len(told) != 2 || told[0].Why != "1 in flight, all taken" || told[0].Expect != 0 || told[1].Waited != sec || !told[1].Granted {
			t.Errorf("told %+v", told)
		}
	})
}

// One who goes at once, as it ranks before those that wait, takes room from
// them: they are planned anew at once, not when something else happens.
func TestWhoGoesFirstReplansOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(slow(time.Minute))
		tr := newTransport(t, b, Config{Budgets: map[string]Budget{
			"h": MustParseBudget("12/m burst 2"), "h/b": MustParseBudget("7/m burst 1"),
		}})
		var wg sync.WaitGroup
		send := func(priority int, path string) {
			wg.Go(func() { get(t, WithPriority(t.Context(), priority), tr, "http://h/"+path) })
			synctest.Wait()
		}
		send(0, "b")
		send(0, "a")
		send(0, "b") // waits 5 s for the host and has room there then, but waits 9 s for its route
		time.Sleep(6 * time.Second)
		send(1, "a")
		if n := len(b.times()); n != 3 {
			t.Fatalf("%d have gone, want 3", n)
		}
		e := tr.engine
		e.mu.Lock()
		if len(e.dirty) > 0 {
			t.Errorf("%d lines are not planned anew", len(e.dirty))
		}
		e.mu.Unlock()
		wg.Wait()
	})
}

// A wait that lasts just as long as allowed ends with room, whichever timer
// rings first.
func TestAWaitMayLastAsLongAsAllowed(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, "1/s burst 1")
			for range 2 {
				if _, err := l.Take(WithMaxWait(t.Context(), time.Second), "k", nil); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
