package headers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
)

// A delay header is a wait in a refusal only: elsewhere it tells of time
// already lost.
func TestDelayOnlyInRefusals(t *testing.T) {
	for status, want := range map[int]headers.Opt[time.Duration]{429: some(5 * time.Second), 503: some(5 * time.Second), 200: {}, 500: {}} {
		s := headers.Parse(response(status, http.Header{"X-Ratelimit-Delay": {"5"}}), noon)
		if s.RetryAfter != want {
			t.Errorf("%d: wait %v, want %v", status, s.RetryAfter, want)
		}
	}
}

// What a server says about retrying is read and shown.
func TestShouldRetryValues(t *testing.T) {
	for value, want := range map[string]string{
		"true": "asks to retry", "false": "asks not to retry", "False": "asks not to retry", "maybe": "nothing said",
	} {
		if got := headers.Parse(response(500, http.Header{"X-Should-Retry": {value}}), noon).String(); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}

// Of several waits the longest counts, and the finer of two that are the same.
func TestOfSeveralWaitsTheLongestCounts(t *testing.T) {
	s, none := time.Second, headers.Opt[time.Duration]{}
	for _, c := range []struct{ coarse, fine, want headers.Opt[time.Duration] }{
		{none, none, none}, {some(5 * s), none, some(5 * s)}, {none, some(5 * s), some(5 * s)},
		{some(5 * s), some(4500 * time.Millisecond), some(4500 * time.Millisecond)},
		{some(5 * s), some(4*s + 1), some(4*s + 1)}, {some(5 * s), some(4 * s), some(5 * s)},
		{some(5 * s), some(6*s - 1), some(6*s - 1)}, {some(5 * s), some(6 * s), some(6 * s)}, {some(5 * s), some(60 * s), some(60 * s)},
		{some(5 * s), some(s), some(5 * s)},
	} {
		h := http.Header{}
		if c.coarse.Known {
			h["Retry-After"] = []string{fmt.Sprint(c.coarse.Value.Seconds())}
		}
		if c.fine.Known {
			h["Retry-After-Ms"] = []string{fmt.Sprintf("%.6f", float64(c.fine.Value)/1e6)}
		}
		if got := headers.Parse(response(200, h), noon).RetryAfter; got != c.want {
			t.Errorf("%v: got %v, want %v", h, got, c.want)
		}
	}
	for values, want := range map[string]headers.Opt[time.Duration]{
		"5": some(5 * s), "5, 9": some(9 * s), "9,5": some(9 * s), "x, 5": some(5 * s), "x": none, "": none, ",": none, "x,5": some(5 * s),
		"5 | 9": some(9 * s), "9 | 5": some(9 * s), "5,x": some(5 * s),
		"Thu, 15 Jan 2026 12:00:30 GMT": some(30 * s), "Thu, 15 Jan 2026 12:00:30 GMT, Thu, 15 Jan 2026 12:00:50 GMT": some(50 * s),
		"5, Thu, 15 Jan 2026 12:00:30 GMT": some(30 * s), "Thu, 15 Jan 2026 12:00:30 GMT, 40": some(40 * s),
		"Foo, 15 Jan 2026 12:00:30 GMT": none, "Foo, 7": some(7 * s), `"5"`: some(5 * s), "'5'": some(5 * s), `"5'`: none, `"`: none,
		strings.Repeat("1,", maxItems-1) + "9": some(9 * s), strings.Repeat("1,", maxItems) + "9": some(s),
	} {
		if got := waitOf(strings.Split(values, " | ")...); got != want {
			t.Errorf("%q: %v, want %v", values, got, want)
		}
	}
	lines := make([]string, maxLines+1)
	for i := range lines {
		lines[i] = fmt.Sprint(i)
	}
	if got := waitOf(lines...); got != some((maxLines-1)*s) {
		t.Errorf("of %d lines: %v", len(lines), got)
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
