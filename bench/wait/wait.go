// Package wait is how everything in bench passes time.
package wait

import (
	"context"
	"time"
)

// For waits for d or until ctx ends, and returns nil or ctx's error. Where there is
// nothing to wait for it makes no timer: in a synctest bubble one that is due when it
// is made crashes the race detector (golang/go#78156).
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
