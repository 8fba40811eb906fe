package retry_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/weirhttp/weir/retry"
)

// begun is a Backoff that must be begun before it is asked.
type begun struct{ resets, asked int }

func (c *begun) Reset() { c.resets++ }

func (c *begun) NextBackOff() time.Duration {
	c.asked++
	return 0
}

// Each request that is retried begins its Backoff anew, once.
func TestBackoffIsBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made []*begun
		rt := newTransport(t, play(step{status: 500}), retry.Config{MaxAttempts: 3, Backoff: func() backoff.BackOff {
			made = append(made, new(begun))
			return made[len(made)-1]
		}})
		for range 2 {
			get(t, rt, "GET")
		}
		if len(made) != 2 || *made[0] != (begun{1, 2}) || *made[1] != (begun{1, 2}) {
			t.Errorf("%d: %+v, %+v", len(made), made[0], made[len(made)-1])
		}
	})
}
