package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
)

func TestTakeUpToTakesAPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "10/s burst 4, 100 tokens/m burst 100")
		start := time.Now()
		for _, step := range []struct {
			unit       string
			most, want int64
			at         time.Duration
		}{
			{"", 3, 3, 0}, {"", 3, 1, 0}, {"", 9, 1, 100 * time.Millisecond},
			{"tokens", 70, 70, 100 * time.Millisecond}, {"tokens", 70, 30, 100 * time.Millisecond},
			{"unheard", 8, 8, 100 * time.Millisecond}, {"", 0, 0, 100 * time.Millisecond},
		} {
			n, err := l.TakeUpTo(t.Context(), "k", step.unit, step.most)
			if err != nil || n != step.want || time.Since(start) != step.at {
				t.Errorf("%+v: got %d, %v at %v", step, n, err, time.Since(start))
			}
		}
	})
}

// MaxWait holds also where no estimate was possible.
func TestMaxWaitEndsWaitsOfUnknownLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(slow(0))
		tr := newTransport(t, b, throttle.Config{Default: throttle.Budget{InFlight: 1}, MaxWait: 5 * time.Second})
		mustGet(t, tr, "http://a/") // never closed
		_, err := get(t, t.Context(), tr, "http://a/")
		var e *throttle.Error
		if !errors.As(err, &e) || e.Reason != throttle.WaitTooLong || e.Timeout() || time.Since(b.Start) != 5*time.Second {
			t.Errorf("got %v after %v, want a refusal after 5s", err, time.Since(b.Start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = get(t, ctx, tr, "http://a/")
		if !errors.As(err, &e) || !e.Timeout() || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want a refusal because of the deadline", err)
		}
		if got, want := err.Error(), "throttle: a: wait of unknown length exceeds the deadline (1 in flight)"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if s := tr.Stats().Hosts[0]; s.Queue != 0 || s.InFlight != 0 {
			t.Errorf("left behind: %+v", s)
		}
	})
}

// TestLimiterInFlight: a place is held until the grant is settled or cancelled.
func TestLimiterInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "100/s burst 100, 2 in flight")
		take := func() (throttle.Grant, error) { return l.Take(police(t), "k", nil) }
		first, _ := take()
		if n, err := l.TakeUpTo(police(t), "k", "", 7); n != 7 || err != nil {
			t.Errorf("a part: got %d, %v, want 7", n, err)
		}
		for range 2 {
			if !l.Try("k", nil).Allowed {
				t.Error("Try held a place")
			}
		}
		second, err := take()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := take(); err == nil || l.Try("k", nil).Allowed {
			t.Error("a third one goes")
		}
		var wg sync.WaitGroup
		start := time.Now()
		wg.Go(func() {
			if _, err := l.Take(t.Context(), "k", nil); err != nil || time.Since(start) != time.Second {
				t.Errorf("the one that waits got %v after %v, want a place after 1s", err, time.Since(start))
			}
		})
		time.Sleep(time.Second)
		first.Settle(nil)
		first.Cancel()
		wg.Wait()
		if _, err := take(); err == nil {
			t.Error("one end freed two places")
		}
		second.Cancel()
		if _, err := take(); err != nil {
			t.Error(err)
		}
	})
}

// TestLimiterPauseReachesTheQueue: who cannot wait that long is refused at once,
// and the others go one by one after it.
func TestLimiterPauseReachesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "10/s burst 2")
		burst(t, l, 2)
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := l.Take(throttle.WithMaxWait(t.Context(), 5*time.Second), "k", nil)
			var e *throttle.Error
			if !errors.As(err, &e) || e.Reason != throttle.Paused || time.Since(start) != 50*time.Millisecond {
				t.Errorf("got %v after %v, want a refusal at once", err, time.Since(start))
			}
		})
		at := make([]time.Duration, 3)
		for i := range at {
			wg.Go(func() {
				l.Take(t.Context(), "k", nil)
				at[i] = time.Since(start)
			})
		}
		time.Sleep(50 * time.Millisecond)
		l.Pause("k", time.Now().Add(10*time.Second))
		wg.Wait()
		slices.Sort(at)
		sameTimes(t, at, 10050*time.Millisecond, 10150*time.Millisecond, 10250*time.Millisecond)
	})
}

// TestOnlyTheMetersRefusalRefunds: what may have reached the server stays spent.
func TestOnlyTheMetersRefusalRefunds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			err  error
			left float64
		}{
			{meterRefusal{errors.New("open")}, 10},
			{fmt.Errorf("wrapped: %w", meterRefusal{errors.New("open")}), 10},
			{errors.New("dial tcp: connection refused"), 9},
			{&throttle.Error{Key: "a", Reason: throttle.QueueFull}, 9},
			{context.DeadlineExceeded, 9},
		} {
			tr := newTransport(t, metered{newBase(func(*http.Request) (*http.Response, error) { return nil, test.err })},
				throttle.Config{Default: throttle.MustParseBudget("10/m burst 10, 3 in flight"), DisableLearning: true})
			if _, err := get(t, t.Context(), tr, "http://a/"); !errors.Is(err, test.err) {
				t.Errorf("got %v, want %v itself", err, test.err)
			}
			b := tr.Stats().Hosts[0].Budgets
			if b[0].Left != test.left || b[1].Left != 3 {
				t.Errorf("after %v: %v units and %v places left, want %v and 3", test.err, b[0].Left, b[1].Left, test.left)
			}
		}
	})
}
