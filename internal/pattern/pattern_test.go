package pattern

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
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
		"h:0443/a":                     "h/a",
		"h:0008080":                    "h:8080",
		"[0:0::1]/a":                   "[::1]/a",
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
		"", " ", "GET ", "/path", "http://h", "h:0", "h:99999", "h:x", "h:", "h:+80", "h:00", "a b c", "a*b", "*.", "*x", "h/a*", "h/?q",
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
	if got := matches(r, "POST", "/p/q"); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("routes %v match, want both", got)
	}
	if _, err := NewSet(map[string]int{"h": 1, "H.": 2}); err == nil || !strings.Contains(err.Error(), "mean the same") {
		t.Errorf("twins: %v", err)
	}
	if _, err := NewSet(map[string]int{"h:x": 1}); err == nil {
		t.Error("a bad pattern is no error")
	}
}

// matches are the routes of a request, in order.
func matches[V any](r *Routes[V], method, path string) (all []int) {
	r.Each(&http.Request{Method: method, URL: &url.URL{Path: path}}, func(i int) { all = append(all, i) })
	slices.Sort(all)
	return all
}

// TestRoutesAgreeWithPatterns: the routes that are found are those whose pattern
// matches by itself.
func TestRoutesAgreeWithPatterns(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	word := func(words ...string) string { return words[r.IntN(len(words))] }
	path := func(words ...string) (p string) {
		for range 1 + r.IntN(4) {
			p += "/" + word(words...)
		}
		return p + word("", "", "/")
	}
	found := 0
	for range 300 {
		m := make(map[string]int)
		for i := range 40 {
			text := word("", "", "GET ", "POST ") + word("h", "h", "*", "*.x") + path("a", "b", "c", "*")
			if _, err := NewSet(map[string]int{text: i}); err == nil {
				m[text] = i
			}
		}
		s, err := NewSet(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, host := range []string{"h", "y.x", "z"} {
			routes := s.Host(host)
			for range 20 {
				method, p := word("", "GET", "POST", "PUT"), word(path("a", "b", "c", ""), "", "/", "*")
				var want []int
				req := &http.Request{Method: method, URL: &url.URL{Path: p}}
				for i := range routes.Len() {
					if routes.routes[i].p.MatchRoute(req) {
						want = append(want, i)
					}
				}
				found += len(want)
				if got := matches(routes, method, p); !slices.Equal(got, want) {
					t.Fatalf("%s %q: routes %v, want %v of %v", method, p, got, want, m)
				}
			}
		}
	}
	if found < 1000 {
		t.Errorf("%d matches: the test has no teeth", found)
	}
}

// TestHostsShareRoutes: what is known of a host's patterns takes memory by the
// patterns, not by the hosts.
func TestHostsShareRoutes(t *testing.T) {
	s, err := NewSet(map[string]int{"*/a/": 1, "*.x/b": 2, "GET *.y.x/c": 3, "h": 4, "h/d": 5})
	if err != nil {
		t.Fatal(err)
	}
	shared := make(map[*Routes[int]]int)
	for i := range 1000 {
		for _, host := range []string{"%d", "h%d.x", "h%d.y.x"} {
			shared[s.Host(fmt.Sprintf(host, i))]++
		}
	}
	shared[s.Host("h")]++
	if len(shared) != 4 || s.Host("h").Len() != 2 || s.Host("q.y.x").Len() != 3 {
		t.Errorf("3001 hosts have %d sets of routes, want 4", len(shared))
	}
	none, err := NewSet(map[string]int{"h": 1})
	if err != nil || none.Host("a") != none.Host("b") || none.Host("a").Len() != 0 || none.Host("h") == none.Host("a") {
		t.Errorf("hosts that no pattern names do not share theirs: %v", err)
	}
}

func manyRoutes(t testing.TB, n int) *Routes[int] {
	m := make(map[string]int)
	for i := range n {
		m[fmt.Sprintf("GET h/v1/r%d/*/items", i)] = i
	}
	s, err := NewSet(m)
	if err != nil {
		t.Fatal(err)
	}
	return s.Host("h")
}

func TestRoutesDoNotAllocate(t *testing.T) {
	r := manyRoutes(t, 200)
	req := &http.Request{Method: "GET", URL: &url.URL{Path: "/v1/r7/x/items"}}
	found := 0
	if n := testing.AllocsPerRun(100, func() { r.Each(req, func(int) { found++ }) }); n != 0 || found != 101 {
		t.Errorf("%v allocations a match and %d matches of 101, want none and all", n, found)
	}
}

// BenchmarkRoutes finds the route of a request among many.
func BenchmarkRoutes(b *testing.B) {
	for _, n := range []int{1, 10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := manyRoutes(b, n)
			req := &http.Request{Method: "GET", URL: &url.URL{Path: "/v1/r0/x/items"}}
			b.ReportAllocs()
			for b.Loop() {
				found := 0
				r.Each(req, func(int) { found++ })
				if found != 1 {
					b.Fatal(found)
				}
			}
		})
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
