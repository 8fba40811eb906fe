package stated

import (
	"time"

	"github.com/weirhttp/weir/headers"
)

// Remaining is what an answer says is left.
func Remaining(l *headers.Limit) (float64, bool) {
	switch {
	case l.Remaining.Known:
		return l.Remaining.Value, true
	case l.Quota.Known && l.Used.Known:
		return max(0, l.Quota.Value-l.Used.Value), true
	}
	return 0, false
}

// Exhausted reports that a refusal was this quota's doing, as far as the
// answer tells.
func Exhausted(l *headers.Limit) bool {
	if left, ok := Remaining(l); ok {
		return left <= 0
	}
	return l.UsedRatio.Known && l.UsedRatio.Value >= 1
}

// Finer is a reset stated in whole seconds, or the Retry-After beside it on an
// answer that was no refusal, if that is the same meter.Instant told more finely
// (rate-limiter-flexible). A date and the server's clock may both be rounded,
// so the two can differ by 2 s, or by 1 s if the reset was cut.
func Finer(reset, after headers.Opt[time.Duration]) headers.Opt[time.Duration] {
	over := reset.Value - after.Value
	if !reset.Known || !after.Known || reset.Value%time.Second != 0 || after.Value%time.Second == 0 ||
		over <= -time.Second || over >= 2*time.Second {
		return reset
	}
	return after
}
