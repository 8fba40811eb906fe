package main

import (
	"path"
	"path/filepath"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for url, want := range map[string]string{
		"https://Example.COM":                              "example.com/index.html",
		"https://example.com.:443/a/b.txt":                 "example.com/a/b.txt",
		"http://example.com:443/a":                         "example.com_443/a",
		"http://[::1]:8080/a":                              "__1_8080/a",
		"https://example.com/a/":                           "example.com/a/index.html",
		"https://example.com/a?x=1&y=%2F/..":               "example.com/a@x=1&y=%2F%2F..",
		"https://example.com/../../etc/passwd":             "example.com/%2E%2E/%2E%2E/etc/passwd",
		"https://example.com/%2e%2e/%2E":                   "example.com/%2E%2E/%2E",
		"https://example.com/a%2Fb%5Cc":                    "example.com/a%2Fb%5Cc",
		"https://example.com/a%00b%0Ac:d":                  "example.com/a%00b%0Ac%3Ad",
		"https://example.com/gr%C3%BC%C3%9Fe.txt":          "example.com/grüße.txt",
		"https://example.com/%FF":                          "example.com/%EF%BF%BD",
		"https://example.com/" + longest + "/b?" + longest: "",
	} {
		j, err := parse(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if want != "" && j.file != want {
			t.Errorf("%s: %q, want %q", url, j.file, want)
		}
		if !filepath.IsLocal(j.file) {
			t.Errorf("%s: %q leads out of the folder", url, j.file)
		}
		for _, s := range strings.Split(j.file, "/") {
			if len(s) > 200 {
				t.Errorf("%s: a name of %d bytes", url, len(s))
			}
		}
	}
}

var longest = strings.Repeat("ä", 500)

// No two URLs share a file, and none is another's folder; in any order of the
// list, each has the same name.
func TestNamesDoNotCollide(t *testing.T) {
	urls := []string{
		"https://example.com/a", "http://example.com/a", "https://example.com/A",
		"https://example.com/a/b", "https://example.com/a/b/c", "https://example.com//a/b/c",
		"https://example.com/d", "https://example.com/d?x", "https://example.com/d@x",
	}
	jobs, err := plan(urls, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	names, folders := map[string]string{}, map[string]bool{}
	for _, j := range jobs {
		key := strings.ToLower(j.file)
		if names[key] != "" {
			t.Errorf("%s and %s are both %s", names[key], j.url, j.file)
		}
		names[key] = j.url.String()
		for dir := path.Dir(key); dir != "."; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	for name := range names {
		if folders[name] {
			t.Errorf("%s is a file and a folder", name)
		}
	}
	if got := names["example.com/d"]; got != "https://example.com/d" {
		t.Errorf("example.com/d stands for %q: a URL that collides with none keeps its plain name", got)
	}
	var backwards []string
	for i := range urls {
		backwards = append(backwards, urls[len(urls)-1-i])
	}
	again, err := plan(backwards, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range again {
		if names[strings.ToLower(j.file)] != j.url.String() {
			t.Errorf("%s is %s in another order", j.url, j.file)
		}
	}
}
