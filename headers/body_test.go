package headers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhttp/weir/headers"
)

// Bodies in XML and in plain text.
func TestBodiesThatAreNoJSON(t *testing.T) {
	aws := "<Error><Code>ServerBusy</Code><Message>Reduce your request rate</Message></Error>"
	for _, c := range []struct {
		status int
		body   string
		want   string
	}{
		{503, aws, "throttled (overload)"},
		{503, `<?xml version="1.0"?>` + "\n" + aws, "throttled (overload)"},
		{200, aws, "throttled (overload)"},
		{200, "<Page>" + aws + "</Page>", "nothing said"},
		{400, "<Page>" + aws + "</Page>", "throttled (overload)"},
		{503, "<Page><Code>ServerBusy</Code></Page>", "nothing said"},
		{503, "<Error><Code>ServerBusy", "nothing said"},
		{503, "<Error><Code>Other</Code></Error>", "nothing said"},
		{403, "<Error><Code>Other</Code><Message>Rate limit reached</Message></Error>", "throttled (quota)"},
		{403, "<Error><Message>No such key</Message></Error>", "nothing said"},
		{403, "  \ufeff" + aws, "throttled (overload)"},
		{403, "error code: 1015", "throttled (ban)"},
		{403, "error code: 1020", "nothing said"},
		{403, "Too Many Requests", "throttled (quota)"},
		{403, "Forbidden", "nothing said"},
		{403, " ", "nothing said"},
		{503, "<Error>" + strings.Repeat(" ", 4096) + "<Code>ServerBusy</Code></Error>", "nothing said"},
	} {
		if got := headers.ParseBody(response(c.status, http.Header{}), []byte(c.body), noon).String(); got != c.want {
			t.Errorf("%d %.60s: %s, want %s", c.status, c.body, got, c.want)
		}
	}
}

// Members of a JSON body, in the answer itself, in its error, and in its data.
func TestMembersOfABody(t *testing.T) {
	for body, want := range map[string]string{
		`{"retry_after":5}`:                               "throttled (quota), retry after 5s",
		`{"retryAfterMs":1500}`:                           "throttled (quota), retry after 1.5s",
		`{"error":{"details":[{"retryDelay":"7s"}]}}`:     "throttled (quota), retry after 7s",
		`{"data":{"retry_after":5}}`:                      "throttled (quota)",
		`{"items":[{"error":{"retry_after":5}}]}`:         "throttled (quota)",
		`{"error":{"data":{"retry_after":5}}}`:            "throttled (quota)",
		`{"data":{"x":1},"error":{"retry_after":5}}`:      "throttled (quota), retry after 5s",
		`{"error":{"data":{"x":1},"retry_after":5}}`:      "throttled (quota), retry after 5s",
		`{"backoff":10}`:                                  "throttled (quota), retry after 10s",
		`{"error":{"backoff":10}}`:                        "throttled (quota)",
		`{"estimated_time_to_regain_access":2}`:           "throttled (quota), retry after 2m0s",
		`{"error":["EService: Throttled: 1768478430"]}`:   "throttled (quota), retry after 30s",
		`{"error":["EService: Throttled: 30"]}`:           "throttled (quota)",
		`{"error":["EService: Other: 1768478430"]}`:       "throttled (quota)",
		`{"error":{"headers":{"retry-after":"9"}}}`:       "throttled (quota), retry after 9s",
		`{"headers":{"retry-after":"9"}}`:                 "throttled (quota)",
		`{"error":{"headers":{"retry-after":{"x":"9"}}}}`: "throttled (quota)",
		`{"error":{"headers":{"a":"b"},"retry_after":3}}`: "throttled (quota), retry after 3s",
		`{"error":{"policyName":"DAILY"}}`:                "throttled (no allowance)",
		`{"error":{"policyName":"HOURLY"}}`:               "throttled (quota)",
		`{"error":{"quotaId":"PerMinute"}}`:               "throttled (quota)",
		`{"extensions":{"cost":{"throttleStatus":{"maximumAvailable":1000,"currentlyAvailable":7,"restoreRate":50}}}}`: "throttled (quota); 7 of 1000 points left, refills 50/s",
		`{"type":"overloaded_error"}`:                    "throttled (overload)",
		`{"errors":[{"message":"x"}],"retry_in":"soon"}`: "throttled (quota)",
		`{"retry_after":"-5"}`:                           "throttled (quota)",
	} {
		if got := headers.ParseBody(response(429, http.Header{}), []byte(body), noon).String(); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	for body, want := range map[string]bool{ // in a served answer types and words are data
		`{"type":"rate_limited"}`: false, `{"status":"rate_limited"}`: false, `{"status":429}`: true, `{"code":"rate_limited"}`: true,
		`{"name":"throttled"}`: false, `{"error":{"type":"rate_limited"}}`: true, `{"error":"ratelimited"}`: true, `{"item":{"code":"rate_limited"}}`: false,
		`[{"error":"ratelimited"}]`: true, `{"message":"rate limit"}`: false,
	} {
		if got := headers.ParseBody(response(200, http.Header{}), []byte(body), noon); got.Throttled != want {
			t.Errorf("%s: %v", body, got)
		}
	}
}

// Codes, however they are written, and texts that are none.
func TestWhichCodesAreRefusals(t *testing.T) {
	for code, want := range map[string]headers.Kind{
		"ThrottlingException": headers.Quota, "throttled": headers.Quota, "com.amazon#ThrottlingException": headers.Quota, "ThrottlingException:http://x/": headers.Quota,
		"EAPI:Rate limit exceeded": headers.Quota, "https://iana.org/x#quota-exceeded": headers.Quota, "rate-limited": headers.Quota, "RATE_LIMIT_REACHED": headers.Quota, "TooManyRequests": headers.Quota,
		"XTooManyRequestsY": headers.Quota, "429": headers.Quota, "99991400": headers.Quota, "quotaExceeded": headers.NoAllowance, "quota_exceeded": headers.Quota, "concurrent_limit_exceeded": headers.Concurrency,
		"lock_timeout": headers.Concurrency, "Slow-Down": headers.Quota, "server_busy": headers.Overload, "ip_banned": headers.Ban, "insufficient_quota": headers.NoAllowance,
		"": headers.NoKind, ":": headers.NoKind, "notfound": headers.NoKind, "1:2:3:4:5:6:7:8:9:10:11:throttled": headers.Quota, "1:2:3:4:5:6:7:8:9:10:11:12:throttled": headers.NoKind,
		strings.Repeat("-", 87) + "throttled": headers.Quota, strings.Repeat("-", 88) + "throttled": headers.NoKind,
		"throttled" + strings.Repeat("x", 87): headers.Quota, "throttled" + strings.Repeat("x", 88): headers.NoKind,
	} {
		if got := refusal(400, http.Header{}, fmt.Sprintf(`{"code":%q}`, code)); got != want {
			t.Errorf("%q: %v, want %v", code, got, want)
		}
	}
	for text, want := range map[string]headers.Kind{"endpoint-concurrency": headers.Concurrency, "LOCK_TIMEOUT": headers.Concurrency, "overloaded": headers.Overload, "no capacity": headers.Overload, "Service": headers.Overload, "service unavailable": headers.Quota, "": headers.Quota} { // Quota: as any 429
		if got := refusal(429, http.Header{"X-Rate-Limited-Reason": {text}}, ""); got != want {
			t.Errorf("reason %q: %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"Rate limit", "rate-limited", "ratelimit", "too many requests!", "Too many calls", "request limit", "Throttled", "abuse detection", "QUOTA EXCEEDED", "call limit",
		strings.Repeat(" ", 1014) + "rate limit"} {
		if refusal(403, http.Header{}, fmt.Sprintf(`{"message":%q}`, text)) != headers.Quota {
			t.Errorf("%.20q does not speak of a limit", text)
		}
	}
	for _, text := range []string{"", "rate", "limit", "rat limit", "rate limi", strings.Repeat(" ", 1015) + "rate limit"} {
		if refusal(403, http.Header{}, fmt.Sprintf(`{"message":%q}`, text)) != headers.NoKind {
			t.Errorf("%.20q speaks of a limit", text)
		}
	}
	all := []headers.Kind{headers.NoKind, headers.Quota, headers.Overload, headers.Concurrency, headers.Ban, headers.NoAllowance}
	codes := []string{"other", "throttled", "server_busy", "lock_timeout", "ip_banned", "insufficient_quota"}
	for i, a := range codes {
		for k, b := range codes {
			body := fmt.Sprintf(`{"code":%q,"error":{"code":%q}}`, a, b)
			if got, want := refusal(503, http.Header{}, body), all[max(i, k)]; got != want {
				t.Errorf("%s and %s: %v, want %v", a, b, got, want)
			}
		}
	}
	if got := refusal(400, http.Header{}, `{"code":"r-A_t E9L.iémited"}`); got != headers.NoKind {
		t.Errorf("a digit within a word: %v", got)
	}
	if got := refusal(400, http.Header{}, `{"code":"r-A_t EL.iémi[T]`+"`ed"+`é@Z{"}`); got != headers.NoKind {
		t.Errorf("a letter too many: %v", got)
	}
	if got := refusal(400, http.Header{}, `{"code":"r-A_t EL.iémi[T]`+"`ed"+`é@{"}`); got != headers.Quota {
		t.Errorf("letters among others: %v", got)
	}
}

// refusal is why such an answer is a refusal; NoKind: it is none.
func refusal(status int, h http.Header, body string) headers.Kind {
	s := headers.ParseBody(response(status, h), []byte(body), noon)
	if !s.Throttled {
		return headers.NoKind
	}
	return s.Kind
}

// Quotas in a body count where the body says them of itself, not of an item.
func TestQuotaInBody(t *testing.T) {
	for body, want := range map[string]string{
		`{"items":[],"quota_max":300,"quota_remaining":7}`:    "7 of 300 requests left",
		`{"items":[{"quota_max":300,"quota_remaining":7}]}`:   "nothing said",
		`{"a":{"quota_max":300},"b":{"quota_remaining":"7"}}`: "nothing said",
	} {
		if got := headers.ParseBody(response(200, http.Header{}), []byte(body), noon).String(); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}
