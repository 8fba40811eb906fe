package throttle_test

import (
	"context"
	"fmt"
	"github.com/weirhttp/weir/throttle"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestOnWaitTellsBeforeAndAfterAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type mark struct{}
		var l *throttle.Limiter
		var got []string
		l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("1/s"), OnWait: func(w throttle.Wait) {
			l.Try("other", nil) // a hook may call back
			got = append(got, fmt.Sprintf("%s %s: %s, %d ahead, expect %v, over %v after %v, granted %v, %v",
				w.Key, w.Unit, w.Why, w.Ahead, w.Expect, w.Over, w.Waited, w.Granted, w.Ctx.Value(mark{})))
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.WithValue(t.Context(), mark{}, "mine")
		l.Take(ctx, "k", nil)
		l.Take(ctx, "k", nil)
		want := []string{
			"k requests: 1/s is spent, 0 ahead, expect 1s, over false after 0s, granted false, mine",
			"k requests: 1/s is spent, 0 ahead, expect 1s, over true after 1s, granted true, mine",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestPanickingHookLeavesNothing behind: no waiter, no place.
func TestPanickingHookLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), throttle.Config{Default: throttle.MustParseBudget("1/s"), OnWait: func(throttle.Wait) { panic("hook") }})
		mustGet(t, tr, "http://a/")
		func() {
			defer func() { recover() }()
			get(t, t.Context(), tr, "http://a/")
		}()
		if s := tr.Stats().Hosts[0]; s.Queue != 0 || s.InFlight != 0 || waiting(t, tr) != 0 {
			t.Errorf("left behind: %+v", s)
		}
		time.Sleep(time.Second)
		mustGet(t, tr, "http://a/")
	})
}

// A request whose wait ended badly counts once, also if the hook panics that is
// told so.
func TestPanickingHookCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), throttle.Config{Default: throttle.MustParseBudget("1/m"), OnWait: func(w throttle.Wait) {
			if w.Over {
				panic("hook")
			}
		}})
		mustGet(t, tr, "http://a/")
		ctx, cancel := context.WithCancel(t.Context())
		for _, end := range []func(){cancel, func() { tr.Pause("a", time.Now().Add(time.Hour)) }} {
			time.AfterFunc(time.Second, end)
			func() {
				defer func() { recover() }()
				get(t, ctx, tr, "http://a/")
			}()
			ctx = t.Context()
		}
		if c := tr.Stats().Hosts[0].Counts; c.Waited != 2 || c.Cancelled != 1 || c.Refused != 1 {
			t.Errorf("%d waited, %d were cancelled, %d refused, want 2, 1 and 1", c.Waited, c.Cancelled, c.Refused)
		}
	})
}
