package throttle

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// One of every eight grants is a lower class's: it is not refused for a wait
// behind all of a higher one.
func TestLowerClassesAreNotRefusedTheirShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "10/s bucket 1")
		burst(t, l, 1)
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if _, err := l.Take(t.Context(), "k", nil); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		for i := range 3 {
			wg.Go(func() {
				want := time.Duration(i+1) * share * time.Second / 10
				ctx, cancel := context.WithTimeout(WithPriority(t.Context(), -1-i), want+time.Millisecond)
				defer cancel()
				if _, err := l.Take(ctx, "k", nil); err != nil || time.Since(start) != want {
					t.Errorf("the lower class got %v after %v, want its turn after %v", err, time.Since(start), want)
				}
			})
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(WithPriority(t.Context(), -1), 2*time.Second)
		defer cancel()
		if _, err := l.Take(ctx, "k", nil); err == nil || time.Since(start) > 0 {
			t.Errorf("one too many got %v after %v, want a refusal at once", err, time.Since(start))
		}
		wg.Wait()
	})
}
