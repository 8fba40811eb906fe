package throttle_test

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/store"
)

// A part that was taken can go back, be settled, and holds its place meanwhile.
func TestAPartThatWasTakenCanGoBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("10 rows/m burst 10, 2 in flight"), MaxWait: -1})
		if err != nil {
			t.Fatal(err)
		}
		some := func(key string, most, want int64) throttle.Grant {
			t.Helper()
			g, n, err := l.TakeSome(t.Context(), key, "rows", most)
			if n != want || (err == nil) != (want > 0) {
				t.Errorf("%s: %d of %d, %v; want %d", key, n, most, err, want)
			}
			return g
		}
		first := some("k", 7, 7)
		second := some("k", 7, 3)
		first.Cancel()
		first.Cancel()
		third := some("k", 5, 5) // its place and seven rows came back
		some("k", 2, 0)          // both places are held
		second.Settle(throttle.Cost{"rows": 1})
		some("k", 9, 4) // two that were left, and two that it gave back
		third.Settle(nil)
		some("k", 1, 0) // a place, but no rows
		if g, n, err := l.TakeSome(t.Context(), "k", "rows", 0); n != 0 || err != nil || !reflect.ValueOf(g).IsZero() {
			t.Errorf("of nothing: %d, %v", n, err)
		}
		some("free", 3, 3).Settle(throttle.Cost{"rows": 10})
		some("free", 3, 0)
	})
}

// What both this process and the Store have is taken, and goes back to both.
func TestSharedTakeSome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := store.NewMemory()
		var ls [2]*throttle.Limiter
		for i := range ls {
			l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget("10 rows/h burst 10, 1 in flight"), MaxWait: -1, Store: s, Fleet: throttle.FleetConfig{WhenDown: throttle.FailClosed}})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			ls[i] = l
		}
		first, err := ls[0].Take(t.Context(), "k", throttle.Cost{"rows": 4, "requests": 0})
		if err != nil {
			t.Fatal(err)
		}
		if _, n, err := ls[1].TakeSome(t.Context(), "k", "rows", 1); err == nil {
			t.Errorf("%d went while the other holds the place", n)
		}
		first.Settle(nil)
		time.Sleep(time.Second) // the store is told
		g, n, err := ls[1].TakeSome(t.Context(), "k", "rows", 10)
		if err != nil || n < 1 || n > 6 {
			t.Fatalf("%d, %v: the store had 6", n, err)
		}
		if _, n, err := ls[1].TakeSome(t.Context(), "k", "rows", 1); err == nil {
			t.Errorf("%d went while the place is held", n)
		}
		g.Cancel()
		time.Sleep(time.Second) // the store is told
		if _, err := ls[1].Take(t.Context(), "k", throttle.Cost{"rows": 6, "requests": 0}); err != nil {
			t.Error("what was taken did not come back: ", err)
		}
	})
}
