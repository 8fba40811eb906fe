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
