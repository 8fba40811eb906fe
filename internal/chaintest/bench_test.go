package chaintest

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/weirhttp/weir"
)

// spoken is a base that costs next to nothing and answers with one header map
// after the other, as a server does that counts down.
type spoken struct {
	answers []http.Response
	n       int
}

func (s *spoken) RoundTrip(r *http.Request) (*http.Response, error) {
	resp := s.answers[s.n%len(s.answers)]
	s.n++
	resp.Request = r
	return &resp, nil
}

// limitHeaders are the headers that four kinds of servers state their limits in,
// when n units are spent.
var limitHeaders = []struct {
	name string
	set  func(h http.Header, n int)
}{
	{"none", func(http.Header, int) {}},
	{"X-RateLimit", func(h http.Header, n int) {
		h["X-Ratelimit-Limit"] = []string{"100000"}
		h["X-Ratelimit-Remaining"] = []string{strconv.Itoa(99000 - n)}
		h["X-Ratelimit-Reset"] = []string{"1768480000"}
	}},
	{"GitHub", func(h http.Header, n int) {
		h["X-Ratelimit-Limit"] = []string{"100000"}
		h["X-Ratelimit-Remaining"] = []string{strconv.Itoa(99000 - n)}
		h["X-Ratelimit-Used"] = []string{strconv.Itoa(1000 + n)}
		h["X-Ratelimit-Reset"] = []string{"1768480000"}
		h["X-Ratelimit-Resource"] = []string{"core"}
	}},
	{"draft 8", func(h http.Header, n int) {
		h["Ratelimit"] = []string{`"default";r=` + strconv.Itoa(99000-n) + `;t=` + strconv.Itoa(3000-n/10)}
		h["Ratelimit-Policy"] = []string{`"default";q=100000;w=3600`}
	}},
	{"OpenAI", func(h http.Header, n int) {
		h["X-Ratelimit-Limit-Requests"] = []string{"100000"}
		h["X-Ratelimit-Limit-Tokens"] = []string{"150000000"}
		h["X-Ratelimit-Remaining-Requests"] = []string{strconv.Itoa(99000 - n)}
		h["X-Ratelimit-Remaining-Tokens"] = []string{strconv.Itoa(149000000 - 20*n)}
		h["X-Ratelimit-Reset-Requests"] = []string{strconv.Itoa(8000+n) + "ms"}
		h["X-Ratelimit-Reset-Tokens"] = []string{"6m" + strconv.Itoa(n/20) + "s"}
	}},
}

// speaker answers in turns as a server that states its limits by set.
func speaker(set func(h http.Header, n int)) *spoken {
	s := &spoken{}
	for n := range 40 { // few, as answers are in the cache when they come
		h := http.Header{
			"Date":         {"Thu, 15 Jan 2026 12:00:" + strconv.Itoa(10+n/10) + " GMT"},
			"Content-Type": {"application/json; charset=utf-8"}, "Content-Length": {"3287"}, "Server": {"nginx"},
			"Vary": {"Accept, Authorization"}, "X-Request-Id": {"9E4C:2B1F:1A2B3C:4D5E6F:65A51234"},
		}
		set(h, n)
		s.answers = append(s.answers, http.Response{StatusCode: 200, Header: h, Body: http.NoBody})
	}
	return s
}

// BenchmarkHeaders is a call whose answer states limits, in four dialects, beside
// one whose answer states none. Everything but the limits' sizes changes with each answer.
func BenchmarkHeaders(b *testing.B) {
	for _, d := range limitHeaders {
		b.Run(d.name, func(b *testing.B) {
			rt := must(weir.New(speaker(d.set), weir.Config{}))(b)
			r := get(b, "http://api.example.com/v1/items")
			b.ReportAllocs()
			for b.Loop() {
				must(rt.RoundTrip(r))(b).Body.Close()
			}
		})
	}
}
