package headers

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// Tests in this file were written for changes of the code that no other test
// noticed; docs/testing-weir.md says how they are found.

// A delay header is a wait in a refusal only: elsewhere it tells of time
// already lost.
func TestDelayOnlyInRefusals(t *testing.T) {
	for status, want := range map[int]Opt[time.Duration]{429: some(5 * time.Second), 503: some(5 * time.Second), 200: {}, 500: {}} {
		s := Parse(response(status, http.Header{"X-Ratelimit-Delay": {"5"}}), noon)
		if s.RetryAfter != want {
			t.Errorf("%d: wait %v, want %v", status, s.RetryAfter, want)
		}
	}
}

// Quotas in a body count where the body says them of itself, not of an item.
func TestQuotaInBody(t *testing.T) {
	for body, want := range map[string]string{
		`{"items":[],"quota_max":300,"quota_remaining":7}`:    "7 of 300 requests left",
		`{"items":[{"quota_max":300,"quota_remaining":7}]}`:   "nothing said",
		`{"a":{"quota_max":300},"b":{"quota_remaining":"7"}}`: "nothing said",
	} {
		if got := ParseBody(response(200, http.Header{}), []byte(body), noon).String(); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
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
		got, ok := parseTime(text)
		if ok != want || ok && !got.Equal(at) {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
}

// Which halves are joined, and which name goes to which limit.
func TestJoinedOrApart(t *testing.T) {
	for _, c := range []struct {
		name   string
		header http.Header
		want   string
	}{
		{"a label names the limit of its family",
			http.Header{"Ratelimit": {`"default";r=7`}, "X-Ratelimit-Limit": {"10"}, "X-Ratelimit-Remaining": {"5"}, "X-Ratelimit-Resource": {"core"}},
			"default: 7 requests left; core: 5 of 10 requests left"},
		{"and no limit that has a name",
			http.Header{"X-Other-Ratelimit-Limit": {"70"}, "X-Other-Ratelimit-Remaining": {"7"}, "X-Ratelimit-Limit": {"10"}, "X-Ratelimit-Remaining": {"5"}, "X-Ratelimit-Resource": {"core"}},
			"other: 7 of 70 requests left; core: 5 of 10 requests left"},
		{"two halves without a name",
			http.Header{"X-Quota-Remaining": {"5"}, "X-Ratelimit-Limit": {"10"}},
			"5 of 10 requests left"},
		{"a half with a name stays apart",
			http.Header{"X-Quota-Remaining": {"5"}, "X-Ratelimit-Core-Limit": {"10"}},
			"5 requests left; core: at most 10 requests"},
		{"two resets are two limits",
			http.Header{"X-Quota-Reset": {"5"}, "X-Ratelimit-Limit": {"10"}, "X-Ratelimit-Reset": {"9"}},
			"requests, resets in 5s; at most 10 requests, resets in 9s"},
		{"a window within a word",
			http.Header{"X-Ratelimit-Perdaylimit": {"10"}, "X-Ratelimit-Perdayremaining": {"9"}},
			"9 of 10 requests left per 24h0m0s"},
		{"the unnamed rest of a named quota",
			http.Header{"X-Ratelimit-Daily-Limit": {"100"}, "X-Ratelimit-Remaining": {"9"}},
			"daily: 9 of 100 requests left per 24h0m0s"},
		{"hard and soft are names",
			http.Header{"X-Ratelimit-Hard-Limit": {"10"}, "X-Ratelimit-Soft-Limit": {"9"}},
			"hard: at most 10 requests; soft: at most 9 requests"},
		{"a quota and its policy in one line",
			http.Header{"X-Ratelimit-Limit": {"100, 100;w=60"}, "X-Ratelimit-Remaining": {"9"}},
			"9 of 100 requests left per 1m0s"},
	} {
		if got := Parse(response(200, c.header), noon).String(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// What a server says about retrying is read and shown.
func TestShouldRetryValues(t *testing.T) {
	for value, want := range map[string]string{
		"true": "asks to retry", "false": "asks not to retry", "False": "asks not to retry", "maybe": "nothing said",
	} {
		if got := Parse(response(500, http.Header{"X-Should-Retry": {value}}), noon).String(); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}

// Units other than requests.
func TestUnitsOfNames(t *testing.T) {
	for name, want := range map[string]string{
		"X-Ratelimit-Limit-Bytes": "at most 100 bytes", "X-Ratelimit-Limit-Tokens": "at most 100 tokens",
		"X-Ratelimit-Limit-Requests": "at most 100 requests", "X-Ratelimit-Limit": "at most 100 requests",
	} {
		if got := Parse(response(200, http.Header{name: {"100"}}), noon).String(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// A leap second is a time, the one after it is not; nor is a month 0.
func TestLeapSecond(t *testing.T) {
	for text, want := range map[string]bool{
		"2016-12-31T23:59:60Z": true, "2016-12-31T23:59:61Z": false, "2016-00-31T23:59:00Z": false,
		"Sat, 31 Dec 2016 23:59:60 GMT": true, "Sat, 31 Dec 2016 23:59:61 GMT": false,
	} {
		if got, ok := parseTime(text); ok != want {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
}

// Limits of two partitions are two limits.
func TestPartitionsStayApart(t *testing.T) {
	s := Parse(response(200, http.Header{"Ratelimit": {`"p";r=5;pk=:YQ==:, "p";r=7;pk=:Yg==:`}}), noon)
	if len(s.Limits) != 2 || s.Limits[0].Partition == s.Limits[1].Partition ||
		s.Limits[0].Remaining.Value+s.Limits[1].Remaining.Value != 12 {
		t.Errorf("got %v", s)
	}
}
