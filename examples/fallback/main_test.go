package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestFallbacks(t *testing.T) {
	news := httptest.NewServer(says("news"))
	mirror := httptest.NewServer(says("mirror"))
	defer mirror.Close()
	var b strings.Builder
	if err := run(t.Context(), &b, news.URL, mirror.URL, news.Close); err != nil {
		t.Fatal(err)
	}
	want := `/a: "news: /a" (fresh)
/a: "news: /a" (fallback; hit; detail=stale)
/a: "news: /a" (fallback; hit; detail=stale)
/a: "news: /a" (fallback; hit; detail=stale)
/b: "mirror: /b" (fallback; fwd=request; detail=127.0.0.1)
/suggestions/a: "" (fallback; detail=empty)
`
	if got := b.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// Without an answer anywhere, the caller learns that the circuit is open.
func TestNoFallbackLeft(t *testing.T) {
	news := httptest.NewServer(says("news"))
	mirror := httptest.NewServer(says("mirror"))
	mirror.Close()
	var b strings.Builder
	if err := run(t.Context(), &b, news.URL, mirror.URL, news.Close); err != nil {
		t.Fatal(err)
	}
	if got, want := b.String(), "/b: circuit is open\n"; !strings.Contains(got, want) {
		t.Errorf("got\n%swant in it %q", got, want)
	}
}

// The other host gets the request, but nothing that says who asks, and only
// what was the first one's to answer.
func TestOtherHost(t *testing.T) {
	var got []*http.Request
	o := &otherHost{from: "http://news.example", to: "http://mirror.example", client: &http.Client{
		Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			got = append(got, r)
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
		}),
	}}
	for _, url := range []string{"http://news.example/a?b=c", "http://news.example", "http://news.example.evil/a", "http://news.example:8080/a"} {
		r := httptest.NewRequest("GET", url, nil)
		for _, name := range []string{"Authorization", "Cookie", "X-Api-Key", "Accept"} {
			r.Header.Set(name, "x")
		}
		if _, err := o.fallback(r, nil); err != nil {
			t.Error(err)
		}
	}
	if len(got) != 2 || got[0].URL.String() != "http://mirror.example/a?b=c" || got[1].URL.String() != "http://mirror.example" {
		t.Fatalf("sent %v", got)
	}
	if len(got[0].Header) != 1 || got[0].Header.Get("Accept") != "x" {
		t.Errorf("sent with %v", got[0].Header)
	}
}

// What is one person's, or was not read to its end, is not kept for others.
func TestOnlyWholePublicAnswersAreKept(t *testing.T) {
	for _, test := range []struct {
		name    string
		request http.Header
		answer  http.Header
		status  int
		method  string
		read    int64
		want    bool
	}{
		{name: "public", read: 100, want: true},
		{name: "not read", read: 3},
		{name: "too long", read: 100, answer: http.Header{"X-Long": {"1"}}},
		{name: "authorized", read: 100, request: http.Header{"Authorization": {"x"}}},
		{name: "API key", read: 100, request: http.Header{"X-Api-Key": {"x"}}},
		{name: "cookie", read: 100, request: http.Header{"Cookie": {"a=b"}}},
		{name: "private", read: 100, answer: http.Header{"Cache-Control": {"max-age=3, Private"}}},
		{name: "no-store", read: 100, answer: http.Header{"Cache-Control": {"no-store"}}},
		{name: "varies", read: 100, answer: http.Header{"Vary": {"Accept"}}},
		{name: "error", read: 100, status: 500},
		{name: "post", read: 100, method: "POST"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCache(20)
			client := &http.Client{Transport: c.keep(roundTripper(func(r *http.Request) (*http.Response, error) {
				text := "twenty bytes of text"
				if test.answer.Get("X-Long") != "" {
					text += "!"
				}
				header := test.answer.Clone()
				if header == nil {
					header = http.Header{}
				}
				return &http.Response{StatusCode: max(test.status, 200), ProtoMajor: 1, ProtoMinor: 1, Header: header,
					Body: io.NopCloser(strings.NewReader(text)), ContentLength: -1, TransferEncoding: []string{"chunked"}, Request: r}, nil
			}))}
			req, err := http.NewRequest(test.method, "http://news.example/", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header = test.request.Clone()
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			io.CopyN(io.Discard, resp.Body, test.read)
			resp.Body.Close()

			stale, err := c.fallback(httptest.NewRequest("GET", "http://news.example/", nil), nil)
			if err != nil || (stale != nil) != test.want {
				t.Fatalf("kept %v, %v, want %v", stale, err, test.want)
			}
			if stale == nil {
				return
			}
			if body, err := io.ReadAll(stale.Body); err != nil || !bytes.Equal(body, []byte("twenty bytes of text")) {
				t.Errorf("kept %q, %v", body, err)
			}
		})
	}
}
