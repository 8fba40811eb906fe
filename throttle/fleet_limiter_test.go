package throttle_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/internal/farstore"
	"github.com/weirhttp/weir/throttle/store"
)

func sharedLimiters(t *testing.T, s throttle.Store, b string, n int) []*throttle.Limiter {
	t.Helper()
	var ls []*throttle.Limiter
	for range n {
		l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget(b), Store: s, Fleet: throttle.FleetConfig{Members: n}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		ls = append(ls, l)
	}
	return ls
}

func TestLimitersShareABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := sharedLimiters(t, farstore.New(time.Millisecond), "10/m burst 10", 3)
		granted := 0
		for i := range 30 {
			if d := ls[i%3].Try("k", nil); d.Allowed {
				granted++
				if want := int64(10 - granted); d.Remaining != want {
					t.Errorf("after %d grants in all %d remain, want %d", granted, d.Remaining, want)
				}
			} else if d.RetryAfter < 59*time.Second || d.RetryAfter > 61*time.Second {
				t.Errorf("RetryAfter %v, want about a minute", d.RetryAfter)
			}
		}
		if granted != 10 {
			t.Errorf("three limiters granted %d, want 10", granted)
		}
		if _, err := ls[0].Take(t.Context(), "other", nil); err != nil {
			t.Errorf("another key: %v", err)
		}
	})
}

func TestSharedTakeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := sharedLimiters(t, farstore.New(time.Millisecond), "5/m burst 5", 2)
		for range 5 {
			if _, err := ls[0].Take(t.Context(), "k", nil); err != nil {
				t.Fatal(err)
			}
		}
		begin := time.Now()
		g, err := ls[1].Take(t.Context(), "k", nil)
		if err != nil {
			t.Fatal(err)
		}
		if d := time.Since(begin); d < 59*time.Second || d > 62*time.Second {
			t.Errorf("the other process waited %v, want a minute", d)
		}
		g.Cancel()
		_, err = ls[1].Take(throttle.WithMaxWait(t.Context(), -1), "k", throttle.Cost{"requests": 6})
		var e *throttle.Error
		if !errors.As(err, &e) || e.Reason != throttle.NeverFits {
			t.Errorf("got %v, want NeverFits", err)
		}
	})
}

func TestSharedTakeUpTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := sharedLimiters(t, farstore.New(time.Millisecond), "100 tokens/m burst 100", 2)
		for i, tc := range []struct{ most, want int64 }{{70, 70}, {70, 30}} {
			got, err := ls[0].TakeUpTo(t.Context(), "k", "tokens", tc.most)
			if err != nil || got != tc.want {
				t.Errorf("take %d: got %d, %v, want %d", i, got, err, tc.want)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ls := sharedLimiters(t, farstore.New(time.Millisecond), "100 tokens/m burst 100", 2)
		if _, err := ls[0].TakeUpTo(t.Context(), "k", "tokens", 70); err != nil {
			t.Fatal(err)
		}
		if got, err := ls[1].TakeUpTo(t.Context(), "k", "tokens", 70); err != nil || got != 30 {
			t.Errorf("the other process got %d, %v, want 30", got, err)
		}
	})
}

func TestSharedPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := sharedLimiters(t, farstore.New(time.Millisecond), "100/s burst 100", 2)
		ls[0].Pause("k", time.Now().Add(10*time.Second))
		time.Sleep(time.Second)
		if d := ls[1].Try("k", nil); d.Allowed || d.RetryAfter < 8*time.Second || d.RetryAfter > 9*time.Second {
			t.Errorf("got %+v, want the other's pause of 9 s", d)
		}
		ls[0].Pause("k", time.Now().Add(time.Hour))
		time.Sleep(time.Second)
		ls[0].Pause("k", time.Now().Add(5*time.Second)) // shorter
		time.Sleep(time.Second)
		if d := ls[1].Try("k", nil); d.Allowed || d.RetryAfter < 3*time.Second || d.RetryAfter > 5*time.Second {
			t.Errorf("got %+v, want the shorter pause of 4 s", d)
		}
		ls[0].Pause("k", time.Now())
		time.Sleep(2 * time.Second)
		if d := ls[1].Try("k", nil); !d.Allowed {
			t.Errorf("got %+v after the pause was ended", d)
		}
		if s := ls[0].StoreState(); s != throttle.StoreUp {
			t.Errorf("state %v, want up", s)
		}
	})
}

func TestSharedNeedsMembers(t *testing.T) {
	if _, err := throttle.NewLimiter(throttle.LimiterConfig{Store: store.NewMemory()}); err == nil {
		t.Error("a Store without Fleet.Members was accepted")
	}
}

// After Close nothing is granted, whatever the state of the store was and
// whatever goes on without it.
func TestNothingIsGrantedAfterClose(t *testing.T) {
	for _, down := range []throttle.WhenDown{throttle.ShareRates, throttle.FailClosed, throttle.FailOpen} {
		for _, gone := range []error{nil, errors.New("connection refused"), throttle.ErrStoreBusy} {
			synctest.Test(t, func(t *testing.T) {
				s := farstore.New(time.Millisecond)
				s.Fail(gone, false)
				l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("100/s burst 100"), Store: s, Fleet: throttle.FleetConfig{Members: 1, WhenDown: down}})
				if err != nil {
					t.Fatal(err)
				}
				for range 5 {
					l.Take(t.Context(), "k", nil)
				}
				l.Close()
				var e *throttle.Error
				if _, err := l.Take(t.Context(), "k", nil); !errors.As(err, &e) || e.Reason != throttle.StoreDown || !strings.Contains(err.Error(), "Close") {
					t.Errorf("when down %d, %v: got %v, want a refusal that names Close", down, gone, err)
				}
			})
		}
	}
}

// What a Limiter's grant gives back, others may spend.
func TestSharedGrantsComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := sharedLimiters(t, store.NewMemory(), "10/h burst 10", 2)
		g, err := ls[0].Take(t.Context(), "k", throttle.Cost{requests: 10})
		if err != nil {
			t.Fatal(err)
		}
		g.Cancel()
		time.Sleep(time.Second)
		if _, err := ls[1].Take(police(t), "k", throttle.Cost{requests: 10}); err != nil {
			t.Error(err)
		}
	})
}

// ownLeft is what l's only key has left of its first rate, as far as this process spent it.
func ownLeft(l *throttle.Limiter) float64 { return l.Stats().Keys[0].Budgets[0].Left }

// What the store refuses goes back to this process's own budget.
func TestSharedRefusalGivesBack(t *testing.T) {
	for name, take := range map[string]func(l *throttle.Limiter, t *testing.T) error{
		"Take": func(l *throttle.Limiter, t *testing.T) error {
			_, err := l.Take(throttle.WithMaxWait(t.Context(), -1), "k", throttle.Cost{"tokens": 60})
			return err
		},
		"TakeUpTo": func(l *throttle.Limiter, t *testing.T) error {
			n, err := l.TakeUpTo(throttle.WithMaxWait(t.Context(), -1), "k", "tokens", 60)
			if n != 0 {
				t.Errorf("took %d", n)
			}
			return err
		},
		"Try": func(l *throttle.Limiter, t *testing.T) error {
			if d := l.Try("k", throttle.Cost{"tokens": 60}); d.Allowed || d.RetryAfter < 50*sec || d.RetryAfter > 61*sec {
				t.Errorf("%+v", d)
			}
			return &throttle.Error{}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			ls := sharedLimiters(t, farstore.New(time.Millisecond), "100 tokens/m burst 100", 2)
			if n, err := ls[0].TakeUpTo(t.Context(), "k", "tokens", 100); n != 100 || err != nil {
				t.Errorf("%s: took %d, %v", name, n, err)
			}
			if n, err := ls[0].TakeUpTo(throttle.WithMaxWait(t.Context(), -1), "k", "tokens", 100); n != 0 || err == nil {
				t.Errorf("%s: took %d more, %v", name, n, err)
			}
			if err := take(ls[1], t); err == nil {
				t.Errorf("%s: no error", name)
			}
			if left := ownLeft(ls[1]); left != 100 {
				t.Errorf("%s: of its own it has %v left, want all", name, left)
			}
		})
	}
}

// A part is what both have, and no more of this process's own budget is spent.
func TestSharedPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := sharedLimiters(t, farstore.New(time.Millisecond), "100 tokens/m burst 100, 3 in flight", 2)
		for i, want := range []int64{70, 30} {
			if n, err := ls[i].TakeUpTo(t.Context(), "k", "tokens", 70); n != want || err != nil {
				t.Errorf("took %d, %v, want %d", n, err, want)
			}
		}
		if left := ownLeft(ls[1]); left != 70 {
			t.Errorf("of its own it has %v left, want 70", left)
		}
		if n, err := ls[1].TakeUpTo(t.Context(), "k", "pages", 5); n != 5 || err != nil {
			t.Errorf("took %d, %v of what nothing limits", n, err)
		}
	})
}

// A Limiter's Take with a store obeys MaxWait, gets parts, and pauses for all.
func TestSharedLimiterParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := sharedLimiters(t, store.NewMemory(), "10/h burst 10", 2)
		for i, step := range []struct {
			most, want int64
		}{{4, 4}, {1, 1}, {7, 5}} {
			if n, err := ls[i%2].TakeUpTo(t.Context(), "k", "", step.most); err != nil || n != step.want {
				t.Errorf("step %d: %d, %v", i, n, err)
			}
		}
		start := time.Now()
		var e *throttle.Error
		if _, err := ls[1].Take(throttle.WithMaxWait(t.Context(), time.Minute), "k", nil); !errors.As(err, &e) || e.Reason != throttle.WaitTooLong || time.Since(start) > sec {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		ls[0].Pause("j", time.Now().Add(30*sec))
		time.Sleep(sec)
		if d := ls[1].Try("j", nil); d.Allowed || d.RetryAfter < 28*sec || d.RetryAfter > 30*sec {
			t.Errorf("a pause of another process: %+v", d)
		}
		ls[0].Pause("j", time.Now())
		time.Sleep(sec)
		if d := ls[1].Try("j", nil); !d.Allowed {
			t.Errorf("its end: %+v", d)
		}
	})
}

// Places in flight are the fleet's.
func TestPlacesInFlightAreTheFleets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		ls := sharedLimiters(t, s, "3 in flight", 2)
		var gs []throttle.Grant
		for i := range 3 {
			g, err := ls[i%2].Take(t.Context(), "k", nil)
			if err != nil {
				t.Fatal(err)
			}
			gs = append(gs, g)
		}
		for i, l := range ls {
			if d := l.Try("k", nil); d.Allowed {
				t.Errorf("limiter %d let a fourth pass", i)
			}
		}
		gs[0].Settle(nil)
		time.Sleep(time.Second)
		for range 3 {
			if d := ls[1].Try("k", nil); !d.Allowed { // holds none
				t.Error("the place did not come back")
			}
			time.Sleep(time.Second)
		}
		g, d := ls[1].TryTake("k", nil)
		if e := ls[0].Try("k", nil); !d.Allowed || e.Allowed {
			t.Errorf("allowed %v, then %v", d.Allowed, e.Allowed)
		}
		g.Cancel()
		gs[1].Cancel()
		gs[2].Settle(nil)
	})
}
