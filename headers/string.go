package headers

import "strings"

// String returns the signal in one line for a log: "throttled (quota), retry after 30s".
func (s Signal) String() string {
	var b strings.Builder
	if s.Throttled {
		b.WriteString("throttled (" + s.Kind.String() + ")")
	}
	if s.RetryAfter.Known {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString("retry after " + s.RetryAfter.Value.String())
	}
	return b.String()
}
