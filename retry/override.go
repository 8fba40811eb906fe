package retry

import (
	"context"
	"time"
)

// Override has the settings of one request that differ from its Transport's. Zero
// fields change nothing.
type Override struct {
	MaxAttempts    int           // as Config.MaxAttempts; negative counts as 1
	AttemptTimeout time.Duration // as Config.AttemptTimeout; negative: none
	StallTimeout   time.Duration // as Config.StallTimeout; negative: none
}

type overrideKey struct{}

// With returns a context whose requests are sent with o. It replaces what an
// earlier With said.
func With(ctx context.Context, o Override) context.Context {
	return context.WithValue(ctx, overrideKey{}, &o)
}

func overrideOf(ctx context.Context) *Override {
	o, _ := ctx.Value(overrideKey{}).(*Override)
	return o
}
