// Package words writes times, figures and names of headers as people read them, in errors, hooks
// and statistics.
//
// # Promises
//
// A wait is never shown as a shorter one.
//
// # Invariants
//
// There is no state here, and no clock.
package words

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Clock shows an instant as a time of day, with the date if it is not near.
// zero is what our zero time is on the wall.
func Clock(now, zero, t time.Time) string {
	wall := zero.Add(t.Sub(time.Time{}))
	if t.Sub(now) > 12*time.Hour {
		return wall.Format("2006-01-02 15:04:05")
	}
	return wall.Format("15:04:05")
}

// Field is a header's name as people write it.
func Field(s string) string {
	if s == "body" {
		return "the body"
	}
	return strings.Replace(http.CanonicalHeaderKey(s), "Ratelimit", "RateLimit", 1)
}

// Amount shows a number without needless digits.
func Amount(x float64) string {
	if x < 1e15 && (x >= 100 || x == math.Trunc(x)) {
		return strconv.FormatFloat(math.Round(x), 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// Round shortens a wait for people, never down to a shorter wait.
func Round(d time.Duration) time.Duration {
	unit := time.Millisecond
	switch {
	case d >= time.Minute:
		unit = time.Second
	case d < time.Millisecond:
		return d
	}
	if r := d.Truncate(unit); r == d || r > math.MaxInt64-unit {
		return r
	} else {
		return r + unit
	}
}
