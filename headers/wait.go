package headers

import (
	"strings"
	"time"
)

// parseWait reads the value of a Retry-After in any form seen: seconds with an
// optional fraction, a date, a Unix time, a duration ("1m30s"), hh:mm:ss. unit
// is what a bare number counts. The result is at least 0 and saturates; what
// has a sign or is no number, date or duration at all is not a wait.
func parseWait(s string, unit time.Duration, now time.Time) (time.Duration, bool) {
	s = trim(s)
	if s == "" {
		return 0, false
	}
	if d, ok := parseDecimal(s); ok {
		if d.whole < 1e14 {
			if t, ok := d.instant(); ok && (unit == time.Second || d.whole >= 1e11) {
				return until(t, now), true
			}
		}
		return d.times(unit), true
	}
	if d, ok := parseSpan(s); ok {
		return d, true
	}
	if t, ok := parseTime(s); ok {
		return until(t, now), true
	}
	return 0, false
}

// longestWait reads values that are several lines, or were joined by commas on
// the way, and returns the longest: too long a wait costs time, too short a
// one another refusal. The whole is tried first because dates hold a comma.
func longestWait(values []string, unit time.Duration, now time.Time) (longest Opt[time.Duration]) {
	keep := func(s string) bool {
		d, ok := parseWait(s, unit, now)
		if ok && (!longest.Known || d > longest.Value) {
			longest = some(d)
		}
		return ok
	}
	for i, v := range values {
		if i == maxLines {
			break
		}
		if keep(v) {
			continue
		}
		for range maxItems {
			piece, rest, more := strings.Cut(v, ",")
			if !more && piece == v && longest.Known && rest == "" {
				keep(piece)
				break
			}
			keep(piece)
			if !more {
				break
			}
			v = rest
		}
	}
	return longest
}

// trim removes white space and one pair of quotes.
func trim(s string) string {
	s = strings.Trim(s, " \t\r\n")
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		s = strings.Trim(s[1:len(s)-1], " \t")
	}
	return s
}
