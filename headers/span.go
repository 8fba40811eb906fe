package headers

import (
	"strings"
	"time"
)

// parseSpan reads a duration that says its own units: Go's "1h16m0.667s" and
// "20ms", the same with words and spaces ("5 minutes"), ISO 8601's "PT1M30S",
// and "00:01:05.5" or "1.00:01:05" (days first), as .NET writes it.
func parseSpan(s string) (time.Duration, bool) {
	if len(s) > 64 || len(s) < 2 {
		return 0, false
	}
	if s[0] == 'P' {
		return isoSpan(s[1:])
	}
	if !isDigit(s[0]) {
		return 0, false
	}
	if strings.IndexByte(s, ':') >= 0 {
		return clockSpan(s)
	}
	return unitSpan(s, unitOf)
}

// shortSpan is parseSpan of what servers mostly write, "6m12s" and "8040ms": short
// whole numbers, each with a unit of the clock. It reads nothing else.
func shortSpan(s string) (total time.Duration, ok bool) {
	if len(s) > 16 {
		return 0, false // so many of the largest numbers fit into a Duration
	}
	for i := 0; i < len(s); {
		n, from := time.Duration(0), i
		for ; i < len(s) && s[i]-'0' <= 9; i++ {
			n = n*10 + time.Duration(s[i]-'0')
		}
		if i == from || i > from+5 || i == len(s) {
			return 0, false
		}
		unit := time.Duration(0)
		switch c := s[i]; {
		case c == 's':
			unit = time.Second
		case c == 'h':
			unit = time.Hour
		case c == 'm' && i+1 < len(s) && s[i+1] == 's':
			unit = time.Millisecond
			i++
		case c == 'm':
			unit = time.Minute
		default:
			return 0, false
		}
		i++ // if the word goes on, no number follows
		total += n * unit
	}
	return total, len(s) > 0
}

// unitSpan reads number and unit in turn until the end.
func unitSpan(s string, unitOf func(string) time.Duration) (total time.Duration, ok bool) {
	for s != "" {
		n := 0
		for n < len(s) && (isDigit(s[n]) || s[n] == '.') {
			n++
		}
		d, ok := parseDecimal(s[:n])
		if !ok {
			return 0, false
		}
		s = strings.TrimLeft(s[n:], " ")
		n = 0
		for n < len(s) && !isDigit(s[n]) && s[n] != ' ' {
			n++
		}
		unit := unitOf(s[:n])
		if unit == 0 {
			return 0, false
		}
		total = addSaturated(total, d.times(unit))
		s = strings.TrimLeft(s[n:], " ")
	}
	return total, true
}

// isoSpan reads what follows the P of ISO 8601 section 4.4. Months and years
// have no fixed length and are not read.
func isoSpan(s string) (time.Duration, bool) {
	date, clock, hasClock := strings.Cut(s, "T")
	if date == "" && clock == "" || hasClock && clock == "" {
		return 0, false
	}
	days, ok := unitSpan(date, func(u string) time.Duration {
		switch u {
		case "D":
			return day
		case "W":
			return 7 * day
		}
		return 0
	})
	if !ok {
		return 0, false
	}
	rest, ok := unitSpan(clock, func(u string) time.Duration {
		switch u {
		case "H":
			return time.Hour
		case "M":
			return time.Minute
		case "S":
			return time.Second
		}
		return 0
	})
	return addSaturated(days, rest), ok
}

// clockSpan reads [d.]hh:mm:ss[.f].
func clockSpan(s string) (time.Duration, bool) {
	h, rest, _ := strings.Cut(s, ":")
	m, sec, ok := strings.Cut(rest, ":")
	if !ok || len(m) != 2 || len(sec) < 2 {
		return 0, false
	}
	days := 0
	if d, hours, ok := strings.Cut(h, "."); ok {
		if days, ok = atoi(d); !ok {
			return 0, false
		}
		h = hours
	}
	hours, ok1 := atoi(h)
	mins, ok2 := atoi(m)
	secs, ok3 := parseDecimal(sec)
	if !ok1 || !ok2 || !ok3 || mins > 59 || secs.whole > 59 {
		return 0, false
	}
	total := decimal{whole: uint64(days)}.times(day)
	total = addSaturated(total, decimal{whole: uint64(hours)}.times(time.Hour))
	total = addSaturated(total, decimal{whole: uint64(mins)}.times(time.Minute))
	return addSaturated(total, secs.times(time.Second)), true
}

const day = 24 * time.Hour

// unitOf returns the length of a unit of time by its name, 0 if it is none.
func unitOf(u string) time.Duration {
	switch u {
	case "ns":
		return time.Nanosecond
	case "us", "µs", "μs":
		return time.Microsecond
	case "ms", "msec", "millis", "millisecond", "milliseconds":
		return time.Millisecond
	case "s", "sec", "secs", "second", "seconds":
		return time.Second
	case "m", "min", "mins", "minute", "minutes":
		return time.Minute
	case "h", "hr", "hrs", "hour", "hours":
		return time.Hour
	case "d", "day", "days":
		return day
	case "w", "week", "weeks":
		return 7 * day
	}
	return 0
}

func addSaturated(a, b time.Duration) time.Duration {
	if a > maxDuration-b {
		return maxDuration
	}
	return a + b
}
