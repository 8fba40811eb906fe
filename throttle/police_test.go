package throttle

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestPolicingKnowsRanks: who may not wait still goes before lower classes that
// do, is behind its own, and hears how long it would have had to wait.
func TestPolicingKnowsRanks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "1/s bucket 10")
		burst(t, l, 7)
		low := make(chan error, 1)
		go func() {
			_, err := l.Take(WithPriority(t.Context(), -1), "k", Cost{requests: 8})
			low <- err
		}()
		synctest.Wait() // it waits for 8 where there are 3
		if _, err := l.Take(police(t), "k", nil); err != nil {
			t.Errorf("a higher class that may not wait: %v", err)
		}
		if d := l.Try("k", nil); !d.Allowed || d.Remaining != 1 {
			t.Errorf("a higher class that tries: %+v, want one of 2 granted", d)
		}
		var e *Error
		if _, err := l.Take(WithPriority(police(t), -1), "k", nil); !errors.As(err, &e) || e.RetryAfter <= 0 {
			t.Errorf("one of the same class: %v, want a refusal with its wait", err)
		}
		if d := l.Try("k", Cost{requests: 2}); d.Allowed || d.RetryAfter != time.Second {
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
			_, err := l.Take(WithPriority(t.Context(), -1), "k", Cost{requests: 2})
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
