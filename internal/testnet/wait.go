package testnet

import (
	"context"
	"runtime"
	"strings"
	"time"
)

// Wait waits for d and returns nil, or until ctx ends and returns ctx's error.
//
// Tests use it instead of a select with time.After if d may be zero or less. In a synctest
// bubble a timer that is due when it is made runs at once, in the goroutine that makes it.
// If two goroutines do so at the same time, the race detector crashes, because both use
// what it keeps for the timers of the bubble (golang/go#78156).
func Wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Goroutines is how many goroutines the caller's synctest bubble has. runtime.NumGoroutine counts
// those of the whole process, and the runtime starts some at times.
func Goroutines() int {
	buf := make([]byte, 1<<20)
	all := string(buf[:runtime.Stack(buf, true)])
	head, _, _ := strings.Cut(all, "\n")
	return strings.Count(all, head[strings.LastIndex(head, ", synctest bubble "):])
}
