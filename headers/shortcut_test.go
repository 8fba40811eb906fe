package headers

import (
	"testing"
	"time"
)

// These tests are in the package because a short cut that is never taken costs time and
// changes no Signal.

// The short cut for the form that servers must send takes no more than the long
// way does, and says the same.
func TestFixedDatesAreShortCuts(t *testing.T) {
	const good = "Thu, 15 Jan 2026 12:00:30 GMT"
	for i := range len(good) {
		for _, c := range " :,-x09GTJ" {
			text := good[:i] + string(c) + good[i+1:]
			var short, long civil
			if !short.fixed(text) {
				continue
			}
			a, ok := short.time()
			var b time.Time
			ok2 := long.words(text)
			if ok2 {
				b, ok2 = long.time()
			}
			if ok != ok2 || !a.Equal(b) {
				t.Errorf("%q: %v, %t by the short cut, %v, %t otherwise", text, a, ok, b, ok2)
			}
		}
	}
	var c civil
	if !c.fixed(good) || c.fixed(good+" ") || c.fixed("") {
		t.Error("what has a short cut")
	}
}

// TestPlainNames holds that the short cut for the commonest names says what the
// grammar says.
func TestPlainNames(t *testing.T) {
	n := 0
	for _, stem := range []string{"x-ratelimit-", "ratelimit-", "x-rate-limit-"} {
		for _, field := range []string{"limit", "remaining", "reset", "used", "resource"} {
			short, ok := plainName([]byte(stem + field))
			if !ok {
				t.Errorf("%s: no short cut", stem+field)
			}
			// With a stop that the grammar drops, the short cut is not taken.
			var r reader
			long := r.read(stem + field + "-")
			if short != long {
				t.Errorf("%s: %+v, by the grammar %+v", stem+field, short, long)
			}
			n++
		}
	}
	if n != 15 {
		t.Fatal(n)
	}
}

// The short cut for plain digits says what the long way does, and is taken for up to 18 of them.
func TestPlainDigitsAreShortCuts(t *testing.T) {
	taken := 0
	for _, text := range []string{
		"", "0", "7", "007", "99000", "1768480000", "999999999999999999", "000000000000000007", "1000000000000000000", "9223372036854775808",
		"18446744073709551616", "99999999999999999999999999999999999999999", "-7", "+7", "7 ", " 7", "7.5", "1,199", "7x", "x7", "/", ":", "７",
	} {
		n, ok := plainDigits(text)
		if !ok {
			continue
		}
		taken++
		if d, ok := parseDecimal(text); !ok || d.float() != float64(n) || len(text) > 18 {
			t.Errorf("%q is %d by the short cut, %v, %t otherwise", text, n, d, ok)
		}
	}
	if taken != 7 {
		t.Errorf("%d have a short cut", taken)
	}
}

// What a structured field counts and when it resets is read as far as it is an integer, and a reset
// as far as it is no instant.
func TestIntegersOfFields(t *testing.T) {
	for _, tt := range []struct {
		text         string
		count, reset bool
	}{
		{"0", true, true}, {"31622400", true, true}, {"31622401", true, false}, {"1768480000", true, false}, {"999999999999999999", true, false},
		{"9999999999999999999", true, false}, {"99999999999999999999", true, false}, {"000000000000000000001", false, false}, {"", false, false},
	} {
		var l Limit
		if ok := (&figure{role: roleRemaining}).readInteger(&l, tt.text); ok != tt.count {
			t.Errorf("%q is a count: %t", tt.text, ok)
		} else if d, _ := parseDecimal(tt.text); ok && l.Remaining.Value != d.float() {
			t.Errorf("%q counts %v", tt.text, l.Remaining.Value)
		}
		if ok := (&figure{role: roleReset}).readInteger(&l, tt.text); ok != tt.reset {
			t.Errorf("%q is a reset: %t", tt.text, ok)
		} else if d, _ := parseDecimal(tt.text); ok && l.Reset.Value != d.times(time.Second) {
			t.Errorf("%q resets after %v", tt.text, l.Reset.Value)
		}
	}
}
