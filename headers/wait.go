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
	for _, v := range values[:min(len(values), maxLines)] {
		if keep(v) {
			continue
		}
		eachPiece(v, keep)
	}
	return longest
}

// eachPiece calls keep with the parts of a list of waits or resets until their
// end, whatever keep returns. A weekday stays with its date; a date after a
// word that is no weekday is not one.
func eachPiece(s string, keep func(string) bool) {
	for more, n := true, 0; more && n < maxItems; n++ {
		whole := s
		var piece string
		piece, s, more = strings.Cut(s, ",")
		if !more || !isLetters(trim(piece)) {
			keep(piece)
			continue
		}
		var next string
		next, s, more = strings.Cut(s, ",")
		if !keep(whole[:len(piece)+1+len(next)]) && strings.IndexByte(next, ':') < 0 {
			keep(next)
		}
	}
}

func isLetters(s string) bool {
	for i := range len(s) {
		if c := lower(s[i]); c < 'a' || c > 'z' {
			return false
		}
	}
	return s != ""
}

// trim removes white space and one pair of quotes.
func trim(s string) string {
	s = trimBlanks(s)
	if len(s) >= 2 && (s[0] == '"' || s[0] == '\'') && s[len(s)-1] == s[0] {
		s = trimBlanks(s[1 : len(s)-1])
	}
	return s
}

func trimBlanks(s string) string {
	for s != "" && isBlank(s[0]) {
		s = s[1:]
	}
	for s != "" && isBlank(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// waits are the waits a response asks for: the longest that is said in
// seconds, and the longest that is said finer, in ms or as a duration.
type waits struct{ coarse, fine Opt[time.Duration] }

func (w *waits) add(d Opt[time.Duration], fine bool) {
	if !d.Known {
		return
	}
	o := &w.coarse
	if fine {
		o = &w.fine
	}
	if !o.Known || d.Value > o.Value {
		*o = d
	}
}

// wait returns the one to obey. A finer one is the same wait with its
// fraction if it differs by less than a second; else one of them is wrong, and
// the longer does no harm.
func (w *waits) wait() Opt[time.Duration] {
	switch {
	case !w.fine.Known:
		return w.coarse
	case !w.coarse.Known:
		return w.fine
	}
	diff := w.coarse.Value - w.fine.Value
	if diff > -time.Second && diff < time.Second || w.fine.Value > w.coarse.Value {
		return w.fine
	}
	return w.coarse
}
