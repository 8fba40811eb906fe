package main

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// With conditional requests every poll is answered, with what the server says at
// that moment, and only what has changed counts; without them the quota is spent
// after a tenth of the polls.
func TestPolls(t *testing.T) {
	var b strings.Builder
	if err := run(&b); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + b.String())
	var rows [][]string
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, "every") || strings.HasPrefix(line, "conditional") {
			rows = append(rows, strings.Fields(line[22:]))
		}
	}
	want := [][]string{{"10", "90", "10", "0"}, {"100", "0", "6", "94"}}
	if len(rows) != 2 || strings.Join(rows[0], " ") != strings.Join(want[0], " ") || strings.Join(rows[1], " ") != strings.Join(want[1], " ") {
		t.Errorf("got %q, want %q", rows, want)
	}
}

type base func(*http.Request) (*http.Response, error)

func (f base) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Answers without a tag, long ones, errors and other methods pass as they are,
// and the caller's request is not changed.
func TestWhatIsNotKept(t *testing.T) {
	for name, tt := range map[string]struct {
		method, tag, body string
		asked             int // of two requests, how many have a tag
	}{
		"kept":         {"GET", `"1"`, "short", 1},
		"no tag":       {"GET", "", "short", 0},
		"too long":     {"GET", `"1"`, strings.Repeat("x", 101), 0},
		"other method": {"POST", `"1"`, "short", 0},
	} {
		asked := 0
		c := &cache{most: 100, kept: map[string][]byte{}, base: base(func(r *http.Request) (*http.Response, error) {
			if r.Header.Get("If-None-Match") != "" {
				asked++
			}
			h := http.Header{}
			if tt.tag != "" {
				h.Set("Etag", tt.tag)
			}
			return &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Header: h, Body: io.NopCloser(strings.NewReader(tt.body)), ContentLength: -1, Request: r}, nil
		})}
		for range 2 {
			r, _ := http.NewRequest(tt.method, "http://api.example/", nil)
			resp, err := c.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if string(body) != tt.body || err != nil || len(r.Header) != 0 {
				t.Errorf("%s: %q, %v, request %v", name, body, err, r.Header)
			}
		}
		if asked != tt.asked {
			t.Errorf("%s: %d requests had a tag, want %d", name, asked, tt.asked)
		}
	}
}
