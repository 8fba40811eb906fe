package headers_test

import (
	"fmt"
	"net/http"
	"time"

	"github.com/weirhttp/weir/headers"
)

// noon is when the examples' answers come in. Programs pass time.Now().
var noon = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)

// answer makes a response of a status and pairs of header name and value.
func answer(status int, pairs ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return &http.Response{StatusCode: status, Header: h}
}

// The X-RateLimit trio, here with a date for a reset and a label for a name.
func ExampleParse() {
	s := headers.Parse(answer(403,
		"Date", "Thu, 15 Jan 2026 12:00:00 GMT",
		"X-RateLimit-Limit", "5000",
		"X-RateLimit-Remaining", "0",
		"X-RateLimit-Reset", "1768479600",
		"X-RateLimit-Resource", "core",
	), time.Now())
	fmt.Println(s.Throttled, s.Kind)
	for _, l := range s.Limits {
		fmt.Println(l.Name, l.Remaining.Value, l.Quota.Value, l.Reset.Value)
	}
	// Output:
	// true quota
	// core 0 5000 20m0s
}

// Structured fields, drafts -08 and later: policies join the limits they name.
func ExampleParse_structured() {
	fmt.Println(headers.Parse(answer(200,
		"RateLimit", `"burst";r=19;t=2, "hour";r=840;t=1800`,
		"RateLimit-Policy", `"burst";q=20;w=2, "hour";q=1000;w=3600;qu="content-bytes"`,
	), noon))
	// Output:
	// burst: 19 of 20 requests left per 2s, resets in 2s (next); hour: 840 of 1000 content-bytes left per 1h0m0s, resets in 30m0s (next)
}

// The combined field of draft -07: the policy joins by its quota.
func ExampleParse_combined() {
	fmt.Println(headers.Parse(answer(200,
		"RateLimit", "limit=100, remaining=50, reset=5",
		"RateLimit-Policy", "100;w=10, 5000;w=3600",
	), noon))
	// Output:
	// 50 of 100 requests left per 10s, resets in 5s (boundary); at most 5000 requests per 1h0m0s
}

// The trio of drafts -03 to -06, with its policies in the limit.
func ExampleParse_trio() {
	fmt.Println(headers.Parse(answer(200,
		"RateLimit-Limit", "100, 100;w=60, 1000;w=3600",
		"RateLimit-Remaining", "99",
		"RateLimit-Reset", "50",
	), noon))
	// Output:
	// 99 of 100 requests left per 1m0s, resets in 50s (boundary); at most 1000 requests per 1h0m0s
}

// The same names with other meanings: resets that are Unix times in s or ms, or
// dates. All are told apart by what they look like.
func ExampleParse_resets() {
	for _, reset := range []string{"60", "1768478460", "1768478460000", "2026-01-15T13:01:00+01:00", "1m0s"} {
		s := headers.Parse(answer(200, "X-Rate-Limit-Reset", reset), noon)
		fmt.Println(s.Limits[0].Reset.Value)
	}
	// Output:
	// 1m0s
	// 1m0s
	// 1m0s
	// 1m0s
	// 1m0s
}

// The affixed trio: units, windows and names around the stem, in any order.
func ExampleParse_affixed() {
	fmt.Println(headers.Parse(answer(200,
		"x-ratelimit-limit-tokens-minute", "50000",
		"x-ratelimit-remaining-tokens-minute", "47196",
		"x-ratelimit-reset-tokens-minute", "6m0s",
		"X-RateLimit-UserPathLimit", "20",
		"X-RateLimit-UserPathRemaining", "3",
	), noon))
	// Output:
	// 47196 of 50000 tokens left per 1m0s, resets in 6m0s (full); userpath: 3 of 20 requests left
}

// Pairs of a number and its window.
func ExampleParse_pairs() {
	fmt.Println(headers.Parse(answer(200,
		"X-App-Rate-Limit", "20:1,100:120",
		"X-App-Rate-Limit-Count", "5:1,50:120",
	), noon))
	// Output:
	// app: 15 of 20 requests left per 1s; app: 50 of 100 requests left per 2m0s
}

// Lists whose items say what their numbers are.
func ExampleParse_items() {
	fmt.Println(headers.Parse(answer(200,
		"Zendesk-RateLimit-Tickets-Index", "total=100; remaining=99; resets=41",
		"Sforce-Limit-Info", "api-usage=25/5000",
	), noon))
	// Output:
	// api-usage: 4975 of 5000 requests left; tickets-index: 99 of 100 requests left, resets in 41s
}

// Used only, and JSON in a header.
func ExampleParse_usedOnly() {
	fmt.Println(headers.Parse(answer(200,
		"X-MBX-USED-WEIGHT-1M", "42",
		"X-App-Usage", `{"call_count":16,"total_cputime":15,"total_time":12}`,
	), noon))
	// Output:
	// app: units, 16% used; 42 weight used per 1m0s
}

// A wait and nothing else. On an answer that is no refusal it is a fact too,
// but not one to act on: several servers send it always.
func ExampleParse_waitOnly() {
	fmt.Println(headers.Parse(answer(429, "Retry-After", "30"), noon))
	fmt.Println(headers.Parse(answer(429, "Retry-After", "1", "Retry-After-Ms", "250"), noon))
	fmt.Println(headers.Parse(answer(503, "Retry-After", "Thu, 15 Jan 2026 12:02:00 GMT"), noon))
	// Output:
	// throttled (quota), retry after 30s
	// throttled (quota), retry after 250ms
	// retry after 2m0s
}

// A server that says nothing but the status.
func ExampleParse_silent() {
	fmt.Println(headers.Parse(answer(429), noon))
	fmt.Println(headers.Parse(answer(200), noon))
	// Output:
	// throttled (quota)
	// nothing said
}

// APIs that put the reason and the wait into the body.
func ExampleParseBody() {
	fmt.Println(headers.ParseBody(answer(429), []byte(`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED",
		"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"57.2s"}]}}`), noon))
	fmt.Println(headers.ParseBody(answer(200), []byte(`{"errors":[{"type":"RATE_LIMITED"}]}`), noon))
	fmt.Println(headers.ParseBody(answer(503), []byte(`<Error><Code>SlowDown</Code></Error>`), noon))
	// Output:
	// throttled (quota), retry after 57.2s
	// throttled (quota)
	// throttled (quota)
}

// What is worth waiting for.
func ExampleKind() {
	s := headers.ParseBody(answer(429), []byte(`{"error":{"type":"insufficient_quota"}}`), noon)
	switch s.Kind {
	case headers.Quota, headers.Concurrency, headers.Overload:
		fmt.Println("wait")
	case headers.Ban, headers.NoAllowance:
		fmt.Println("waiting does not help:", s.Kind)
	}
	// Output:
	// waiting does not help: no allowance
}

// A remaining of 0 means something, and so does none at all.
func ExampleOpt() {
	l := headers.Parse(answer(200, "X-RateLimit-Remaining", "0"), noon).Limits[0]
	fmt.Println(l.Remaining.Known, l.Remaining.Value)
	fmt.Println(l.Quota.Known, l.Quota.Value)
	// Output:
	// true 0
	// false 0
}

// A signal in a line of a log.
func ExampleSignal_String() {
	s := headers.Parse(answer(429,
		"Retry-After", "20",
		"RateLimit-Policy", `"dynamic";q=100;w=60`,
		"RateLimit", `"dynamic";r=15;t=40`,
	), noon)
	fmt.Println(s)
	// Output:
	// throttled (quota), retry after 20s; dynamic: 15 of 100 requests left per 1m0s, resets in 40s (next)
}
