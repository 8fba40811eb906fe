package headers

import (
	"strconv"
	"strings"
)

// String returns the signal in one line that a person can read in a log:
//
//	throttled (quota), retry after 30s; core: 0 of 5000 requests left, resets in 20m0s (boundary)
//
// It returns "nothing said" for the zero Signal. Texts of the server stand in
// it as they are in the Limits, without control characters.
func (s Signal) String() string {
	var b strings.Builder
	part := func(text string) {
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(text)
	}
	if s.Throttled {
		part("throttled (" + s.Kind.String() + ")")
	}
	if s.RetryAfter.Known {
		part("retry after " + s.RetryAfter.Value.String())
	}
	if s.ShouldRetry.Known {
		if s.ShouldRetry.Value {
			part("asks to retry")
		} else {
			part("asks not to retry")
		}
	}
	for _, l := range s.Limits {
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		b.WriteString(l.String())
	}
	if b.Len() == 0 {
		return "nothing said"
	}
	return b.String()
}

// String returns the limit for a log: "core: 0 of 5000 requests left, resets in
// 20m0s". It leaves out the Partition, which may identify a client.
func (l Limit) String() string {
	var b strings.Builder
	if l.Name != "" {
		b.WriteString(l.Name + ": ")
	}
	b.WriteString(l.amount())
	if l.Window.Known {
		b.WriteString(" per " + l.Window.Value.String())
	}
	if l.UsedRatio.Known {
		b.WriteString(", " + number(100*l.UsedRatio.Value) + "% used")
	}
	if l.Refill.Known {
		b.WriteString(", refills " + number(l.Refill.Value) + "/s")
	}
	if l.Cost.Known {
		b.WriteString(", needs " + number(l.Cost.Value))
	}
	if l.Reset.Known {
		b.WriteString(", resets in " + l.Reset.Value.String())
		if l.ResetMeans != Unknown {
			b.WriteString(" (" + l.ResetMeans.String() + ")")
		}
	}
	if l.Scope != "" && l.Scope != l.Name {
		b.WriteString(", scope " + l.Scope)
	}
	return b.String()
}

// amount returns the numbers of units in words.
func (l *Limit) amount() string {
	unit := l.Unit
	if unit == "" {
		unit = "units"
	}
	switch {
	case l.Remaining.Known && l.Quota.Known:
		return number(l.Remaining.Value) + " of " + number(l.Quota.Value) + " " + unit + " left"
	case l.Remaining.Known:
		return number(l.Remaining.Value) + " " + unit + " left"
	case l.Quota.Known:
		return "at most " + number(l.Quota.Value) + " " + unit
	case l.Used.Known:
		return number(l.Used.Value) + " " + unit + " used"
	}
	return unit
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 10, 64) }
