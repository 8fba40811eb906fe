package filestore

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
)

// mostOverdue is how many calls may be left behind in a file system that hangs:
// enough for one hiccup of a busy process, few enough goroutines to lose. As long
// as there are so many, no more are made.
const mostOverdue = 16

// grace is how much longer than its context a call may take: one that waits for
// a lock looks at its context every millisecond, and says that it was the lock.
const grace = 10 * time.Millisecond

var errOverdue = errors.New("filestore: too many earlier calls are still blocked in the file system")

// within returns what call returns, or what ctx ended with: a call into a file
// system cannot be interrupted. One that takes longer is left behind and counted
// in overdue; what it charges is lost.
func within[T any](ctx context.Context, overdue *atomic.Int64, call func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	if overdue.Load() >= mostOverdue {
		return result{}.value, errOverdue
	}
	done := make(chan result, 1)
	var left atomic.Bool
	go func() {
		v, err := call()
		done <- result{v, err}
		if left.Swap(true) {
			overdue.Add(-1)
		}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
	}
	over := time.NewTimer(grace)
	defer over.Stop()
	select {
	case r := <-done: // at the last moment: what it charged is not lost
		return r.value, r.err
	case <-over.C:
	}
	if !left.Swap(true) {
		overdue.Add(1)
	}
	return result{}.value, ctx.Err()
}
