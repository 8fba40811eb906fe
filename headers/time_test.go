package headers_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
)

// TestParseTime holds the forms of dates that are read, and some that are not
// dates at all. FuzzDate holds that each form is read as the right instant.
func TestParseTime(t *testing.T) {
	at := time.Date(2026, 1, 15, 12, 0, 30, 0, time.UTC)
	for _, c := range []struct {
		text string
		want time.Time
	}{
		{"Thu, 15 Jan 2026 12:00:30 GMT", at},
		{"Thu, 15 Jan 2026 12:00:30 UTC", at},
		{"15 Jan 2026 12:00:30 GMT", at},
		{"thursday, 15-jan-26 12:00:30 gmt", at},
		{"Thu Jan 15 12:00:30 2026", at},
		{"Thu Jan 15 12:00:30 UTC 2026", at},
		{"Thu Jan 15 2026 13:00:30 GMT+0100 (CET)", at},
		{"Thu, 15 Jan 2026 07:00:30 EST", at},
		{"January 15, 2026 12:00:30 PM UTC", at},
		{"2026-01-15T12:00:30Z", at},
		{"2026-01-15t12:00:30z", at},
		{"2026-01-15 12:00:30", at},
		{"2026-01-15 12:00:30 UTC", at},
		{"2026-01-15 12:00:30 +0000 UTC m=+0.0001", at},
		{"2026-01-15T13:00:30+01:00", at},
		{"2026-01-15T07:00:30-0500", at},
		{"2026-01-15T12:00:30.5Z", at.Add(time.Second / 2)},
		{"2026-01-15T12:00:30.123456789999Z", at.Add(123456789)},
		{"2026-01-15T12:00Z", at.Add(-30 * time.Second)},
		{"20260115T120030Z", at},
		{"2026-01-15", at.Truncate(24 * time.Hour)},
		{"Thu, 29 Feb 2024 00:00:00 GMT", time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)},
	} {
		if got, ok := dateOf(c.text, c.want); !ok || !got.Equal(c.want) {
			t.Errorf("%q is %v, %v, want %v", c.text, got, ok, c.want)
		}
	}
	for _, text := range []string{
		"", "now", "tomorrow noon", "Thu, 32 Jan 2026 12:00:30 GMT", "Thu, 29 Feb 2026 12:00:30 GMT", "Thu, 15 Jan 2026 24:00:00 GMT",
		"Thu, 15 Foo 2026 12:00:30 GMT", "Zun, 15 Jan 2026 12:00:30 GMT", "Thu, 15 Jan 2026 12:00:30 XYZ", "Thu, 15 Jan 2026",
		"2026-13-01T00:00:00Z", "2026-01-15T12:61:00Z", "2026-01-15X12:00:00Z", "20260115", "2026-01-15T12:00:30+99:00", "1768478430",
	} {
		if got, ok := dateOf(text, at); ok {
			t.Errorf("%q is %v, want no date", text, got)
		}
	}
}

// waitOf is the wait that lines of Retry-After ask for.
func waitOf(lines ...string) headers.Opt[time.Duration] {
	return headers.Parse(response(200, http.Header{"Retry-After": lines}), noon).RetryAfter
}

// TestParseWait holds what a Retry-After may be.
func TestParseWait(t *testing.T) {
	for _, c := range []struct {
		text string
		want headers.Opt[time.Duration]
	}{
		{"0", some(time.Duration(0))},
		{"30", some(30 * time.Second)},
		{" 7.66\t", some(7660 * time.Millisecond)},
		{"'60'", some(time.Minute)},
		{"1m30s", some(90 * time.Second)},
		{"90 seconds", some(90 * time.Second)},
		{"PT1M30S", some(90 * time.Second)},
		{"P1DT1S", some(day + time.Second)},
		{"00:01:30", some(90 * time.Second)},
		{"1.00:01:30", some(day + 90*time.Second)},
		{"1768478430", some(30 * time.Second)},
		{"1768478430.5", some(30500 * time.Millisecond)},
		{"1768478430000", some(30 * time.Second)},
		{"1500000000", some(time.Duration(0))},
		{"Thu, 15 Jan 2026 12:00:30 GMT", some(30 * time.Second)},
		{"Thu, 15 Jan 2026 11:00:30 GMT", some(time.Duration(0))},
		{"9999-12-31T23:59:59Z", some(maxDuration)},
		{"9223372036", headers.Opt[time.Duration]{Value: time.Unix(9223372036, 0).Sub(noon), Known: true}},
		{"100000000000000000000", some(maxDuration)},
		{"9999999999999h", some(maxDuration)},
		{"-1", headers.Opt[time.Duration]{}},
		{"+1", headers.Opt[time.Duration]{}},
		{"1e3", headers.Opt[time.Duration]{}},
		{"0x10", headers.Opt[time.Duration]{}},
		{"1.", headers.Opt[time.Duration]{}},
		{".5", headers.Opt[time.Duration]{}},
		{"٣", headers.Opt[time.Duration]{}},
		{"Infinity", headers.Opt[time.Duration]{}},
		{"never", headers.Opt[time.Duration]{}},
		{"10:20", headers.Opt[time.Duration]{}},
		{"P1M", headers.Opt[time.Duration]{}},
		{"P", headers.Opt[time.Duration]{}},
		{"5 fortnights", headers.Opt[time.Duration]{}},
	} {
		if got := waitOf(c.text); got != c.want {
			t.Errorf("%q waits %v, want %v", c.text, got, c.want)
		}
	}
}

// TestParseReset holds how deltas, Unix times and nonsense are told apart.
func TestParseReset(t *testing.T) {
	for _, c := range []struct {
		text string
		unit time.Duration
		want time.Duration
		ok   bool
	}{
		{"60", time.Second, time.Minute, true},
		{"60", time.Millisecond, 60 * time.Millisecond, true},
		{"31622400", time.Second, 366 * day, true},
		{"31622401", time.Second, 0, false},
		{"946684799", time.Second, 0, false},
		{"946684800", time.Second, 0, true}, // long past
		{"1768478460", time.Second, time.Minute, true},
		{"1768478460000", time.Second, time.Minute, true},
		{"1768478460000", time.Millisecond, time.Minute, true},
		{"1768478460000000", time.Second, time.Minute, true},
		{"1768478460000000000", time.Second, time.Minute, true},
		{"-5", time.Second, 0, true},
		{"-5s", time.Second, 0, true},
		{"never", time.Second, 0, false},
		{"", time.Second, 0, false},
		{"-", time.Second, 0, false},
	} {
		name := map[time.Duration]string{time.Second: "X-Ratelimit-Reset", time.Millisecond: "X-Ratelimit-Reset-Ms"}[c.unit]
		got := headers.Parse(response(200, http.Header{"X-Ratelimit-Limit": {"1"}, name: {c.text}}), noon).Limits[0].Reset
		if got.Value != c.want || got.Known != c.ok {
			t.Errorf("%q in %v resets in %v, want %v, %v", c.text, c.unit, got, c.want, c.ok)
		}
	}
}
