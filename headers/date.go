package headers

import (
	"strings"
	"time"
)

// parseTime reads every date and time of day seen in rate-limit headers: the
// three forms of RFC 9110 section 5.6.7, also with a one-digit day, without
// the weekday, or with the zone UTC or an offset; ISO 8601 with T or space,
// without seconds, with any fraction, in basic form; JavaScript's
// Date.toString, Unix date and Go's Time.String. What has no zone is UTC.
func parseTime(s string) (time.Time, bool) {
	s = trimBlanks(s)
	if len(s) < 8 || len(s) > 100 {
		return time.Time{}, false
	}
	var c civil
	ok := c.fixed(s)
	if ok {
		return c.time()
	}
	c = civil{}
	if isDigit(s[0]) && isDigit(s[1]) && isDigit(s[2]) && isDigit(s[3]) {
		ok = c.iso(s)
	} else {
		ok = c.words(s)
	}
	if !ok {
		return time.Time{}, false
	}
	return c.time()
}

// civil is a date and time of day as it is read piece by piece. The has
// fields keep a second number from being taken for the first.
type civil struct {
	year, month, day              int
	hour, min, sec, nsec, offset  int
	hasYear, hasDay, hasClock, pm bool
	hasZone, am                   bool
}

// fixedLen is the length of the form that fixed reads.
const fixedLen = len("Thu, 15 Jan 2026 12:00:00 GMT")

// fixed reads the one form that servers must send, by the places of its parts:
// "Thu, 15 Jan 2026 12:00:00 GMT".
func (c *civil) fixed(s string) bool {
	if len(s) != fixedLen || s[3:5] != ", " || s[7] != ' ' || s[11] != ' ' || s[16] != ' ' || s[19] != ':' || s[22] != ':' ||
		s[25:] != " GMT" || !isWeekday(s[:3]) {
		return false
	}
	for _, n := range [...]struct {
		to         *int
		start, end int
	}{{&c.day, 5, 7}, {&c.year, 12, 16}, {&c.hour, 17, 19}, {&c.min, 20, 22}, {&c.sec, 23, 25}} {
		for _, b := range []byte(s[n.start:n.end]) {
			if !isDigit(b) {
				return false
			}
			*n.to = *n.to*10 + int(b-'0')
		}
	}
	c.month = monthOf(s[8:11])
	return c.month > 0
}

// time checks the ranges, the month's length included.
func (c *civil) time() (time.Time, bool) {
	if c.pm && c.hour < 12 {
		c.hour += 12
	} else if c.am && c.hour == 12 {
		c.hour = 0
	}
	if c.month < 1 || c.month > 12 || c.day < 1 || c.hour > 23 || c.min > 59 || c.sec > 60 {
		return time.Time{}, false
	}
	t := time.Date(c.year, time.Month(c.month), c.day, c.hour, c.min, c.sec, c.nsec, time.UTC)
	if c.day > 28 && time.Date(c.year, time.Month(c.month), c.day, 0, 0, 0, 0, time.UTC).Day() != c.day {
		return time.Time{}, false // no such day in that month
	}
	return t.Add(-time.Duration(c.offset) * time.Second), true
}

// iso reads 2006-01-02, 2006-01-02T15:04[:05[.999]] and 20060102T150405, then
// a zone.
func (c *civil) iso(s string) bool {
	var ok bool
	c.year, _ = atoi(s[:4])
	rest := s[4:]
	if rest[0] == '-' && len(rest) >= 6 && rest[3] == '-' {
		c.month, ok = atoi(rest[1:3])
		d, ok2 := atoi(rest[4:6])
		if !ok || !ok2 {
			return false
		}
		c.day, rest = d, rest[6:]
	} else {
		var ok2 bool
		c.month, ok = atoi(rest[:2])
		c.day, ok2 = atoi(rest[2:4])
		if !ok || !ok2 || len(rest) < 5 || rest[4] != 'T' {
			return false // eight bare digits are a number, not a date
		}
		rest = rest[4:]
	}
	if rest == "" {
		return true
	}
	if rest[0] != 'T' && rest[0] != 't' && rest[0] != ' ' {
		return false
	}
	end := 1
	for end < len(rest) && (isDigit(rest[end]) || rest[end] == ':' || rest[end] == '.') {
		end++
	}
	return c.clock(rest[1:end]) && c.zone(rest[end:])
}

// clock reads 15:04, 15:04:05, 15:04:05.999 and 150405.
func (c *civil) clock(s string) bool {
	if c.hasClock {
		return false
	}
	c.hasClock = true
	if len(s) == 6 && strings.IndexByte(s, ':') < 0 {
		s = s[:2] + ":" + s[2:4] + ":" + s[4:]
	}
	h, rest, _ := strings.Cut(s, ":")
	m, sec, hasSec := strings.Cut(rest, ":")
	var ok1, ok2 bool
	c.hour, ok1 = atoi(h)
	c.min, ok2 = atoi(m)
	if !ok1 || !ok2 || len(h) > 2 || len(m) != 2 {
		return false
	}
	if !hasSec {
		return true
	}
	d, ok := parseDecimal(sec)
	if !ok || len(sec) < 2 || d.whole > 60 {
		return false
	}
	c.sec, c.nsec = int(d.whole), int(d.nanos)
	return true
}

// words reads the forms that name the month, in whatever order their parts
// stand: the parts tell themselves apart.
func (c *civil) words(s string) bool {
	if i := strings.IndexByte(s, '('); i >= 0 {
		s = s[:i] // JavaScript's name of the zone
	}
	for first := true; s != ""; first = false {
		var f string
		f, s = cutField(s)
		f = strings.TrimSuffix(f, ",")
		switch {
		case f == "":
		case isDigit(f[0]):
			if !c.number(f) {
				return false
			}
		case first && isWeekday(f):
		case c.month == 0 && monthOf(f) > 0:
			c.month = monthOf(f)
		case c.hasClock && strings.EqualFold(f, "PM"):
			c.pm = true
		case c.hasClock && strings.EqualFold(f, "AM"):
			c.am = true
		case c.hasClock:
			if !c.zoneWord(f) {
				return false
			}
		default:
			return false
		}
	}
	return c.month > 0 && c.hasDay && c.hasYear && c.hasClock
}

// number takes a part that begins with a digit: a time of day, a date joined
// by hyphens (RFC 850), a year or a day.
func (c *civil) number(f string) bool {
	if strings.IndexByte(f, ':') >= 0 {
		return c.clock(f)
	}
	if d, rest, ok := strings.Cut(f, "-"); ok {
		m, y, _ := strings.Cut(rest, "-")
		c.month = monthOf(m)
		return c.month > 0 && c.number(d) && isNumber(y) && c.number(y)
	}
	n, ok := atoi(f)
	switch {
	case !ok:
		return false
	case len(f) == 4 && !c.hasYear:
		c.year, c.hasYear = n, true
	case len(f) <= 2 && !c.hasDay:
		c.day, c.hasDay = n, true
	case len(f) == 2 && !c.hasYear: // RFC 850; the century as net/http has it
		c.year, c.hasYear = 2000+n, true
		if n >= 69 {
			c.year = 1900 + n
		}
	default:
		return false
	}
	return true
}

func isNumber(s string) bool { _, ok := atoi(s); return ok }

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// monthOf returns 1 to 12 for a month's name or its first three letters, else 0.
func monthOf(s string) int {
	const names = "janfebmaraprmayjunjulaugsepoctnovdec"
	if i := threeOf(s, names); i >= 0 && longForm(s, time.Month(i/3+1).String()) {
		return i/3 + 1
	}
	return 0
}

func isWeekday(s string) bool {
	const names = "sunmontuewedthufrisat"
	i := threeOf(s, names)
	return i >= 0 && longForm(s, time.Weekday(i/3).String())
}

// threeOf finds the first three letters of s among names, three letters each.
func threeOf(s, names string) int {
	if len(s) >= 3 {
		for i := 0; i < len(names); i += 3 {
			if lower(s[0]) == names[i] && lower(s[1]) == names[i+1] && lower(s[2]) == names[i+2] {
				return i
			}
		}
	}
	return -1
}

// longForm reports whether s is name or begins it.
func longForm(s, name string) bool {
	return len(s) == 3 || len(s) <= len(name) && strings.EqualFold(s, name[:len(s)])
}

// cutField returns the first of the parts that blanks separate, and the rest.
func cutField(s string) (field, rest string) {
	s = strings.TrimLeft(s, " \t")
	if i := strings.IndexAny(s, " \t"); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}
