package throttle

import "github.com/weirhttp/weir/throttle/internal/meter"

// What budgets count with.
type instant = meter.Instant

const (
	never   = meter.Never
	unknown = meter.Unknown
)
