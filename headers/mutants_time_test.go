package headers

import (
	"fmt"
	"math"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"
)

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
			got, ok := parseTime(text)
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
		if got, ok := parseTime("Thursday, 15-Jan-" + year + " 12:00:30 GMT"); !ok || got.Year() != want {
			t.Errorf("year %s: %v, %t", year, got, ok)
		}
	}
	for text, hour := range map[string]int{"12:00:30 AM": 0, "1:00:30 AM": 1, "12:00:30 PM": 12, "1:00:30 pm": 13, "11:00:30 PM": 23} {
		if got, ok := parseTime("January 15, 2026 " + text + " UTC"); !ok || got.Hour() != hour {
			t.Errorf("%s: %v, %t, want hour %d", text, got, ok, hour)
		}
	}
}

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
		if got, ok := parseTime(text); ok {
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
		got, ok := parseTime("2026-01-15T12:00:30" + zone)
		if len(zone) > 3 && zone[0] == '(' {
			got, ok = parseTime("2026-01-15T12:00:30 " + zone)
		}
		want := at.Add(-time.Duration(hours * float64(time.Hour)))
		if ok != (hours != 99) || ok && !got.Round(time.Second).Equal(want.Round(time.Second)) {
			t.Errorf("zone %q: %v, %t; want %v", zone, got, ok, want)
		}
	}
}

// Durations by their units, as Go writes them, as ISO 8601 does and as a clock.
func TestSpans(t *testing.T) {
	for names, unit := range map[string]time.Duration{
		"ns": 1, "us µs μs": time.Microsecond, "ms msec millis millisecond milliseconds": time.Millisecond,
		"s sec secs second seconds": time.Second, "m min mins minute minutes": time.Minute,
		"h hr hrs hour hours": time.Hour, "d day days": day, "w week weeks": 7 * day,
	} {
		for _, name := range strings.Fields(names) {
			for _, form := range []string{"3%s", "3 %s", "3  %s ", "1%[1]s2%[1]s", "1 %[1]s 2 %[1]s"} {
				text := fmt.Sprintf(form, name)
				if got, ok := parseSpan(text); !ok || got != 3*unit {
					t.Errorf("%q is %v, %t; want %v", text, got, ok, 3*unit)
				}
			}
			if got, ok := parseSpan("1.5" + name); !ok || got != unit+unit/2 {
				t.Errorf("1.5%s is %v, %t", name, got, ok)
			}
		}
	}
	for i := range 200 {
		d := time.Duration(math.Pow(1.2, float64(i))) + time.Duration(i)
		if d <= 0 || d > maxDuration/2 {
			break
		}
		if got, ok := parseSpan(d.String()); !ok || (got-d).Abs() > time.Microsecond && (got-d).Abs() > d/1e9 {
			t.Errorf("%v is %v, %t", d, got, ok)
		}
	}
	for text, want := range map[string]time.Duration{
		"PT5S": 5 * time.Second, "PT2M": 2 * time.Minute, "PT2H": 2 * time.Hour, "P3D": 3 * day, "P2W": 14 * day, "P1DT2H3M4.5S": day + 2*time.Hour + 3*time.Minute + 4500*time.Millisecond,
		"0:00:00": 0, "1:02:03": time.Hour + 2*time.Minute + 3*time.Second, "00:59:59.5": 59*time.Minute + 59500*time.Millisecond, "30:00:00": 30 * time.Hour,
		"2.03:00:00": 2*day + 3*time.Hour,
		"P":          -1, "PT": -1, "P1DT": -1, "P1M": -1, "P1Y": -1, "PT1D": -1, "P1H": -1, "PTM": -1, "P1": -1, "PT1": -1, "PT-1S": -1,
		"1:2:03": -1, "1:02:3": -1, "1:60:00": -1, "1:00:60": -1, "a:00:00": -1, "1:ab:00": -1, "1:00:ab": -1, "x.1:00:00": -1, "1.x:00:00": -1, "1:00": -1,
		"5": -1, "": -1, "s": -1, "5x": -1, "5 ": -1, "-5s": -1, "5s5": -1, "5.s": -1, strings.Repeat("1s", 32): 32 * time.Second, strings.Repeat("1s", 33): -1,
	} {
		got, ok := parseSpan(text)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q is %v, %t; want %v", text, got, ok, want)
		}
	}
}

// Numbers, with the marks of groups and fractions.
func TestDecimals(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, "7": 7, "007": 7, "7.5": 7.5, "7.000000001": 7.000000001, "7.0000000009": 7, "1,199.46": 1199.46, "1,234,567.5": 1234567.5,
		"18446744073709551615": math.MaxUint64, "18446744073709551616": math.MaxUint64, "99999999999999999999999": math.MaxUint64,
		"": -1, ".": -1, "7.": -1, ".5": -1, "7.5.": -1, "7.x": -1, "x": -1, "7x": -1, "-7": -1, "+7": -1, "1,199": -1, "1,19.5": -1, "1,1999.5": -1,
		"1,a99.5": -1, ",199.5": -1, "1,199,46.5": -1, "1e3": -1, "/7": -1, "7/": -1, "7:": -1, "1.:": -1,
	} {
		d, ok := parseDecimal(text)
		if ok != (want >= 0) || ok && d.float() != want {
			t.Errorf("%q is %v, %t; want %v", text, d.float(), ok, want)
		}
	}
	for _, unit := range []time.Duration{1, time.Microsecond, time.Millisecond, time.Second, time.Minute, time.Hour, day} {
		for _, d := range []decimal{{}, {whole: 1}, {nanos: 5e8}, {nanos: 999999999}, {whole: 3, nanos: 250e6}, {whole: 106751}, {whole: 9223372036, nanos: 854775807},
			{whole: 9223372036, nanos: 854775808}, {whole: 153722867280}, {whole: 2562047}, {whole: 2562048}, {whole: math.MaxInt64}, {whole: math.MaxUint64, nanos: 1}} {
			want := new(big.Int).Mul(new(big.Int).SetUint64(d.whole), big.NewInt(int64(unit)))
			want.Add(want, new(big.Int).Div(new(big.Int).Mul(big.NewInt(d.nanos), big.NewInt(int64(unit))), big.NewInt(1e9)))
			if !want.IsInt64() {
				want.SetInt64(math.MaxInt64)
			}
			if got := d.times(unit); int64(got) != want.Int64() {
				t.Errorf("%+v of %v is %d, want %d", d, unit, got, want)
			}
		}
	}
	for text, want := range map[string]int{"0": 0, "123456789": 123456789, "1234567890": -1, "": -1, "1x": -1, "x1": -1, "/": -1, ":": -1} {
		if got, ok := atoi(text); ok != (want >= 0) || ok && got != want {
			t.Errorf("%q is %d, %t", text, got, ok)
		}
	}
}

// A Unix time tells by its size what it counts.
func TestUnixTimes(t *testing.T) {
	for _, c := range []struct {
		d    decimal
		want time.Time
	}{
		{decimal{whole: y2k - 1}, time.Time{}},
		{decimal{whole: y2k}, time.Unix(y2k, 0)},
		{decimal{whole: 1e11 - 1, nanos: 5e8}, time.Unix(1e11-1, 5e8)},
		{decimal{whole: 1e11}, time.UnixMilli(1e11)},
		{decimal{whole: 1768478430123, nanos: 456e6}, time.Unix(1768478430, 123456000)},
		{decimal{whole: 1e14 - 1}, time.UnixMilli(1e14 - 1)},
		{decimal{whole: 1e14}, time.UnixMicro(1e14)},
		{decimal{whole: 1768478430123456, nanos: 789e6}, time.Unix(1768478430, 123456789)},
		{decimal{whole: 1e17 - 1}, time.UnixMicro(1e17 - 1)},
		{decimal{whole: 1e17}, time.Unix(0, 1e17)},
		{decimal{whole: 1768478430123456789}, time.Unix(0, 1768478430123456789)},
		{decimal{whole: math.MaxUint64}, time.Unix(0, math.MaxInt64)},
	} {
		got, ok := c.d.instant()
		if ok != !c.want.IsZero() || ok && !got.Equal(c.want) {
			t.Errorf("%+v is %v, %t; want %v", c.d, got, ok, c.want)
		}
	}
}

// Of several waits the longest counts, and the finer of two that are the same.
func TestWhichWait(t *testing.T) {
	s, none := time.Second, Opt[time.Duration]{}
	for _, c := range []struct{ coarse, fine, want Opt[time.Duration] }{
		{none, none, none}, {some(5 * s), none, some(5 * s)}, {none, some(5 * s), some(5 * s)},
		{some(5 * s), some(4500 * time.Millisecond), some(4500 * time.Millisecond)},
		{some(5 * s), some(4*s + 1), some(4*s + 1)}, {some(5 * s), some(4 * s), some(5 * s)},
		{some(5 * s), some(6*s - 1), some(6*s - 1)}, {some(5 * s), some(6 * s), some(6 * s)}, {some(5 * s), some(60 * s), some(60 * s)},
		{some(5 * s), some(s), some(5 * s)},
	} {
		w := waits{c.coarse, c.fine}
		if got := w.wait(); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
	for values, want := range map[string]Opt[time.Duration]{
		"5": some(5 * s), "5, 9": some(9 * s), "9,5": some(9 * s), "x, 5": some(5 * s), "x": none, "": none, ",": none, "x,5": some(5 * s),
		"5 | 9": some(9 * s), "9 | 5": some(9 * s), "5,x": some(5 * s),
		"Thu, 15 Jan 2026 12:00:30 GMT": some(30 * s), "Thu, 15 Jan 2026 12:00:30 GMT, Thu, 15 Jan 2026 12:00:50 GMT": some(50 * s),
		"5, Thu, 15 Jan 2026 12:00:30 GMT": some(30 * s), "Thu, 15 Jan 2026 12:00:30 GMT, 40": some(40 * s),
		"Foo, 15 Jan 2026 12:00:30 GMT": none, "Foo, 7": some(7 * s), `"5"`: some(5 * s), "'5'": some(5 * s), `"5'`: none, `"`: none,
		strings.Repeat("1,", maxItems-1) + "9": some(9 * s), strings.Repeat("1,", maxItems) + "9": some(s),
	} {
		if got := longestWait(strings.Split(values, " | "), s, noon); got != want {
			t.Errorf("%q: %v, want %v", values, got, want)
		}
	}
	lines := make([]string, maxLines+1)
	for i := range lines {
		lines[i] = fmt.Sprint(i)
	}
	if got := longestWait(lines, s, noon); got != some((maxLines-1)*s) {
		t.Errorf("of %d lines: %v", len(lines), got)
	}
}
