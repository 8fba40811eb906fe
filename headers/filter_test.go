package headers_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weirhttp/weir/headers"
)

// Which headers are looked at does not depend on how they are spelled.
func TestHeadersOfInterest(t *testing.T) {
	for name, want := range map[string]bool{
		"X-Limit": true, "Ratelimit-Reset": true, "RATELIMIT": true, "x-ratelimit-a": true, "Remaining": true, "X-Mbx-Weight": true, "Quota": true, "Usage": true,
		"Concurrency": true, "X-Sapi-Used-Ip": true, "Retry-After": true, "Should-Retry": true, "X-Amzn-Errortype": true, "Api-Token": true, "Backoff": true,
		"Throttle": true, "Credits": true, "X-Error-Code": true, "Left": true, "X-Left": true, "Limi": false, "Left-": true,
		"X-Amz-Meta-Limit": false, "Amz-Meta-Limit": true, "X-Amz-Meta-Ratelimit": false, "Xx-Ratelimit": true, "Emain": false, "Ki": false, "": false, "Date": false, "Uota": false, "Etry": false,
		strings.Repeat("x", maxName-5) + "limit": true, strings.Repeat("x", maxName-4) + "limit": false,
	} {
		if got := !headers.Silent(http.Header{name: {"1"}}); got != want {
			t.Errorf("%.30q: %t", name, got)
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
		h := http.Header{"X-Ratelimit-Limit": {"10"}, "X-Ratelimit-Resource": {text}}
		if got := headers.Parse(response(200, h), noon).Limits[0].Name; got != want {
			t.Errorf("%.20q (%d): got %.20q (%d), want %d", text, len(text), got, len(got), len(want))
		}
	}
}

// A limit says which header named it, in lower case.
func TestSourcesOfLimits(t *testing.T) {
	for name, want := range map[string]string{"X-RateLimit-Limit": "x-ratelimit-limit", "X-Rate-Limit-Limit": "x-rate-limit-limit", "RateLimit": "ratelimit", "RateLimit-Limit": "ratelimit-limit", "X-Quota-Remaining": "x-quota-remaining"} {
		if got := headers.Parse(response(200, http.Header{name: {`limit=5`, "5"}}), noon).Limits[0].Source; got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
