package headers

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// otherHeaders are the twenty headers that come with GitHub's five.
func otherHeaders() http.Header {
	h := http.Header{}
	for _, line := range []string{
		"Date: Thu, 15 Jan 2026 12:00:00 GMT", "Content-Type: application/json; charset=utf-8", "Content-Length: 3287",
		"Cache-Control: private, max-age=60, s-maxage=60", `Etag: W/"644b5b0155e6404a9cc4bd9d8b1ae730"`,
		"Vary: Accept, Authorization, Cookie, X-GitHub-OTP", "Server: github.com", "Last-Modified: Wed, 14 Jan 2026 09:12:00 GMT",
		"Link: <https://api.github.com/repositories/1300192/issues?page=2>; rel=\"next\"", "X-Github-Media-Type: github.v3; format=json",
		"X-Github-Request-Id: 9E4C:2B1F:1A2B3C:4D5E6F:65A51234", "X-Github-Api-Version-Selected: 2022-11-28",
		"Access-Control-Allow-Origin: *", "Access-Control-Expose-Headers: ETag, Link, Location, Retry-After, X-RateLimit-Limit",
		"Strict-Transport-Security: max-age=31536000; includeSubdomains; preload", "X-Frame-Options: deny",
		"X-Content-Type-Options: nosniff", "X-Xss-Protection: 0", "Referrer-Policy: origin-when-cross-origin",
		"Content-Security-Policy: default-src 'none'",
	} {
		name, value, _ := strings.Cut(line, ": ")
		h.Set(name, value)
	}
	return h
}

func githubHeaders() http.Header {
	h := otherHeaders()
	h.Set("X-Ratelimit-Limit", "5000")
	h.Set("X-Ratelimit-Remaining", "4987")
	h.Set("X-Ratelimit-Used", "13")
	h.Set("X-Ratelimit-Reset", "1768480000")
	h.Set("X-Ratelimit-Resource", "core")
	return h
}

func response(status int, h http.Header) *http.Response {
	return &http.Response{StatusCode: status, Header: h}
}

var noon = time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)

func benchmarkParse(b *testing.B, resp *http.Response) {
	b.ReportAllocs()
	for b.Loop() {
		Parse(resp, noon)
	}
}

func BenchmarkParseGitHub(b *testing.B)   { benchmarkParse(b, response(200, githubHeaders())) }
func BenchmarkParseNoLimits(b *testing.B) { benchmarkParse(b, response(200, otherHeaders())) }
