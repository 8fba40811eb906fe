package headers_test

import (
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
)

// dateOf reads a date as that of an answer, from which its resets are reckoned. near is
// where it should be; ok is false if it is none.
func dateOf(text string, near time.Time) (at time.Time, ok bool) {
	last := time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC) // that can be written
	reset := near.UTC().Add(48 * time.Hour)
	if reset.After(last) {
		reset = last
	}
	h := http.Header{"Date": {text}, "X-Ratelimit-Limit": {"1"}, "X-Ratelimit-Reset": {reset.Format(time.RFC3339Nano)}}
	from := func(now time.Time) time.Duration { return headers.Parse(response(200, h), now).Limits[0].Reset.Value }
	left := from(near)
	if left != from(near.Add(-time.Hour)) { // by the client's clock
		return time.Time{}, false
	}
	return reset.Add(-left), true
}

// A date of a hundred characters is read, a longer one is not; names of days
// and months may be cut short but not made up.
func TestDateBounds(t *testing.T) {
	at := time.Date(2026, 1, 15, 12, 0, 30, 0, time.UTC)
	for text, want := range map[string]bool{
		"2026-01-15T12:00:30." + strings.Repeat("0", 79) + "Z": true,
		"2026-01-15T12:00:30." + strings.Repeat("0", 80) + "Z": false,
		"Thu, 15 January 2026 12:00:30 GMT":                    true,
		"Thu, 15 Janu 2026 12:00:30 GMT":                       true,
		"Thux, 15 Jan 2026 12:00:30 GMT":                       false,
		"Thu, 15 Janx 2026 12:00:30 GMT":                       false,
	} {
		got, ok := dateOf(text, at)
		if ok != want || ok && !got.Equal(at) {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
}

// A leap second is a time, the one after it is not; nor is a month 0.
func TestLeapSecond(t *testing.T) {
	for text, want := range map[string]bool{
		"2016-12-31T23:59:60Z": true, "2016-12-31T23:59:61Z": false, "2016-00-31T23:59:00Z": false,
		"Sat, 31 Dec 2016 23:59:60 GMT": true, "Sat, 31 Dec 2016 23:59:61 GMT": false,
	} {
		if got, ok := dateOf(text, noon); ok != want {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
}

// Every form in which Go can write a date is read as the instant it was
// written from, as far as the form says it.
func TestDatesAsGoWritesThem(t *testing.T) {
	second, minute := time.Second, time.Minute
	for layout, unit := range map[string]time.Duration{
		http.TimeFormat: second, time.RFC850: second, time.ANSIC: second, time.UnixDate: second, time.RFC1123: second,
		time.RFC1123Z: second, time.RFC3339: second, time.RFC3339Nano: time.Nanosecond, "2006-01-02T15:04Z07:00": minute,
		"2006-01-02 15:04:05.000": time.Millisecond, "20060102T150405Z": second, "20060102T150405": second, "2006-01-02t15:04:05z": second,
		"Monday, January 2, 2006 3:04:05 PM MST": second, "2 Jan 2006 15:04:05 MST": second, "Jan _2 2006 03:04:05PM": 0,
		"Mon Jan 02 2006 15:04:05 GMT-0700 (MST)": second, "2006-01-02 15:04:05.999999999 -0700 MST": time.Nanosecond,
		"2006-01-02T15:04:05-07": second, "2 January 2006 15:04 MST": minute, "Mon, 02-Jan-2006 15:04:05 GMT": second,
	} {
		for i := range 40 {
			at := time.Date(1970+i*2, time.Month(1+i%12), 1+i*7%28, i*5%24, i*11%60, i*17%60, i*123456789%1e9, time.UTC)
			text := at.Format(layout)
			got, ok := dateOf(text, at)
			switch {
			case unit == 0:
				if ok {
					t.Errorf("%q is %v, want no date", text, got)
				}
			case !ok || !strings.Contains(layout, " 06") && !strings.Contains(layout, "-06 ") && !got.Equal(at.Truncate(unit)):
				t.Errorf("%q is %v, %t; want %v", text, got, ok, at.Truncate(unit))
			}
		}
	}
	for year, want := range map[string]int{"00": 2000, "26": 2026, "68": 2068, "69": 1969, "99": 1999} {
		near := time.Date(want, 1, 15, 0, 0, 0, 0, time.UTC)
		if got, ok := dateOf("Thursday, 15-Jan-"+year+" 12:00:30 GMT", near); !ok || got.Year() != want {
			t.Errorf("year %s: %v, %t", year, got, ok)
		}
	}
	for text, hour := range map[string]int{"12:00:30 AM": 0, "1:00:30 AM": 1, "12:00:30 PM": 12, "1:00:30 pm": 13, "11:00:30 PM": 23} {
		if got, ok := dateOf("January 15, 2026 "+text+" UTC", noon); !ok || got.Hour() != hour {
			t.Errorf("%s: %v, %t, want hour %d", text, got, ok, hour)
		}
	}
}

// What is no date, or half of one.
func TestNoDates(t *testing.T) {
	for _, text := range []string{
		"2026-00-15T12:00:00Z", "2026-01-00T12:00:00Z", "2026-01-15T24:00:00Z", "2026-01-15T12:60:00Z", "2026-01-15T12:00:61Z",
		"2026-01-15T12:0:00Z", "2026-01-15T123:00:00Z", "2026-01-15T12:00:0Z", "2026-01-15T12:00:00:00Z", "2026-01-15T12:00:3.5.Z",
		"2026-1-15T12:00:00Z", "2026-01-1", "2026-ab-15T12:00:00Z", "2026-01-xxT12:00:00Z", "2026ab15T120000Z", "202601xxT120000Z",
		"20260115 120000", "2026-01-15T:00:00Z", "2026-01-15Tab:00:00Z", "2026-01-15T12:ab:00Z", "2026-02-29T00:00:00Z", "2026-04-31T00:00:00Z",
		"2026-01-15T12:00:30 XYZ", "2026-01-15T12:00:30+1900", "2026-01-15T12:00:30+0160", "2026-01-15T12:00:30+ab:00", "2026-01-15T12:00:30+01:ab",
		"2026-01-15T12:00:30+12345", "2026-01-15T12:00:30+", "15 Jan 12:00:30 GMT", "Jan 2026 12:00:30 GMT", "15 2026 12:00:30 GMT",
		"15 Jan 2026 GMT", "15 15 Jan 2026 12:00:30 GMT", "15 Jan 2026 2027 12:00:30 GMT", "15 Jan 2026 12:00:30 12:00:30 GMT",
		"15 Jan 2026 12345 12:00:30 GMT", "15 Jan Feb 2026 12:00:30 GMT", "PM 15 Jan 2026 12:00:30 GMT", "15-Jan-ab 12:00:30 GMT",
		"15-Xyz-26 12:00:30 GMT", "ab-Jan-26 12:00:30 GMT", "15 Jan Thu 2026 12:00:30 GMT", "1x Jan 2026 12:00:30 GMT",
	} {
		if got, ok := dateOf(text, noon); ok {
			t.Errorf("%q is %v, want no date", text, got)
		}
	}
}

// Offsets and names of zones.
func TestZones(t *testing.T) {
	at := time.Date(2026, 1, 15, 12, 0, 30, 0, time.UTC)
	for zone, hours := range map[string]float64{
		"": 0, "Z": 0, "z": 0, "UT": 0, "ut": 0, "UTC": 0, "gmt": 0, "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
		"+01:00": 1, "-0130": -1.5, "+05:45": 5.75, "+18:00": 18, "-18": -18, "+7": 7, "GMT+0100": 1, "+0100 CET (x)": 99, "+0100 EST": 1,
		"+0000 UTC m=+1.5": 0, "(anything)": 0, "+18:59": 18 + 59.0/60, "+19": 99, "+1:00": 99, "+00:60": 99, "A": 99, "UX": 99, "ABCD": 99, "CET": 99,
	} {
		got, ok := dateOf("2026-01-15T12:00:30"+zone, noon)
		if len(zone) > 3 && zone[0] == '(' {
			got, ok = dateOf("2026-01-15T12:00:30 "+zone, noon)
		}
		want := at.Add(-time.Duration(hours * float64(time.Hour)))
		if ok != (hours != 99) || ok && !got.Round(time.Second).Equal(want.Round(time.Second)) {
			t.Errorf("zone %q: %v, %t; want %v", zone, got, ok, want)
		}
	}
}

// A Unix time tells by its size what it counts.
func TestUnixTimes(t *testing.T) {
	const y2k = 946684800
	for text, want := range map[string]time.Time{
		"946684799":                  {},
		"946684800":                  time.Unix(y2k, 0),
		"99999999999.5":              time.Unix(1e11-1, 5e8),
		"100000000000":               time.UnixMilli(1e11),
		"1768478430123.456":          time.Unix(1768478430, 123456000),
		"99999999999999":             time.UnixMilli(1e14 - 1),
		"100000000000000":            time.UnixMicro(1e14),
		"1768478430123456.789":       time.Unix(1768478430, 123456789),
		"99999999999999999":          time.UnixMicro(1e17 - 1),
		"100000000000000000":         time.Unix(0, 1e17),
		"1768478430123456789":        time.Unix(0, 1768478430123456789),
		"18446744073709551615":       time.Unix(0, math.MaxInt64),
		"99999999999999999999999999": time.Unix(0, math.MaxInt64),
	} {
		now := want.Add(-time.Hour)
		reset := headers.Parse(response(200, http.Header{"X-Ratelimit-Limit": {"1"}, "X-Ratelimit-Reset": {text}}), now).Limits[0].Reset
		if reset.Known != !want.IsZero() || reset.Known && reset.Value != time.Hour {
			t.Errorf("%s is %v, %t; want %v", text, now.Add(reset.Value), reset.Known, want)
		}
	}
}

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
