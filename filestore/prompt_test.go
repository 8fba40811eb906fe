package filestore

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// Of calls into a file system that hangs few are left behind; once they return,
// calls are made again.
func TestFewCallsAreLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var overdue, made atomic.Int64
		hung := make(chan struct{})
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		for range 3 * mostOverdue {
			_, err := within(ended, &overdue, func() (int, error) {
				made.Add(1)
				<-hung
				return 0, nil
			})
			if !errors.Is(err, context.Canceled) && !errors.Is(err, errOverdue) {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if n := made.Load(); n != mostOverdue {
			t.Errorf("%d calls were made, want %d", n, mostOverdue)
		}
		close(hung)
		synctest.Wait()
		if n, err := within(t.Context(), &overdue, func() (int, error) { return 7, nil }); n != 7 || err != nil || overdue.Load() != 0 {
			t.Errorf("got %d, %v with %d left behind, want what the call returned", n, err, overdue.Load())
		}
	})
}

// answeredLate is a context that ends when the call under it has returned.
type answeredLate struct{ context.Context }

func (answeredLate) Done() <-chan struct{} {
	synctest.Wait()
	over := make(chan struct{})
	close(over)
	return over
}

func (answeredLate) Err() error { return context.DeadlineExceeded }

// An answer that is there when its deadline comes is not left behind.
func TestAnswersAtTheDeadlineCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var overdue atomic.Int64
		for range 64 {
			if n, err := within(answeredLate{t.Context()}, &overdue, func() (int, error) { return 7, nil }); n != 7 || err != nil {
				t.Fatalf("got %d, %v, want what the call returned", n, err)
			}
		}
		if n := overdue.Load(); n != 0 {
			t.Errorf("%d calls were left behind", n)
		}
	})
}
