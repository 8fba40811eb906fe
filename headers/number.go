package headers

import (
	"math"
	"strconv"
	"time"
)

const maxDuration = time.Duration(math.MaxInt64)

// decimal is a number as it stands in a header: a whole part that saturates
// and the fraction in billionths, further digits dropped.
type decimal struct {
	whole uint64
	nanos int64
}

// parseDecimal reads digits with an optional fraction, "7" or "7.66", and with
// groups "1,199.46": a comma is a group mark only when a point follows, for
// without one it separates the items of a list. No sign, exponent or hex.
func parseDecimal(s string) (decimal, bool) {
	var d decimal
	if s == "" || s[0] < '0' || s[0] > '9' {
		return d, false
	}
	if n, ok := plainDigits(s); ok {
		return decimal{whole: uint64(n)}, true
	}
	i, groups := 0, false
	for ; i < len(s) && s[i] != '.'; i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			d.whole = mulAdd(d.whole, 10, uint64(c-'0'))
		case c == ',' && groupAt(s, i):
			groups = true
		default:
			return decimal{}, false
		}
	}
	if i == len(s) {
		return d, !groups
	}
	i++
	if i == len(s) {
		return decimal{}, false
	}
	for scale := int64(1e8); i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return decimal{}, false
		}
		d.nanos += int64(s[i]-'0') * scale
		scale /= 10
	}
	return d, true
}

// plainDigits reads up to 18 digits and nothing else, as nearly all numbers are; of all others it
// reports false.
func plainDigits(s string) (n int64, ok bool) {
	for i := range len(s) {
		c := s[i] - '0' // far more than 9 if it is no digit
		if c > 9 {
			return 0, false
		}
		n = n*10 + int64(c)
	}
	return n, len(s) > 0 && len(s) <= 18
}

// groupAt reports whether the comma at s[i] is followed by three digits and
// then by what may follow a group.
func groupAt(s string, i int) bool {
	if i+4 >= len(s) {
		return false
	}
	for _, c := range []byte(s[i+1 : i+4]) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s[i+4] == ',' || s[i+4] == '.'
}

// mulAdd is a*b+c, or the largest uint64.
func mulAdd(a, b, c uint64) uint64 {
	if a > (math.MaxUint64-c)/b {
		return math.MaxUint64
	}
	return a*b + c
}

// float returns the number, which is always finite.
func (d decimal) float() float64 {
	if d.nanos == 0 { // as mostly, which saves a division
		return float64(d.whole)
	}
	return float64(d.whole) + float64(d.nanos)/1e9
}

// times returns d of the unit as a duration, saturated.
func (d decimal) times(unit time.Duration) time.Duration {
	if d.whole > uint64(maxDuration/unit) {
		return maxDuration
	}
	whole := time.Duration(d.whole) * unit
	// Below a second the product fits: nanos < 1e9. Above, divide first.
	var frac time.Duration
	if unit <= time.Second {
		frac = time.Duration(d.nanos) * unit / 1e9
	} else {
		frac = time.Duration(d.nanos) * (unit / time.Second)
	}
	if whole > maxDuration-frac {
		return maxDuration
	}
	return whole + frac
}

// y2k is where dates begin, and where the clock of a testing/synctest bubble
// does.
const y2k = 946684800

// instant returns the point in time that d names if read as a Unix time in s,
// ms, µs or ns. Those ranges do not meet for any date from 2000 to 5138, so
// the size alone tells them apart. ok is false for dates before.
func (d decimal) instant() (t time.Time, ok bool) {
	switch n := d.whole; {
	case n < y2k:
		return t, false
	case n < 1e11:
		return time.Unix(int64(n), d.nanos), true
	case n < 1e14:
		return time.Unix(int64(n/1e3), int64(n%1e3)*1e6+d.nanos/1e3), true
	case n < 1e17:
		return time.Unix(int64(n/1e6), int64(n%1e6)*1e3+d.nanos/1e6), true
	default:
		n = min(n, math.MaxInt64)
		return time.Unix(int64(n/1e9), int64(n%1e9)), true
	}
}

// until returns t as a wait from now: never negative, saturated.
func until(t, now time.Time) time.Duration {
	return max(t.Sub(now), 0)
}

// atoi reads a short run of digits; ok is false for anything else.
func atoi(s string) (int, bool) {
	if len(s) == 0 || len(s) > 9 {
		return 0, false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}
