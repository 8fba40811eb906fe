package testnet

import (
	"context"
	"time"
)

// Wait waits for d or until ctx ends, and says which: nil or ctx's error.
//
// Tests that may wait for no time at all use it instead of a select with
// time.After. In a synctest bubble a timer that is due when it is made runs
// where it is made; two goroutines that do so at once share what the race
// detector keeps of the bubble's timers, and crash it (golang/go#78156).
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
