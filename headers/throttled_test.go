package headers_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhttp/weir/headers"
)

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
	const no = headers.Kind(255) // not throttled
	for status, want := range map[int][]headers.Kind{
		429: {headers.Quota, headers.Quota, headers.Quota, headers.Quota, headers.Quota, headers.Quota, headers.Quota, headers.Quota, headers.Quota, headers.Quota, headers.Quota},
		420: {headers.Quota, headers.Quota, headers.Quota, headers.Quota, headers.Quota, headers.Quota, headers.Quota, headers.Quota, headers.Quota, headers.Quota, headers.Quota},
		529: {headers.Overload, headers.Overload, headers.Overload, headers.Overload, headers.Overload, headers.Overload, headers.Overload, headers.Overload, headers.Overload, headers.Overload, headers.Overload},
		418: {no, no, no, no, no, no, headers.Ban, no, no, no, headers.Ban},
		403: {no, headers.Quota, no, headers.Quota, headers.Quota, headers.Quota, headers.Quota, no, headers.Quota, headers.Quota, no},
		503: {no, headers.Quota, no, headers.Quota, headers.Quota, no, no, no, no, no, no},
		400: {no, no, no, headers.Quota, headers.Quota, no, no, no, headers.Quota, headers.Quota, no},
		200: {no, no, no, headers.Quota, headers.Quota, no, no, no, no, no, no},
		404: {no, no, no, no, no, no, no, no, no, no, no},
		500: {no, no, no, no, no, no, no, no, no, no, no},
	} {
		for i, sign := range signs {
			h := http.Header{}
			if name, value, ok := strings.Cut(sign.header, ": "); ok {
				h[name] = []string{value}
			}
			s := headers.ParseBody(response(status, h), []byte(sign.body), noon)
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
		if got := headers.ParseBody(response(400, http.Header{}), []byte(body), noon); got.Throttled != want {
			t.Errorf("%d: %v", n, got)
		}
	}
	if got := headers.ParseBody(response(200, http.Header{}), []byte(`{"retCode":10006}`), noon); !got.Throttled {
		t.Errorf("Bybit's: %v", got)
	}
}
