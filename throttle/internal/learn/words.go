package learn

import (
	"fmt"
	"strings"
	"time"
)

// String is the limit in words, as "5/s, bucket of 10".
func (c *candidate) String() string {
	var s string
	per := span(c.per)
	switch c.family {
	case bucket:
		s = fmt.Sprintf("%.4g/s, bucket of %g", c.rate(c.size), c.size)
	case slidingLog:
		s = fmt.Sprintf("%g per %s, sliding", c.size, per)
	case windowFirst:
		s = fmt.Sprintf("%g per %s from the first request", c.size, per)
	case windowClock:
		s = fmt.Sprintf("%g per %s by the clock", c.size, per)
	case counter:
		s = fmt.Sprintf("%g per %s, counted in two windows", c.size, per)
	case atOnce:
		s = fmt.Sprintf("%g at a time", c.size)
	}
	if c.refused {
		s += ", refused requests count"
	}
	if c.ban > 0 {
		s += ", a refusal shuts out for " + span(c.ban)
	}
	if c.again {
		s += ", and each one meanwhile anew"
	}
	return s
}

func span(d Instant) string {
	s := time.Duration(d).Round(time.Millisecond).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
