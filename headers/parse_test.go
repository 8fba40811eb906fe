package headers_test

import (
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
)

// TestAllocations holds the promise that a response without limits costs
// nothing and a typical one next to nothing.
func TestAllocations(t *testing.T) {
	for _, c := range []struct {
		name string
		resp *http.Response
		most float64
	}{
		{"no limits", response(200, otherHeaders()), 0},
		{"no limits, refused", response(429, otherHeaders()), 0},
		{"GitHub", response(200, githubHeaders()), 4},
	} {
		if got := testing.AllocsPerRun(100, func() { headers.Parse(c.resp, noon) }); got > c.most {
			t.Errorf("%s: %v allocations, want at most %v", c.name, got, c.most)
		}
	}
}

// TestWhatIsReadOfOneAnswerIsBounded holds that what is read of one response is bounded, and that its
// size alone never makes it slow: each of these takes well under a second, or
// the test times out in a run of the race detector.
func TestWhatIsReadOfOneAnswerIsBounded(t *testing.T) {
	many := http.Header{}
	for i := range 10000 {
		many[fmt.Sprintf("X-Ratelimit-Limit-N%d", i)] = []string{"5"}
	}
	many["Retry-After"] = []string{"7"}
	lines := make([]string, 10000)
	for i := range lines {
		lines[i] = fmt.Sprintf(`"n%d";r=1;t=1`, i)
	}
	mega := strings.Repeat(`"a";q=1, `, 1<<17)
	for name, h := range map[string]http.Header{
		"many headers": many,
		"many lines":   {"Ratelimit": lines, "Retry-After": lines},
		"long list":    {"Ratelimit": {mega}, "Ratelimit-Policy": {mega}, "X-Ratelimit-Limit": {mega}},
		"commas":       {"Retry-After": {strings.Repeat(",", 1<<20)}, "X-Ratelimit-Reset": {strings.Repeat(",", 1<<20)}, "Ratelimit": {strings.Repeat(",", 1<<20)}},
		"quotes":       {"Ratelimit": {strings.Repeat(`"\`, 1<<19)}, "Ratelimit-Policy": {strings.Repeat(`a="`, 1<<18)}},
		"long number":  {"Retry-After": {strings.Repeat("9", 1<<20)}, "X-Ratelimit-Limit": {strings.Repeat("9", 1<<20)}},
		"long name":    {"X-Ratelimit-" + strings.Repeat("a-", 1<<19): {"5"}},
		"long text":    {"Ratelimit": {`"` + strings.Repeat("ü\u202e", 1<<18) + `";r=1`}, "X-Ratelimit-Resource": {strings.Repeat("x", 1<<20)}},
		"deep JSON":    {"X-App-Usage": {strings.Repeat(`{"a":[`, 1<<18)}},
		"wide JSON":    {"X-App-Usage": {"[" + strings.Repeat(`{"call_count":1},`, 1<<16) + "]"}},
		"categories":   {"X-Sentry-Rate-Limits": {strings.Repeat("1:a;b;c:x,", 1<<16)}},
	} {
		t.Run(name, func(t *testing.T) {
			s := headers.Parse(response(429, h), noon)
			checkSane(t, s)
			if _, ok := h["Retry-After"]; ok && name == "many headers" && s.RetryAfter != some(7*time.Second) {
				t.Errorf("the wait got lost: %v", s.RetryAfter)
			}
			var b strings.Builder
			b.WriteString(`{"error":`)
			for name, values := range h {
				fmt.Fprintf(&b, "%q:%q,", name, values)
			}
			checkSane(t, headers.ParseBody(response(429, h), []byte(b.String()), noon))
		})
	}
}

// TestNames holds what the grammar makes of a name: for names of the table and
// for names that nobody has used yet.
func TestNames(t *testing.T) {
	for line, want := range map[string]string{
		"X-RateLimit-Limit: 7":                          "at most 7 requests",
		"x-rate-limit-remaining: 7":                     "7 requests left",
		"X-RateLimit-Reset-After: 7":                    "requests, resets in 7s",
		"X-RateLimit-Interval-Milliseconds: 7":          "requests per 7ms",
		"anthropic-ratelimit-input-tokens-remaining: 7": "7 input_tokens left",
		"X-Ratelimit-Tokens-Day-Limit: 7":               "at most 7 tokens per 24h0m0s",
		"X-RateLimit-Limit-Widgets-Minute: 7":           "widgets: at most 7 requests per 1m0s",
		"X-Widget-RateLimit-10s-Remaining: 7":           "widget: 7 requests left per 10s",
		"X-DailyRateLimit-Remaining: 7":                 "daily: 7 requests left per 24h0m0s",
		"x-appminlimit-remaining: 7":                    "app-minute: 7 requests left per 1m0s",
		"X-RateLimit-ConcurrentLimit: 7":                "at most 7 concurrent-requests",
		"X-Rate-Limit-Api-Token-Remaining: 7":           "api-token: 7 requests left",
		"X-Throttle-Remaining: 7":                       "7 requests left",
		"X-RateLimit-FillRate: 7":                       "requests, refills 7/s",
		"X-RateLimit-Utilization: 7":                    "requests, 700% used",
		"X-Limit-Per-Second: 7":                         "at most 7 requests per 1s",
		"X-Api-Calls-Remaining: 7":                      "7 requests left",
		"X-RateLimit-Time-Remaining: 7":                 "requests, resets in 7s",
		"X-Whatever-Retry-After-Ms: 7":                  "retry after 7ms",
		"X-Backoff: 7":                                  "retry after 7s",
		`RateLimit: "a";r=7`:                            "a: 7 requests left",
		"RateLimit-Policy: 7;w=9":                       "at most 7 requests per 9s",
		"X-RateLimit-Bucket: 7":                         "nothing said",
		"X-RateLimit-Scope: 7":                          "nothing said",
		"X-Should-Retry: true":                          "asks to retry",
		"X-Limit: 7":                                    "nothing said",
		"X-Page-Limit: 7":                               "nothing said",
		"X-Total-Count: 7":                              "nothing said",
		"X-Items-Remaining: 7":                          "nothing said",
		"X-RateLimit-Query-Cost: 7":                     "nothing said",
		"X-RateLimit-Period-Remaining: 7":               "nothing said",
		"X-Retry-Count: 7":                              "nothing said",
	} {
		if got := headers.Parse(response(200, lines(line)), noon).String(); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	for label, want := range map[string]string{"X-RateLimit-Bucket: 7": "7: at most 9 requests", "X-RateLimit-Scope: 7": "at most 9 requests, scope 7"} {
		if got := headers.Parse(response(200, lines(label, "X-RateLimit-Limit: 9")), noon).String(); got != want {
			t.Errorf("%s: %s, want %s", label, got, want)
		}
	}
}

// TestWeakNames holds that some names only add to a limit that others show to
// exist: alone they are anything.
func TestWeakNames(t *testing.T) {
	for _, c := range []struct{ name, other, want string }{
		{"X-Tokens-Used", "X-Tokens-Remaining", "7 of 12 tokens left"},
		{"X-Token-Reset", "X-Token-Remaining", "7 tokens left, resets in 5s"},
		{"X-Credits-Used", "X-Credits-Left", "7 of 12 credits left"},
	} {
		h := http.Header{c.name: {"5"}}
		if s := headers.Parse(response(200, h), noon); len(s.Limits) > 0 {
			t.Errorf("%s alone: %v", c.name, s)
		}
		h[c.other] = []string{"7"}
		if got := headers.Parse(response(200, h), noon).String(); got != c.want {
			t.Errorf("%s beside %s: %s, want %s", c.name, c.other, got, c.want)
		}
	}
}

// TestRefusalsAreToldApart holds which refusals are told apart.
func TestRefusalsAreToldApart(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		header string
		body   string
		want   headers.Kind
	}{
		{"plain", 429, "", "", headers.Quota},
		{"overloaded", 529, "", "", headers.Overload},
		{"ban", 418, "Retry-After: 60", "", headers.Ban},
		{"address banned", 429, "", "error code: 1015", headers.Ban},
		{"in flight", 429, "Stripe-Rate-Limited-Reason: endpoint-concurrency", "", headers.Concurrency},
		{"lock", 429, "", `{"error":{"code":"lock_timeout"}}`, headers.Concurrency},
		{"no slot", 429, "X-RateLimit-ConcurrentRemaining: 0", "", headers.Concurrency},
		{"capacity", 503, "", `{"error":{"status":"RESOURCE_EXHAUSTED","details":[{"reason":"MODEL_CAPACITY_EXHAUSTED"}]}}`, headers.Overload},
		{"rejected execution", 429, "", `{"error":{"type":"es_rejected_execution_exception"}}`, headers.Overload},
		{"nothing allowed", 429, "X-RateLimit-Limit: 0", "", headers.NoAllowance},
		{"unpaid", 429, "", `{"error":{"code":"insufficient_quota"}}`, headers.NoAllowance},
		{"per day", 429, "", `{"error":{"details":[{"violations":[{"quotaId":"RequestsPerDayPerProject"}]}]}}`, headers.NoAllowance},
		{"for the day", 403, "", `{"error":{"errors":[{"reason":"dailyLimitExceeded"}]}}`, headers.NoAllowance},
		{"user rate", 403, "", `{"error":{"errors":[{"reason":"userRateLimitExceeded"}]}}`, headers.Quota},
		{"abnormal", 429, "", `{"type":"https://iana.org/assignments/http-problem-types#abnormal-usage-detected"}`, headers.Ban},
		{"less capacity", 503, "", `{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"}`, headers.Overload},
		{"spent", 503, "X-RateLimit-Remaining: 0", "", headers.Quota},
		{"not refused", 200, "X-RateLimit-Remaining: 0", "", headers.NoKind},
		{"too large", 413, "Retry-After: 1", `{"error":{"code":"rate_limit_exceeded"}}`, headers.NoKind},
	} {
		h := http.Header{}
		if name, value, ok := strings.Cut(c.header, ": "); ok {
			h[name] = []string{value}
		}
		got := headers.ParseBody(response(c.status, h), []byte(c.body), noon)
		if got.Kind != c.want || got.Throttled != (c.want != headers.NoKind) {
			t.Errorf("%s: throttled %v, kind %v, want %v", c.name, got.Throttled, got.Kind, c.want)
		}
	}
}

// TestFamiliesThatAgreeAreOneLimit holds that two families that agree are one limit, and that two
// which do not are two.
func TestFamiliesThatAgreeAreOneLimit(t *testing.T) {
	for _, c := range []struct {
		name string
		h    http.Header
		want string
	}{
		{"agree", http.Header{"Ratelimit": {`"a";r=4;t=9`}, "Ratelimit-Policy": {`"a";q=5;w=60`}, "X-Ratelimit-Limit": {"5"}, "X-Ratelimit-Remaining": {"4"}},
			"a: 4 of 5 requests left per 1m0s, resets in 9s (next)"},
		{"differ", http.Header{"Ratelimit": {`"a";r=4;t=9`}, "X-Ratelimit-Limit": {"50"}, "X-Ratelimit-Remaining": {"40"}},
			"a: 4 requests left, resets in 9s (next); 40 of 50 requests left"},
		{"other units", http.Header{"X-Ratelimit-Limit-Requests": {"5"}, "X-Ratelimit-Limit-Tokens": {"5"}},
			"at most 5 requests; at most 5 tokens"},
		{"other windows", http.Header{"X-Ratelimit-Limit-Hour": {"5"}, "X-Ratelimit-Limit-Day": {"5"}},
			"at most 5 requests per 24h0m0s; at most 5 requests per 1h0m0s"},
		{"lines", http.Header{"X-Ratelimit-Remaining": {"7", "3"}, "X-Ratelimit-Reset": {"100", "450"}},
			"3 requests left, resets in 7m30s"},
	} {
		if got := headers.Parse(response(200, c.h), noon).String(); got != c.want {
			t.Errorf("%s: got %s\nwant %s", c.name, got, c.want)
		}
	}
}

// TestTheAnswerIsLeftAsItWas holds that the response and its request are left as they were,
// and that a bare response is no trouble.
func TestTheAnswerIsLeftAsItWas(t *testing.T) {
	if got := headers.Parse(&http.Response{}, time.Time{}); !reflect.DeepEqual(got, headers.Signal{}) {
		t.Errorf("the zero response says %v", got)
	}
	make := func() *http.Response {
		return &http.Response{StatusCode: 429, Header: githubHeaders(),
			Request: &http.Request{URL: &url.URL{Scheme: "https", Host: "api.github.com:443"}}}
	}
	resp := make()
	s := headers.Parse(resp, noon)
	if want := make(); !reflect.DeepEqual(resp, want) {
		t.Errorf("changed to %v", resp)
	}
	if len(s.Limits) != 1 || s.Limits[0].ResetMeans != headers.Boundary {
		t.Errorf("got %v, want a reset that is a boundary", s)
	}
}

// TestDeterministic holds that a map's random order never shows.
func TestDeterministic(t *testing.T) {
	h := http.Header{}
	for _, c := range loadCorpus(t) {
		for name, lines := range c.Headers {
			h[name] = lines
		}
	}
	want := fmt.Sprintf("%+v", headers.Parse(response(429, h), noon))
	for range 50 {
		more := http.Header{}
		for name, lines := range h {
			more[name] = lines
		}
		if got := fmt.Sprintf("%+v", headers.Parse(response(429, more), noon)); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
}

// TestWordsOfKindsAndResets holds the words of kinds and of resets.
func TestWordsOfKindsAndResets(t *testing.T) {
	for k, want := range []string{"unknown", "quota", "concurrency", "overload", "ban", "no allowance", "invalid"} {
		if got := headers.Kind(k).String(); got != want {
			t.Errorf("Kind(%d) is %q, want %q", k, got, want)
		}
	}
	for m, want := range []string{"unknown", "boundary", "full", "next", "invalid"} {
		if got := headers.ResetMeans(m).String(); got != want {
			t.Errorf("ResetMeans(%d) is %q, want %q", m, got, want)
		}
	}
}

// The clock of a response is its Date; a cached copy's quotas are no more.
func TestClockOfAResponse(t *testing.T) {
	h := func(pairs ...string) http.Header {
		m := http.Header{"X-Ratelimit-Limit": {"10"}, "X-Ratelimit-Reset": {"1768478460"}}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = []string{pairs[i+1]}
		}
		return m
	}
	for _, c := range []struct {
		h    http.Header
		want string
	}{
		{h(), "at most 10 requests, resets in 1m0s"},
		{h("Date", "Thu, 15 Jan 2026 12:00:30 GMT"), "at most 10 requests, resets in 30s"},
		{h("date", "Thu, 15 Jan 2026 12:00:50 GMT", "Date", "Thu, 15 Jan 2026 12:00:30 GMT"), "at most 10 requests, resets in 30s"},
		{h("Date", "yesterday"), "at most 10 requests, resets in 1m0s"},
		{h("Age", "0"), "at most 10 requests, resets in 1m0s"},
		{h("Age", "1"), "nothing said"},
		{h("age", "1"), "nothing said"},
		{h("Age", "x"), "at most 10 requests, resets in 1m0s"},
	} {
		if got := headers.Parse(response(200, c.h), noon).String(); got != c.want {
			t.Errorf("%v: %s, want %s", c.h, got, c.want)
		}
	}
	for status, want := range map[int]string{429: "throttled (quota)", 420: "throttled (quota)", 430: "throttled (quota)", 509: "throttled (quota)", 529: "throttled (overload)", 503: "nothing said"} {
		if got := headers.Parse(response(status, http.Header{}), time.Time{}).String(); got != want {
			t.Errorf("a bare %d: %s", status, got)
		}
	}
}

// Silent tells of headers what Parse makes of them: in the corpus, which is all
// about headers that speak, and beside them in those that never do.
func TestSilent(t *testing.T) {
	if h := (http.Header{"Content-Type": {"text/plain"}, "Date": {"x"}, "X-Request-Id": {"7"}}); !headers.Silent(h) || !headers.Silent(nil) {
		t.Error("ordinary headers speak")
	}
	spoke := 0
	for _, c := range loadCorpus(t) {
		resp, now := c.response(t)
		resp.StatusCode = 200
		s := headers.Parse(resp, now)
		if says := s.RetryAfter.Known || s.ShouldRetry.Known || s.Throttled || len(s.Limits) > 0; says {
			if spoke++; headers.Silent(resp.Header) {
				t.Errorf("%s: %v is called silent and says %v", c.ID, resp.Header, s)
			}
		}
	}
	if spoke < 100 {
		t.Errorf("only %d of the corpus speak", spoke)
	}
}
