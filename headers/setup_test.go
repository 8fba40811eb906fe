package headers_test

import (
	"math"
	"time"

	"github.com/weirhttp/weir/headers"
)

// What is read of one response is bounded.
const (
	maxLines   = 64  // of one header
	maxItems   = 64  // of one list
	maxLimits  = 64  // of one Signal
	maxName    = 256 // bytes of a name, and of a text that is kept
	maxLayouts = 4   // that a Memory knows
)

const (
	day         = 24 * time.Hour
	maxDuration = time.Duration(math.MaxInt64)
)

// some returns a known Opt.
func some[T any](v T) headers.Opt[T] { return headers.Opt[T]{Value: v, Known: true} }
