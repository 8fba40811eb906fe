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
/a: the host is down
/a: the host is down
/a: "news: /a" (fallback; hit; detail=stale)
/b: "mirror: /b" (fallback; fwd=request; detail=127.0.0.1)
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
	if got, want := b.String(), "/b: circuit is open\n"; !strings.HasSuffix(got, want) {
		t.Errorf("got\n%swant at its end %q", got, want)
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
