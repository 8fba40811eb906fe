package headers_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
)

// lines makes a header of "Name: value" lines.
func lines(all ...string) http.Header {
	h := make(http.Header)
	for _, line := range all {
		name, value, _ := strings.Cut(line, ": ")
		h[name] = append(h[name], value)
	}
	return h
}

// What headers of all shapes say, in words.
func TestWhatHeadersSay(t *testing.T) {
	for _, c := range []struct {
		header http.Header
		want   string
	}{
		// Values: numbers, lists, pairs.
		{lines("X-Ratelimit-Limit: 10"), "at most 10 requests"},
		{lines("X-Ratelimit-Limit: "), "nothing said"},
		{lines("X-Ratelimit-Limit: -1"), "nothing said"},
		{lines("X-Ratelimit-Remaining: -1"), "nothing said"},
		{lines("X-Ratelimit-Remaining: -2"), "0 requests left"},
		{lines("X-Ratelimit-Used: -1"), "nothing said"},
		{lines("X-Ratelimit-Used: 3", "X-Ratelimit-Limit: 10"), "7 of 10 requests left"},
		{lines("X-Ratelimit-Used: 13", "X-Ratelimit-Limit: 10"), "0 of 10 requests left"},
		{lines("X-Ratelimit-Used: 3", "X-Ratelimit-Remaining: 7"), "7 of 10 requests left"},
		{lines("X-Ratelimit-Used: 3"), "3 requests used"},
		{lines("X-Ratelimit-Used: 3", "X-Ratelimit-Used: 5", "X-Ratelimit-Used: 4"), "5 requests used"},
		{lines("X-Ratelimit-Limit: 10", "X-Ratelimit-Limit: 5"), "at most 10 requests"},
		{lines("X-Ratelimit-Limit: 100:120"), "at most 100 requests per 2m0s"},
		{lines("X-Ratelimit-Limit: 100:1"), "at most 100 requests per 1s"},
		{lines("X-Ratelimit-Limit: 100:0"), "nothing said"},
		{lines("X-Ratelimit-Limit: 100/minute"), "at most 100 requests per 1m0s"},
		{lines("X-Ratelimit-Limit: 100 per 5 minutes"), "at most 100 requests per 5m0s"},
		{lines("X-Ratelimit-Limit: 100 per fortnight"), "nothing said"},
		{lines("X-Ratelimit-Limit: 32/40"), "8 of 40 requests left"},
		{lines("X-Ratelimit-Remaining: 32/40"), "32 of 40 requests left"},
		{lines("X-Ratelimit-Used: 32/40 (80%)"), "8 of 40 requests left"},
		{lines("X-Ratelimit-Limit: 100;w=60"), "at most 100 requests per 1m0s"},
		{lines("X-Ratelimit-Limit: 100;w=0"), "at most 100 requests"},
		{lines("X-Ratelimit-Limit: 10, 100;w=60, 1000;w=3600"), "at most 10 requests; at most 100 requests per 1m0s; at most 1000 requests per 1h0m0s"},
		{lines("X-Ratelimit-Limit: 600,30000", "X-Ratelimit-Usage: 120,4000"), "480 of 600 requests left per 15m0s; 26000 of 30000 requests left per 24h0m0s"},
		{lines("X-Ratelimit-Limit: 600,600"), "at most 600 requests"},
		{lines("X-Ratelimit-Limit: 600,30000"), "at most 600 requests"},
		{lines("Ratelimit: limit=10, remaining=5, reset=1"), "5 of 10 requests left, resets in 1s"},
		{lines("Ratelimit: limit=10;remaining=5, limit=20;remaining=6"), "5 of 10 requests left; 6 of 20 requests left"},
		{lines("Ratelimit: limit=10, remaining=9, reset=1", "Ratelimit: limit=20, remaining=5, reset=50"), "9 of 10 requests left, resets in 1s; 5 of 20 requests left, resets in 50s"},
		{lines("Ratelimit: limit=10, remaining=9, reset=1", "Ratelimit: limit=10, remaining=8, reset=2"), "8 of 10 requests left, resets in 2s"},
		{lines("Ratelimit: remaining=9, reset=1", "Ratelimit: limit=20, remaining=8, reset=2"), "8 of 20 requests left, resets in 2s"},
		{lines("Ratelimit: limit=10, remaining=9, reset=1", "Ratelimit: limit=20, remaining=5, reset=50", "Ratelimit-Policy: 10;w=1", "Ratelimit-Policy: 20;w=60"),
			"9 of 10 requests left per 1s, resets in 1s (boundary); 5 of 20 requests left per 1m0s, resets in 50s (boundary)"},
		{lines("Ratelimit: name=a;r=5;t=1", "Ratelimit: name=b;r=6;t=2"), "a: 5 requests left, resets in 1s; b: 6 requests left, resets in 2s"},
		{lines("Ratelimit: name=a;r=5, name=b;r=6"), "a: 5 requests left; b: 6 requests left"},
		{lines("Ratelimit: name=per_hour;r=5"), "5 requests left per 1h0m0s"},
		{lines(`Ratelimit: "a";r=5;t=7`), "a: 5 requests left, resets in 7s (next)"},
		{lines(`Ratelimit: "a";r=5.5;t=7`), "nothing said"},
		{lines(`Ratelimit: "a";r=5;t=-7`), "nothing said"},
		{lines(`Ratelimit: "a";x=1`), "nothing said"},
		{lines(`Ratelimit-Policy: "a";q=5;w=10`), "a: at most 5 requests per 10s"},
		{lines(`Ratelimit-Policy: "a";q=5;w=10;qu=tokens`, `Ratelimit: "a";r=3`), "a: 3 of 5 tokens left per 10s"},
		{lines(`Ratelimit-Policy: "fixed";q=5;w=10`, `Ratelimit: "fixed";r=3;t=4`), "fixed: 3 of 5 requests left per 10s, resets in 4s (boundary)"},
		{lines(`Ratelimit-Policy: "a";q=5;w=10, "b";q=50;w=100`, `Ratelimit: "b";r=3`), "b: 3 of 50 requests left per 1m40s; a: at most 5 requests per 10s"},
		{lines(`Ratelimit-Policy: "a";q=5;w=10;pk=:eA==:`, `Ratelimit: "a";r=3;pk=:eQ==:`), "a: 3 requests left; a: at most 5 requests per 10s"},
		{lines(`Ratelimit-Policy: 5;w=10`, `Ratelimit-Limit: 5`, `Ratelimit-Remaining: 3`, `Ratelimit-Reset: 4`), "3 of 5 requests left per 10s, resets in 4s (boundary)"},
		{lines(`Ratelimit-Policy: 5;w=10, 50;w=100`, `Ratelimit-Limit: 50`, `Ratelimit-Remaining: 3`), "3 of 50 requests left per 1m40s; at most 5 requests per 10s"},
		{lines(`Ratelimit-Policy: -5;w=10`), "nothing said"},
		{lines(`X-Ratelimit-Limit: "a";q=5`), "a: at most 5 requests"},

		// Names: units, windows, families, and what is left over.
		{lines("X-Ratelimit-Limit-Per-Minute: 10"), "at most 10 requests per 1m0s"},
		{lines("X-Ratelimit-Daylimit: 10"), "day: at most 10 requests per 24h0m0s"},
		{lines("X-Ratelimit-Period: 60", "X-Ratelimit-Limit: 10"), "at most 10 requests per 1m0s"},
		{lines("X-Ratelimit-Period-In-Ms: 1500", "X-Ratelimit-Limit: 10"), "at most 10 requests per 1.5s"},
		{lines("X-Ratelimit-Reset-In-Ms: 2500", "X-Ratelimit-Limit: 10"), "at most 10 requests, resets in 2.5s"},
		{lines("X-Ratelimit-Reset-Ms: 1500", "X-Ratelimit-Limit: 10"), "at most 10 requests, resets in 1.5s"},
		{lines("X-Ratelimit-Reset-After: 5", "X-Ratelimit-Reset: 9", "X-Ratelimit-Limit: 10"), "at most 10 requests, resets in 5s"},
		{lines("X-Ratelimit-Reset: 9", "X-Ratelimit-Reset: 12", "X-Ratelimit-Limit: 10"), "at most 10 requests, resets in 12s"},
		{lines("X-Ratelimit-Reset: 6m0s", "X-Ratelimit-Limit: 10"), "at most 10 requests, resets in 6m0s (full)"},
		{lines("X-Ratelimit-Reset: 00:06:00", "X-Ratelimit-Limit: 10"), "at most 10 requests, resets in 6m0s"},
		{lines("X-Ratelimit-Reset: 5;x=1", "X-Ratelimit-Limit: 10"), "at most 10 requests, resets in 5s"},
		{lines("X-Ratelimit-Reset: x, 5", "X-Ratelimit-Limit: 10"), "at most 10 requests, resets in 5s"},
		{lines("X-Ratelimit-Reset: -5", "X-Ratelimit-Limit: 10"), "at most 10 requests, resets in 0s"},
		{lines("X-Ratelimit-Burst-Capacity: 10"), "at most 10 requests"},
		{lines("X-Ratelimit-Replenish-Rate: 5", "X-Ratelimit-Remaining: 3"), "3 requests left, refills 5/s"},
		{lines("X-Ratelimit-Utilization: 0.5"), "requests, 50% used"},
		{lines("X-Ratelimit-Percent: 50"), "requests, 50% used"},
		{lines("X-Ratelimit-Percent: 3"), "requests, 300% used"},
		{lines("X-Ratelimit-Percent: 4"), "requests, 4% used"},
		{lines("X-Ratelimit-Percent: 4", "X-Ratelimit-Percent: 60", "X-Ratelimit-Percent: 5"), "requests, 60% used"},
		{lines("X-Ratelimit-Input-Tokens-Limit: 10"), "at most 10 input_tokens"},
		{lines("X-Ratelimit-Api-Token-Limit: 10"), "api-token: at most 10 requests"},
		{lines("X-Ratelimit-Concurrent-Requests-Limit: 10"), "at most 10 concurrent-requests"},
		{lines("X-Ratelimit-User-Limit: 10"), "user: at most 10 requests"},
		{lines("Acme-Ratelimit-Limit: 10"), "at most 10 requests"},
		{lines("X-Acme-Ratelimit-Limit: 10"), "acme: at most 10 requests"},
		{lines("X-Ratelimit-Limit-Api: 10"), "at most 10 requests"},
		{lines("X-Ratelimit-Scope: user", "X-Ratelimit-Limit: 10"), "at most 10 requests, scope user"},
		{lines("X-Ratelimit-Resource: core", "X-Ratelimit-Limit: 10"), "core: at most 10 requests"},
		{lines("X-Amzn-Ratelimit-Limit: 5"), "at most 5 requests per 1s, refills 5/s"},

		// Categories, each spent for a while.
		{lines("X-Sentry-Rate-Limits: 60:transaction:key, 2700:default;error:organization"),
			"transaction: 0 units left, resets in 1m0s (boundary), scope key; default: 0 units left, resets in 45m0s (boundary), scope organization; error: 0 units left, resets in 45m0s (boundary), scope organization"},
		{lines("X-Sentry-Rate-Limits: 60::organization"), "retry after 1m0s; 0 units left, resets in 1m0s (boundary), scope organization"},
		{lines("X-Sentry-Rate-Limits: x:a:b"), "nothing said"},

		// JSON.
		{lines(`X-App-Usage: {"call_count":28,"total_time":25}`), "app: units, 28% used"},
		{lines(`X-Ratelimit: {"limit":10,"remaining":4,"reset":5}`), "4 of 10 requests left, resets in 5s"},
		{lines(`X-Ratelimit: {"used":6,"limit":10}`), "4 of 10 requests left"},
		{lines(`X-Ratelimit: [{"name":"a","limit":10},{"type":"b","limit":20}]`), "a: at most 10 requests; b: at most 20 requests"},
		{lines(`X-Ratelimit: {"ratio":0.5,"x":7}`), "requests, 50% used"},
		{lines(`X-Ratelimit: {"x":7}`), "nothing said"},
		{lines(`X-Ratelimit: {"limit":10,"reset":0}`), "at most 10 requests"},

		// Waits.
		{lines("Retry-After: 5", "X-Ratelimit-Retry-After-Ms: 4700"), "retry after 4.7s"},
		{lines("X-Retry-In: 1500ms", "Retry-After: 2"), "retry after 1.5s"},
		{lines("X-Backoff: 5", "Retry-After: 7"), "retry after 7s"},
	} {
		if got := headers.Parse(response(200, c.header), noon).String(); got != c.want {
			t.Errorf("%v:\n got %s\nwant %s", c.header, got, c.want)
		}
	}
}

// The host's name tells whose header it is.
func TestHostTellsTheVendor(t *testing.T) {
	for host, want := range map[string]string{
		"api.acme.com": "at most 10 requests", "acme.example": "at most 10 requests", "ACME": "at most 10 requests",
		"api.acm.com": "acme: at most 10 requests", "acmes.example": "acme: at most 10 requests", "": "acme: at most 10 requests",
	} {
		resp := response(200, lines("X-Acme-Ratelimit-Limit: 10"))
		resp.Request = &http.Request{URL: &url.URL{Scheme: "https", Host: host}}
		if got := headers.Parse(resp, noon).String(); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
}

// Which of two values of one fact is kept: the one to be careful with.
func TestDraftsKeepTheCarefulValue(t *testing.T) {
	quota := func(l headers.Limit) headers.Opt[float64] { return l.Quota }
	remaining := func(l headers.Limit) headers.Opt[float64] { return l.Remaining }
	used := func(l headers.Limit) headers.Opt[float64] { return l.Used }
	ratio := func(l headers.Limit) headers.Opt[float64] { return l.UsedRatio }
	refill := func(l headers.Limit) headers.Opt[float64] { return l.Refill }
	for _, c := range []struct {
		name, value string
		scale       float64 // of a value that is held
		get         func(headers.Limit) headers.Opt[float64]
		want        [3]float64 // alone; after one of 5; after one of 50. Negative: not known
	}{
		{"X-Ratelimit-Limit", "10", 1, quota, [3]float64{10, 5, 50}},
		{"X-Ratelimit-Limit", "-10", 1, quota, [3]float64{-1, 5, 50}},
		{"X-Ratelimit-Remaining", "10", 1, remaining, [3]float64{10, 5, 10}},
		{"X-Ratelimit-Remaining", "-10", 1, remaining, [3]float64{0, 0, 0}},
		{"X-Ratelimit-Used", "10", 1, used, [3]float64{10, 10, 50}},
		{"X-Ratelimit-Used", "-10", 1, used, [3]float64{-1, 5, 50}},
		{"X-Ratelimit-Utilization", "10", 1, ratio, [3]float64{10, 10, 50}},
		{"X-Ratelimit-Utilization", "-10", 1, ratio, [3]float64{-1, 5, 50}},
		{"X-Ratelimit-Percent", "3.5", 100, ratio, [3]float64{0.035, 5, 50}},
		{"X-Ratelimit-Percent", "3", 100, ratio, [3]float64{3, 5, 50}},
		{"X-Ratelimit-Fillrate", "10", 1, refill, [3]float64{10, 10, 10}},
		{"X-Ratelimit-Fillrate", "-10", 1, refill, [3]float64{-1, 5, 50}},
		{"X-Amzn-Ratelimit-Limit", "10", 1, refill, [3]float64{10, 5, 50}},
		{"X-Amzn-Ratelimit-Limit", "-10", 1, refill, [3]float64{-1, 5, 50}},
	} {
		for i, held := range []float64{0, 5, 50} {
			lines := []string{c.value}
			if held > 0 {
				lines = []string{fmt.Sprint(held * c.scale), c.value}
			}
			got := -1.0
			if s := headers.Parse(response(200, http.Header{c.name: lines}), noon); len(s.Limits) == 1 && c.get(s.Limits[0]).Known {
				got = c.get(s.Limits[0]).Value
			}
			if got != c.want[i] {
				t.Errorf("%s: %s: %v, want %v", c.name, lines, got, c.want[i])
			}
		}
	}
}

// Of several resets of one limit the surest counts, whatever comes first: one that is
// called so, then a delta, then a date. Of equals the longest does.
func TestTheSurestResetCounts(t *testing.T) {
	const date9, date3 = "Thu, 15 Jan 2026 12:00:09 GMT", "Thu, 15 Jan 2026 12:00:03 GMT"
	for _, c := range []struct {
		resets []string
		after  string // of X-Ratelimit-Reset-After; "": none
		want   time.Duration
	}{
		{[]string{"5"}, "", 5}, {[]string{"5", "4"}, "", 5}, {[]string{"5", "6"}, "", 6},
		{[]string{date9}, "", 9}, {[]string{date3, date9}, "", 9}, {[]string{date9, date3}, "", 9},
		{[]string{date9, "5"}, "", 5}, {[]string{"5", date9}, "", 5}, {[]string{date3, "5"}, "", 5},
		{[]string{"5"}, "3", 3}, {[]string{date9, "5"}, "3", 3}, {[]string{"5"}, "9", 9},
	} {
		h := http.Header{"X-Ratelimit-Limit": {"10"}, "X-Ratelimit-Reset": c.resets}
		if c.after != "" {
			h["X-Ratelimit-Reset-After"] = []string{c.after}
		}
		if got := headers.Parse(response(200, h), noon).Limits[0].Reset; got.Value != c.want*time.Second {
			t.Errorf("%v: %v, want %ds", h, got, c.want)
		}
	}
}

// The numbers of a structured field are integers.
func TestIntegersOfAStructuredField(t *testing.T) {
	for text, want := range map[string]bool{"0": true, "12345678901234567890": true, "123456789012345678901": false, "": false, "1.0": false, "-1": false, "1a": false} {
		h := http.Header{"Ratelimit": {`"a";r=` + text}}
		if s := headers.Parse(response(200, h), noon); len(s.Limits) == 1 != want {
			t.Errorf("%q: %v", text, s)
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
		if got := headers.Parse(response(200, c.header), noon).String(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// Units other than requests.
func TestUnitsOfNames(t *testing.T) {
	for name, want := range map[string]string{
		"X-Ratelimit-Limit-Bytes": "at most 100 bytes", "X-Ratelimit-Limit-Tokens": "at most 100 tokens",
		"X-Ratelimit-Limit-Requests": "at most 100 requests", "X-Ratelimit-Limit": "at most 100 requests",
	} {
		if got := headers.Parse(response(200, http.Header{name: {"100"}}), noon).String(); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// Limits of two partitions are two limits.
func TestPartitionsStayApart(t *testing.T) {
	s := headers.Parse(response(200, http.Header{"Ratelimit": {`"p";r=5;pk=:YQ==:, "p";r=7;pk=:Yg==:`}}), noon)
	if len(s.Limits) != 2 || s.Limits[0].Partition == s.Limits[1].Partition ||
		s.Limits[0].Remaining.Value+s.Limits[1].Remaining.Value != 12 {
		t.Errorf("got %v", s)
	}
}
