package headers

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// flatten lists the values of a document with the keys that lead to them, as
// encoding/json reads it.
func flatten(d *json.Decoder, key string, out *[]string) error {
	tok, err := d.Token()
	if err != nil {
		return err
	}
	switch v := tok.(type) {
	case json.Delim:
		*out = append(*out, "open "+key)
		for d.More() {
			k := key
			if v == '{' {
				name, err := d.Token()
				if err != nil {
					return err
				}
				k = name.(string)
			}
			if err := flatten(d, k, out); err != nil {
				return err
			}
		}
		d.Token()
		*out = append(*out, "close")
	case string:
		*out = append(*out, fmt.Sprintf("%s=%q", key, v))
	case nil:
		*out = append(*out, key+"=null")
	default:
		*out = append(*out, fmt.Sprintf("%s=%v", key, v))
	}
	return nil
}

func scanned(s string) (out []string) {
	j := scanner{s: s}
	for {
		switch e := j.next(); e.kind {
		case eventEnd:
			return out
		case eventOpen:
			out = append(out, "open "+e.key)
		case eventClose:
			out = append(out, "close")
		default:
			text := e.text
			if e.quoted {
				text = fmt.Sprintf("%q", text)
			}
			out = append(out, e.key+"="+text)
		}
	}
}

// document writes a random value.
func document(r *rand.Rand, depth int) any {
	words := []string{"", "a", "retry_after", "ü", `say "hi"`, `back\slash`, "tab\tline\n", "/slash", "é€😀"}
	switch n := r.IntN(7); {
	case n < 2 && depth > 0:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, document(r, depth-1))
		}
		return list
	case n < 4 && depth > 0:
		m := map[string]any{}
		for range r.IntN(4) {
			m[words[1:4][r.IntN(3)]+fmt.Sprint(r.IntN(9))] = document(r, depth-1)
		}
		return m
	case n == 4:
		return json.Number(fmt.Sprint(r.IntN(1000)))
	case n == 5:
		return []any{true, false, nil}[r.IntN(3)]
	}
	return words[r.IntN(len(words))]
}

// The scanner sees in a document what encoding/json sees in it; but for white
// space, which it has no need to tell apart.
func TestScannerAgreesWithEncodingJSON(t *testing.T) {
	blanks := strings.NewReplacer(`\t`, " ", `\n`, " ")
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 0))
		text, err := json.Marshal(document(r, 5))
		if err != nil {
			t.Fatal(err)
		}
		if seed%2 == 0 {
			var b strings.Builder
			e := json.NewEncoder(&b)
			e.SetIndent("\r\n", "\t ")
			e.Encode(json.RawMessage(text))
			text = []byte(b.String())
		}
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.UseNumber()
		var want []string
		if err := flatten(d, "", &want); err != nil {
			t.Fatal(err)
		}
		got := scanned(string(text))
		if g, w := blanks.Replace(strings.Join(got, "\n")), blanks.Replace(strings.Join(want, "\n")); g != w {
			t.Fatalf("seed %d: %s\ngot  %v\nwant %v", seed, text, got, want)
		}
	}
}

// What has no end is not reported, and nothing behind it.
func TestScannerOfWhatWasCut(t *testing.T) {
	for text, want := range map[string]string{
		`{"a":12`: "open ", `{"a":12,`: "open |a=12", `{"a":"12`: "open ", `{"a":"12"`: `open |a="12"`, `{"a`: "open ", `{"a":{"b":1}`: "open |open a|b=1|close",
		`12`: "=12", ``: "", `"`: "", `"a"`: `="a"`, `}}1`: "close|close|=1", `[1,[2],3]`: "open |=1|open |=2|close|=3|close",
		`{"a":[1,{"b":2}]}`: "open |open a|a=1|open a|b=2|close|close|close", `{"a":tru}`: "open |a=tru|close",
		`{"a\"b":1}`: `open |a"b=1|close`, `"\u00e9"`: `="é"`, `"a\"`: "",
		strings.Repeat("[", maxDepth+1): strings.Repeat("open |", maxDepth-1) + "open ",
		`{"a" : 1}`:                     "open |a=1|close", `["a":1]`: `open |="a"|=1|close`, `"a":1`: `="a"|=1`, `{"a":"b":1}`: `open |a="b"|=1|close`,
	} {
		if got := strings.Join(scanned(text), "|"); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// Statuses that may be a refusal, and what each needs besides.
func TestWhatMakesARefusal(t *testing.T) {
	signs := []struct{ name, header, body string }{
		{"nothing", "", ""},
		{"exhausted", "X-Ratelimit-Remaining: 0", ""},
		{"some left", "X-Ratelimit-Remaining: 1", ""},
		{"a code", "", `{"code":"rate_limited"}`},
		{"a code in a header", "X-Amzn-Errortype: ThrottlingException", ""},
		{"words", "", `{"message":"API rate limit exceeded"}`},
		{"a wait", "Retry-After: 5", ""},
		{"Meta's number", "", `{"error":{"code":4}}`},
		{"Meta's number and words", "", `{"error":{"code":17,"message":"too many calls"}}`},
		{"Meta's number and usage", `X-App-Usage: {"call_count":100}`, `{"error":{"code":32}}`},
		{"weight", "X-Mbx-Used-Weight-1m: 7", ""},
	}
	const no = Kind(255) // not throttled
	for status, want := range map[int][]Kind{
		429: {Quota, Quota, Quota, Quota, Quota, Quota, Quota, Quota, Quota, Quota, Quota},
		420: {Quota, Quota, Quota, Quota, Quota, Quota, Quota, Quota, Quota, Quota, Quota},
		529: {Overload, Overload, Overload, Overload, Overload, Overload, Overload, Overload, Overload, Overload, Overload},
		418: {no, no, no, no, no, no, Ban, no, no, no, Ban},
		403: {no, Quota, no, Quota, Quota, Quota, Quota, no, Quota, Quota, no},
		503: {no, Quota, no, Quota, Quota, no, no, no, no, no, no},
		400: {no, no, no, Quota, Quota, no, no, no, Quota, Quota, no},
		200: {no, no, no, Quota, Quota, no, no, no, no, no, no},
		404: {no, no, no, no, no, no, no, no, no, no, no},
		500: {no, no, no, no, no, no, no, no, no, no, no},
	} {
		for i, sign := range signs {
			h := http.Header{}
			if name, value, ok := strings.Cut(sign.header, ": "); ok {
				h[name] = []string{value}
			}
			s := ParseBody(response(status, h), []byte(sign.body), noon)
			if want := want[i]; s.Throttled != (want != no) || want != no && s.Kind != want {
				t.Errorf("%d with %s: %v, want %v", status, sign.name, s, want)
			}
		}
	}
}

// Error numbers of Meta's, by themselves and their neighbours.
func TestMetasNumbers(t *testing.T) {
	for n, want := range map[int]bool{3: false, 4: true, 5: false, 16: false, 17: true, 18: false, 31: false, 32: true, 33: false,
		612: false, 613: true, 614: false, 79999: false, 80000: true, 80007: true, 80014: true, 80015: false} {
		body := fmt.Sprintf(`{"error":{"code":%d,"message":"request limit reached"}}`, n)
		if got := ParseBody(response(400, http.Header{}), []byte(body), noon); got.Throttled != want {
			t.Errorf("%d: %v", n, got)
		}
	}
	if got := ParseBody(response(200, http.Header{}), []byte(`{"retCode":10006}`), noon); !got.Throttled {
		t.Errorf("Bybit's: %v", got)
	}
}

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
		if got := ParseBody(response(c.status, http.Header{}), []byte(c.body), noon).String(); got != c.want {
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
		if got := ParseBody(response(429, http.Header{}), []byte(body), noon).String(); got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
	for body, want := range map[string]bool{ // in a served answer types and words are data
		`{"type":"rate_limited"}`: false, `{"status":"rate_limited"}`: false, `{"status":429}`: true, `{"code":"rate_limited"}`: true,
		`{"name":"throttled"}`: false, `{"error":{"type":"rate_limited"}}`: true, `{"error":"ratelimited"}`: true, `{"item":{"code":"rate_limited"}}`: false,
		`[{"error":"ratelimited"}]`: true, `{"message":"rate limit"}`: false,
	} {
		if got := ParseBody(response(200, http.Header{}), []byte(body), noon); got.Throttled != want {
			t.Errorf("%s: %v", body, got)
		}
	}
}

// Codes, however they are written, and texts that are none.
func TestCodes(t *testing.T) {
	for code, want := range map[string]Kind{
		"ThrottlingException": Quota, "throttled": Quota, "com.amazon#ThrottlingException": Quota, "ThrottlingException:http://x/": Quota,
		"EAPI:Rate limit exceeded": Quota, "https://iana.org/x#quota-exceeded": Quota, "rate-limited": Quota, "RATE_LIMIT_REACHED": Quota, "TooManyRequests": Quota,
		"XTooManyRequestsY": Quota, "429": Quota, "99991400": Quota, "quotaExceeded": NoAllowance, "quota_exceeded": Quota, "concurrent_limit_exceeded": Concurrency,
		"lock_timeout": Concurrency, "Slow-Down": Quota, "server_busy": Overload, "ip_banned": Ban, "insufficient_quota": NoAllowance,
		"": NoKind, ":": NoKind, "notfound": NoKind, "1:2:3:4:5:6:7:8:9:10:11:throttled": Quota, "1:2:3:4:5:6:7:8:9:10:11:12:throttled": NoKind,
		strings.Repeat("-", 87) + "throttled": Quota, strings.Repeat("-", 88) + "throttled": NoKind,
		"throttled" + strings.Repeat("x", 87): Quota, "throttled" + strings.Repeat("x", 88): NoKind,
	} {
		if got, ok := kindOfCode(code); got != want || ok != (want != NoKind) {
			t.Errorf("%q: %v, %t; want %v", code, got, ok, want)
		}
	}
	for text, want := range map[string]Kind{"endpoint-concurrency": Concurrency, "LOCK_TIMEOUT": Concurrency, "overloaded": Overload, "no capacity": Overload, "Service": Overload, "service unavailable": NoKind, "": NoKind} {
		if got := kindOfReason(text); got != want {
			t.Errorf("reason %q: %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"Rate limit", "rate-limited", "ratelimit", "too many requests!", "Too many calls", "request limit", "Throttled", "abuse detection", "QUOTA EXCEEDED", "call limit",
		strings.Repeat(" ", 1014) + "rate limit"} {
		if !saysLimit(text) {
			t.Errorf("%.20q does not speak of a limit", text)
		}
	}
	for _, text := range []string{"", "rate", "limit", "rat limit", "rate limi", strings.Repeat(" ", 1015) + "rate limit"} {
		if saysLimit(text) {
			t.Errorf("%.20q speaks of a limit", text)
		}
	}
	all := []Kind{NoKind, Quota, Overload, Concurrency, Ban, NoAllowance}
	for i, a := range all {
		for k, b := range all {
			if got, want := stronger(a, b), all[max(i, k)]; got != want {
				t.Errorf("%v and %v: %v, want %v", a, b, got, want)
			}
		}
	}
	if got := string(letters(make([]byte, 0, 6), "aZ-0_9éAz!q")); got != "az09az" {
		t.Errorf("letters: %s", got)
	}
}

// Which headers are looked at, and in which order, does not depend on chance,
// their number, or how they are spelled.
func TestHeadersOfInterest(t *testing.T) {
	for name, want := range map[string]bool{
		"X-Limit": true, "Ratelimit-Reset": true, "RATELIMIT": true, "x-ratelimit-a": true, "Remaining": true, "X-Mbx-Weight": true, "Quota": true, "Usage": true,
		"Concurrency": true, "X-Sapi-Used-Ip": true, "Retry-After": true, "Should-Retry": true, "X-Amzn-Errortype": true, "Api-Token": true, "Backoff": true,
		"Throttle": true, "Credits": true, "X-Error-Code": true, "Left": true, "X-Left": true, "Limi": false, "Left-": true,
		"X-Amz-Meta-Limit": false, "Amz-Meta-Limit": true, "X-Amz-Meta-Ratelimit": false, "Xx-Ratelimit": true, "Emain": false, "Ki": false, "": false, "Date": false, "Uota": false, "Etry": false,
		strings.Repeat("x", maxName-5) + "limit": true, strings.Repeat("x", maxName-4) + "limit": false,
	} {
		if got := promising(name); got != want {
			t.Errorf("%.30q: %t", name, got)
		}
	}
	names := []string{"Retry-After", "retry-after", "A-Limit", "a-limit", "A-limit", "A-Limits", "A-Lim", "B-Limit", "A_Limit", "Z-Limit", "A-Limit2", "M-Quota", "N-Quota", "O-Quota", "P-Quota"}
	want := "Retry-After retry-after A-Limit A-limit a-limit A-Limit2 A-Limits A_Limit B-Limit M-Quota N-Quota O-Quota P-Quota Z-Limit"
	for n := range len(names) + 1 {
		for seed := range uint64(4) {
			r := rand.New(rand.NewPCG(seed, uint64(n)))
			r.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
			h := http.Header{"Date": {"x"}, "Age": {"1"}, "Content-Type": {"x"}, "X-Limit": nil}
			for _, name := range names[:n] {
				h[name] = []string{"1"}
			}
			var space [16]entry
			found, c := collect(space[:0], h)
			var got, expect []string
			for _, e := range found {
				got = append(got, e.name)
			}
			for _, name := range strings.Fields(want) {
				if h[name] != nil {
					expect = append(expect, name)
				}
			}
			if !slices.Equal(got, expect) || c.date.value != "x" || c.age.value != "1" {
				t.Fatalf("got %v, want %v; %+v", got, expect, c)
			}
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
		if got := Parse(response(200, c.h), noon).String(); got != c.want {
			t.Errorf("%v: %s, want %s", c.h, got, c.want)
		}
	}
	for status, want := range map[int]string{429: "throttled (quota)", 420: "throttled (quota)", 430: "throttled (quota)", 509: "throttled (quota)", 529: "throttled (overload)", 503: "nothing said"} {
		if got := Parse(response(status, http.Header{}), time.Time{}).String(); got != want {
			t.Errorf("a bare %d: %s", status, got)
		}
	}
}

// Texts of a server that are kept are clean and no longer than a name.
func TestCleanTexts(t *testing.T) {
	long := strings.Repeat("x", maxName)
	for text, want := range map[string]string{
		"": "", "plain ~": "plain ~", "a\x1fb": "ab", "a\x7fb": "ab", "ü": "ü", "a\u202eb": "ab", "a\xffb": "ab", "a\tb": "ab",
		long: long, long + "y": long, long[1:] + "ü": long[1:], long[2:] + "ü": long[2:] + "ü", "\x01" + long: long, strings.Repeat("\x01", 4*maxName-1) + "ab": "a",
	} {
		if got := clean(text); got != want {
			t.Errorf("%.20q (%d): got %.20q (%d), want %d", text, len(text), got, len(got), len(want))
		}
	}
	for name, want := range map[string]string{"X-RateLimit-Limit": "x-ratelimit-limit", "X-Rate-Limit-Limit": "x-rate-limit-limit", "RateLimit": "ratelimit", "RateLimit-Limit": "ratelimit-limit", "X-Other": "x-other"} {
		if got := lowerName(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
