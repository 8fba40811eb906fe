package headers_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/weirhttp/weir/headers"
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

func benchmarkParse(b *testing.B, resp *http.Response) {
	b.ReportAllocs()
	for b.Loop() {
		headers.Parse(resp, noon)
	}
}

func BenchmarkParseGitHub(b *testing.B) { benchmarkParse(b, response(200, githubHeaders())) }

func BenchmarkParseStructured(b *testing.B) {
	h := otherHeaders()
	h.Set("Ratelimit", `"burst";r=19;t=2, "hour";r=840;t=1800`)
	h.Set("Ratelimit-Policy", `"burst";q=20;w=2, "hour";q=1000;w=3600`)
	benchmarkParse(b, response(200, h))
}

func BenchmarkParseAffixed(b *testing.B) {
	h := otherHeaders()
	for _, unit := range []string{"Requests", "Tokens"} {
		h.Set("X-Ratelimit-Limit-"+unit, "150000")
		h.Set("X-Ratelimit-Remaining-"+unit, "149984")
		h.Set("X-Ratelimit-Reset-"+unit, "6m0s")
	}
	benchmarkParse(b, response(200, h))
}

// BenchmarkParseHostile reads a megabyte of header made to be slow.
func BenchmarkParseHostile(b *testing.B) {
	h := http.Header{"Ratelimit": {strings.Repeat(`"a";q=1,`, 1<<17)}}
	b.SetBytes(1 << 20)
	benchmarkParse(b, response(429, h))
}

func BenchmarkParseBody(b *testing.B) {
	body := []byte(`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"quota exceeded","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"57.2s"}]}}`)
	b.ReportAllocs()
	for b.Loop() {
		headers.ParseBody(response(429, nil), body, noon)
	}
}

func BenchmarkParseNoLimits(b *testing.B) { benchmarkParse(b, response(200, otherHeaders())) }

// benchmarkRecall is what a Memory makes of answers that differ in what remains.
func benchmarkRecall(b *testing.B, set func(h http.Header, n int)) {
	var m headers.Memory
	var answers [20]*http.Response
	for n := range answers {
		h := otherHeaders()
		set(h, n)
		answers[n] = response(200, h)
	}
	m.Parse(answers[0], noon)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		r := m.Recall(answers[n%len(answers)])
		if r == nil {
			b.Fatal("not recalled")
		}
		r.Done()
	}
}

func BenchmarkRecallGitHub(b *testing.B) {
	benchmarkRecall(b, func(h http.Header, n int) {
		for name, lines := range githubHeaders() {
			h[name] = lines
		}
		h.Set("X-Ratelimit-Remaining", strconv.Itoa(4987-n))
		h.Set("X-Ratelimit-Used", strconv.Itoa(13+n))
	})
}

func BenchmarkRecallStructured(b *testing.B) {
	benchmarkRecall(b, func(h http.Header, n int) {
		h.Set("Ratelimit", `"burst";r=`+strconv.Itoa(19-n%20)+`;t=2, "hour";r=`+strconv.Itoa(840-n)+`;t=1800`)
		h.Set("Ratelimit-Policy", `"burst";q=20;w=2, "hour";q=1000;w=3600`)
	})
}

func BenchmarkRecallAffixed(b *testing.B) {
	benchmarkRecall(b, func(h http.Header, n int) {
		for _, unit := range []string{"Requests", "Tokens"} {
			h.Set("X-Ratelimit-Limit-"+unit, "150000")
			h.Set("X-Ratelimit-Remaining-"+unit, strconv.Itoa(149984-n))
			h.Set("X-Ratelimit-Reset-"+unit, "6m"+strconv.Itoa(n)+"s")
		}
	})
}
