package inspect_test

import (
	"bytes"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/inspect"
)

// A page under a name that somebody else points at this machine must not
// reach it, nor one that comes through a proxy.
func TestWhoIsServed(t *testing.T) {
	h := inspect.Handler(transport(t, answers{}, weir.Config{}), inspect.Config{AllowHosts: []string{"Ops.Example.com.", "10.0.0.7"}})
	tests := []struct {
		host, header string
		want         int
	}{
		{host: "localhost", want: 200},
		{host: "LOCALHOST.:8080", want: 200},
		{host: "weir.localhost:1", want: 200},
		{host: "127.0.0.1:8080", want: 200},
		{host: "127.8.9.10", want: 200},
		{host: "[::1]:8080", want: 200},
		{host: "[::1]", want: 200},
		{host: "[::ffff:127.0.0.1]:80", want: 200},
		{host: "ops.example.com:8443", want: 200},
		{host: "10.0.0.7", want: 200},
		{host: "", want: 403},
		{host: "evil.example", want: 403},
		{host: "localhost.evil.example", want: 403},
		{host: "notlocalhost", want: 403},
		{host: "127.0.0.1.evil.example", want: 403},
		{host: "x.ops.example.com", want: 403},
		{host: "192.168.1.5", want: 403},
		{host: "0.0.0.0:8080", want: 403},
		{host: "[::]", want: 403},
		{host: "localhost", header: "Forwarded", want: 403},
		{host: "localhost", header: "x-forwarded-for", want: 403},
		{host: "localhost", header: "X-Forwarded-Host", want: 403},
		{host: "localhost", header: "X-Forwarded", want: 403},
		{host: "localhost", header: "X-Real-IP", want: 403},
		{host: "localhost", header: "Via", want: 403},
		{host: "ops.example.com", header: "Forwarded", want: 403},
	}
	for _, tt := range tests {
		for _, path := range []string{"/", "/stats.json"} {
			w := ask(h, "GET", path, func(r *http.Request) {
				r.Host = tt.host
				if tt.header != "" {
					r.Header.Set(tt.header, "for=192.0.2.1")
				}
			})
			if w.Code != tt.want {
				t.Errorf("Host %q, %s, GET %s: %d, want %d", tt.host, tt.header, path, w.Code, tt.want)
			}
			if tt.want == 403 && !strings.HasPrefix(w.Body.String(), "inspect: not served ") {
				t.Errorf("Host %q: %q", tt.host, w.Body)
			}
		}
	}
}

func TestPolicyStandsOnEveryAnswer(t *testing.T) {
	h := inspect.Handler(transport(t, answers{}, weir.Config{}), inspect.Config{})
	tests := []struct{ path, host, kind string }{
		{"/", "localhost", "text/html; charset=utf-8"},
		{"/app.js", "localhost", "text/javascript; charset=utf-8"},
		{"/uplot.js", "localhost", "text/javascript; charset=utf-8"},
		{"/style.css", "localhost", "text/css; charset=utf-8"},
		{"/stats.json", "localhost", "application/json"},
		{"/nothing", "localhost", "text/plain; charset=utf-8"},
		{"/", "evil.example", "text/plain; charset=utf-8"},
	}
	for _, tt := range tests {
		got := ask(h, "GET", tt.path, func(r *http.Request) { r.Host = tt.host }).Result().Header
		csp := got.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "script-src 'self';") ||
			!strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: Content-Security-Policy %q", tt.path, csp)
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Cross-Origin-Resource-Policy": "same-origin", "Content-Type": tt.kind,
		} {
			if tt.path == "/nothing" && name == "Cache-Control" {
				continue // net/http's answer to what is not there has none
			}
			if got.Get(name) != want {
				t.Errorf("%s: %s %q, want %q", tt.path, name, got.Get(name), want)
			}
		}
	}
}

// The page works offline and under its policy: nothing in it runs inline or
// comes from elsewhere, and no text becomes markup.
func TestPageKeepsItsPolicy(t *testing.T) {
	h := inspect.Handler(transport(t, answers{}, weir.Config{}), inspect.Config{})
	file := func(name string) []byte {
		got := ask(h, "GET", "/"+name, nil)
		if got.Code != 200 {
			t.Fatalf("%s: %d", name, got.Code)
		}
		return got.Body.Bytes()
	}
	page := file("")
	inline := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|javascript:|<script>|<script[^>]*>[^<]`)
	if found := inline.Find(page); found != nil {
		t.Errorf("index.html has %q", found)
	}
	markup := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|new Function`)
	elsewhere := regexp.MustCompile(`(?i)(https?:)?//[a-z0-9.-]+\.[a-z]{2,}|@import`)
	files, err := filepath.Glob("assets/*")
	if err != nil || len(files) < 6 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if name = filepath.Base(name); name == "index.html" {
			name = "" // it is served as the folder
		}
		text := file(name)
		if found := markup.Find(text); found != nil {
			t.Errorf("%s has %q", name, found)
		}
		text = bytes.Replace(text, []byte(`xmlns="http://www.w3.org/2000/svg"`), nil, 1)
		if found := elsewhere.Find(text); found != nil && !strings.Contains(name, "uplot") {
			t.Errorf("%s points to %q", name, found)
		}
	}
}

func TestReadOnlyByDefault(t *testing.T) {
	w := transport(t, answers{}, weir.Config{})
	h := inspect.Handler(w, inspect.Config{})
	send(t, w, "api.example", 1)
	for _, path := range []string{"/pause", "/resume", "/open", "/release", "/"} {
		if got := post(h, path, url.Values{"host": {"api.example"}, "for": {"1h"}}, nil).Code; got != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: %d", path, got)
		}
	}
	if got := hostNamed(t, snapshot(t, h), "api.example").State; got != ok {
		t.Errorf("state %q", got)
	}
	if w.Circuits().State("api.example") != breaker.Closed {
		t.Error("circuit opened")
	}
}

func TestControlsChangeAHost(t *testing.T) {
	w := transport(t, answers{}, weir.Config{})
	h := inspect.Handler(w, inspect.Config{Controls: true})
	send(t, w, "api.example", 1)
	steps := []struct {
		path, length string
		state, why   string
	}{
		{"/pause", "10m", paused, "paused by hand"},
		{"/resume", "", ok, ""},
		{"/open", "", "open", "circuit forced open by hand"},
		{"/release", "", ok, ""},
	}
	for _, s := range steps {
		if got := post(h, s.path, url.Values{"host": {"api.example"}, "for": {s.length}}, nil); got.Code != http.StatusNoContent {
			t.Fatalf("POST %s: %d %s", s.path, got.Code, got.Body)
		}
		got := hostNamed(t, snapshot(t, h), "api.example")
		why := ""
		if len(got.Why) > 0 {
			why = got.Why[0].Text
		}
		if got.State != s.state || why != s.why {
			t.Errorf("after %s: %s, %q; want %s, %q", s.path, got.State, why, s.state, s.why)
		}
	}
}

func TestControlsRefuse(t *testing.T) {
	w := transport(t, answers{}, weir.Config{})
	h := inspect.Handler(w, inspect.Config{Controls: true})
	with := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	good := url.Values{"host": {"api.example"}, "for": {"1h"}}
	tests := []struct {
		name   string
		form   url.Values
		change func(*http.Request)
		want   int
	}{
		{"another site", good, with("Sec-Fetch-Site", "cross-site"), 403},
		{"another port", good, with("Sec-Fetch-Site", "same-site"), 403},
		{"an old browser elsewhere", good, with("Origin", "http://evil.example"), 403},
		{"another name", good, func(r *http.Request) { r.Host = "evil.example" }, 403},
		{"no host", url.Values{"for": {"1h"}}, nil, 400},
		{"no time", url.Values{"host": {"api.example"}}, nil, 400},
		{"a time that is none", url.Values{"host": {"api.example"}, "for": {"soon"}}, nil, 400},
		{"a time in the past", url.Values{"host": {"api.example"}, "for": {"-1s"}}, nil, 400},
		{"for ever", url.Values{"host": {"api.example"}, "for": {(24*time.Hour + 1).String()}}, nil, 400},
		{"too much", url.Values{"pad": {strings.Repeat("x", 5000)}, "host": {"api.example"}, "for": {"1h"}}, nil, 400},
		{"this page", good, with("Sec-Fetch-Site", "same-origin"), 204},
	}
	for _, tt := range tests {
		if got := post(h, "/pause", tt.form, tt.change).Code; got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
		if n := len(snapshot(t, h).Hosts); (n > 0) != (tt.want == 204) {
			t.Errorf("%s: %d hosts known", tt.name, n)
		}
	}
	if got := ask(h, "GET", "/pause", nil).Code; got == http.StatusNoContent {
		t.Error("GET pauses")
	}
}
