package pattern

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	good := map[string]string{
		"api.github.com":               "api.github.com",
		"API.GitHub.com.":              "api.github.com",
		"*":                            "*",
		"*.Example.com":                "*.example.com",
		"GET api.github.com/search/":   "GET api.github.com/search/",
		"get h/a":                      "GET h/a",
		"127.0.0.1:8080/v1/*/items":    "127.0.0.1:8080/v1/*/items",
		"[::1]:8080":                   "[::1]:8080",
		"h:443/a":                      "h/a",
		"h/":                           "h",
		"xn--bcher-kva.example:444/x/": "xn--bcher-kva.example:444/x/",
	}
	for text, want := range good {
		if p, err := Parse(text); err != nil || p.Text != want {
			t.Errorf("Parse(%q) = %q, %v; want %q", text, p.Text, err, want)
		}
		if p, err := Parse(want); err != nil || p.Text != want {
			t.Errorf("Parse(%q) = %q, %v: not stable", want, p.Text, err)
		}
	}
	for _, text := range []string{
		"", " ", "GET ", "/path", "http://h", "h:0", "h:99999", "h:x", "h:", "a b c", "a*b", "*.", "*x", "h/a*", "h/?q",
		"::1", "u@h", "h..x", ".", "G@T h", "h/a b", "*.*",
	} {
		if p, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) = %+v, want an error", text, p)
		} else if !strings.Contains(err.Error(), "pattern") {
			t.Errorf("Parse(%q): %v does not say pattern", text, err)
		}
	}
}

// TestSchemes: the mistake that is made most often is named.
func TestSchemes(t *testing.T) {
	for _, text := range []string{"http://h", "https://h:8443/v1/", "GET https://h/v1/"} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), "has no scheme: leave out \"http") {
			t.Errorf("Parse(%q): %v", text, err)
		}
	}
	if p, err := Parse("h/to/http://x"); err != nil {
		t.Errorf("a path may look so: %+v, %v", p, err)
	}
}

func TestMatch(t *testing.T) {
	tests := []struct {
		pattern, method, host, path string
		want                        bool
	}{
		{"h", "GET", "h", "/any", true},
		{"h", "GET", "g", "/", false},
		{"*", "GET", "g", "/", true},
		{"*.x.com", "GET", "a.x.com", "/", true},
		{"*.x.com", "GET", "a.b.x.com", "/", true},
		{"*.x.com", "GET", "x.com", "/", false},
		{"*.x.com", "GET", ".x.com", "/", false},
		{"*.x.com", "GET", "ax.com", "/", false},
		{"GET h", "", "h", "/", true},
		{"GET h", "POST", "h", "/", false},
		{"h/a/", "GET", "h", "/a/b/c", true},
		{"h/a/", "GET", "h", "/a/", true},
		{"h/a/", "GET", "h", "/a", false},
		{"h/a/", "GET", "h", "/ab/", false},
		{"h/a", "GET", "h", "/a", true},
		{"h/a", "GET", "h", "/a/b", false},
		{"h/a/*/c", "GET", "h", "/a/b/c", true},
		{"h/a/*/c", "GET", "h", "/a//c", false},
		{"h/a/*/c", "GET", "h", "/a/b/d/c", false},
		{"h/*/", "GET", "h", "/x/y/z", true},
		{"h/a", "GET", "h", "", false},
	}
	for _, tt := range tests {
		p, err := Parse(tt.pattern)
		if err != nil {
			t.Fatal(err)
		}
		r := &http.Request{Method: tt.method, URL: &url.URL{Host: tt.host, Path: tt.path}}
		if got := p.Match(tt.host, r); got != tt.want {
			t.Errorf("%q matches %s %s%s: %v, want %v", tt.pattern, tt.method, tt.host, tt.path, got, tt.want)
		}
	}
}

func TestSet(t *testing.T) {
	s, err := NewSet(map[string]int{"*": 1, "*.x.com": 2, "*.b.x.com": 3, "a.b.x.com": 4, "a.b.x.com/p/": 5, "POST *.x.com": 6})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{"y": 1, "a.x.com": 2, "c.b.x.com": 3, "a.b.x.com": 4} {
		if r := s.Host(host); !r.Found || r.Value != want {
			t.Errorf("%s: %v, want %d", host, r.Value, want)
		}
	}
	r := s.Host("a.b.x.com")
	if r.Len() != 2 {
		t.Fatalf("%d routes, want 2", r.Len())
	}
	req := &http.Request{Method: "POST", URL: &url.URL{Path: "/p/q"}}
	if n := testing.AllocsPerRun(100, func() {
		if !r.Match(0, req) || !r.Match(1, req) {
			t.Error("no match")
		}
	}); n != 0 {
		t.Errorf("%v allocations a match", n)
	}
	if _, err := NewSet(map[string]int{"h": 1, "H.": 2}); err == nil || !strings.Contains(err.Error(), "mean the same") {
		t.Errorf("twins: %v", err)
	}
	if _, err := NewSet(map[string]int{"h:x": 1}); err == nil {
		t.Error("a bad pattern is no error")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"GET api.github.com/search/", "*.example.com", "[::1]:80/x", "*"} {
		f.Add(s, "/search/x")
	}
	f.Fuzz(func(t *testing.T, text, path string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		q, err := Parse(p.Text)
		if err != nil || q != p {
			t.Fatalf("%q: %+v, again %+v, %v", text, p, q, err)
		}
		p.Match("example.com", &http.Request{Method: "GET", URL: &url.URL{Path: path}})
	})
}
