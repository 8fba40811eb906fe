package throttle_test

import (
	"context"
	"errors"
	"github.com/weirhttp/weir/throttle"
	"math"
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
	l     *throttle.Limiter
	start time.Time
	mu    sync.Mutex
	at    map[string]time.Duration
	err   map[string]error
	wg    sync.WaitGroup
}

func newQueued(t *testing.T, l *throttle.Limiter) *queued {
	return &queued{t: t, l: l, start: time.Now(), at: make(map[string]time.Duration), err: make(map[string]error)}
}

func (q *queued) take(ctx context.Context, name string, c throttle.Cost) {
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
		g, err := l.Take(t.Context(), "k", throttle.Cost{requests: 10})
		if err != nil {
			t.Fatal(err)
		}
		q := newQueued(t, l)
		q.take(throttle.WithMaxWait(t.Context(), 6*sec), "large", throttle.Cost{requests: 5})
		q.take(t.Context(), "small", nil)
		time.Sleep(sec)
		g.Settle(throttle.Cost{requests: 20})
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
			q.take(throttle.WithMaxWait(t.Context(), d), name, nil)
		}
		q.wg.Wait()
		q.want("5", 5*sec, false)
		q.want("7", 7*sec, false)
		q.want("7 too", 7*sec, false)
		q.want("10", 10*sec, false)
		q.want("20", 20*sec, false)
		again := newQueued(t, l) // the timer has been stopped
		again.take(throttle.WithMaxWait(t.Context(), 3*sec), "3", nil)
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
		var e *throttle.Error
		if err != cause || errors.As(err, &e) {
			t.Errorf("got %v, want the cause", err)
		}
	})
}

// A request's own Cancel ends its wait with an error of its own.
func TestRequestCancelEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), throttle.Config{Default: throttle.MustParseBudget("1/m")})
		mustGet(t, tr, "http://h/")
		r, _ := http.NewRequest("GET", "http://h/", nil)
		cancel := make(chan struct{})
		r.Cancel = cancel //lint:ignore SA1019 old callers still set it
		time.AfterFunc(sec, func() { close(cancel) })
		start := time.Now()
		if _, err := tr.RoundTrip(r); err == nil || !strings.Contains(err.Error(), "canceled") || time.Since(start) != sec {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

// What a wait is for is told, also if no time is known.
func TestWhatIsWaitedForIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []throttle.Wait
		l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("1 in flight"), OnWait: func(w throttle.Wait) { told = append(told, w) }})
		if err != nil {
			t.Fatal(err)
		}
		g, _ := l.Take(t.Context(), "k", nil)
		if d := l.Try("k", nil); d.Allowed || d.RetryAfter != math.MaxInt64 {
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
		tr := newTransport(t, b, throttle.Config{Budgets: map[string]throttle.Budget{
			"h": throttle.MustParseBudget("12/m burst 2"), "h/b": throttle.MustParseBudget("7/m burst 1"),
		}})
		var wg sync.WaitGroup
		send := func(priority int, path string) {
			wg.Go(func() { get(t, throttle.WithPriority(t.Context(), priority), tr, "http://h/"+path) })
			synctest.Wait()
		}
		send(0, "b")
		send(0, "a")
		send(0, "b") // waits 5 s for the host and has room there then, but waits 9 s for its route
		time.Sleep(6 * time.Second)
		send(1, "a")
		if n := len(b.Times()); n != 3 {
			t.Fatalf("%d have gone, want 3", n)
		}
		waiting(t, tr)
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
				if _, err := l.Take(throttle.WithMaxWait(t.Context(), time.Second), "k", nil); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestPolicingKnowsRanks: who may not wait still goes before lower classes that
// do, is behind its own, and hears how long it would have had to wait.
func TestPolicingKnowsRanks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "1/s bucket 10")
		burst(t, l, 7)
		low := make(chan error, 1)
		go func() {
			_, err := l.Take(throttle.WithPriority(t.Context(), -1), "k", throttle.Cost{requests: 8})
			low <- err
		}()
		synctest.Wait() // it waits for 8 where there are 3
		if _, err := l.Take(police(t), "k", nil); err != nil {
			t.Errorf("a higher class that may not wait: %v", err)
		}
		if d := l.Try("k", nil); !d.Allowed || d.Remaining != 1 {
			t.Errorf("a higher class that tries: %+v, want one of 2 granted", d)
		}
		var e *throttle.Error
		if _, err := l.Take(throttle.WithPriority(police(t), -1), "k", nil); !errors.As(err, &e) || e.RetryAfter <= 0 {
			t.Errorf("one of the same class: %v, want a refusal with its wait", err)
		}
		if d := l.Try("k", throttle.Cost{requests: 2}); d.Allowed || d.RetryAfter != time.Second {
			t.Errorf("more than there is: %+v, want a refusal and 1s", d)
		}
		start := time.Now()
		if err := <-low; err != nil || time.Since(start) != 7*time.Second {
			t.Errorf("the lower class got %v after %v, want its turn after 7s", err, time.Since(start))
		}
	})
}

// TestPolicingLeavesLowerClassesTheirShare: of eight grants while a lower class
// waits one is its own, also if the others do not wait.
func TestPolicingLeavesLowerClassesTheirShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "1/s bucket 2")
		burst(t, l, 2)
		low := make(chan error, 1)
		go func() {
			_, err := l.Take(throttle.WithPriority(t.Context(), -1), "k", throttle.Cost{requests: 2})
			low <- err
		}()
		granted := 0
		for {
			time.Sleep(time.Second)
			d := l.Try("k", nil)
			if len(low) > 0 {
				break
			}
			if !d.Allowed && d.RetryAfter <= 0 {
				t.Fatalf("refused with %+v", d)
			}
			if d.Allowed {
				granted++
			}
			if granted > 2*share {
				t.Fatal("the lower class is starved")
			}
		}
		if granted < share-1 {
			t.Errorf("%d grants before the lower class had one, want %d", granted, share-1)
		}
		if err := <-low; err != nil {
			t.Error(err)
		}
	})
}
