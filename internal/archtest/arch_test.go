// Package archtest tests the structure of the repository: which package may import
// which, what the root module requires, how long documentation is, and which tests may
// look inside a package or be skipped.
package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/weirhttp/weir"

// allowed says what a folder's code may import besides the standard library.
// An entry ending in "/" stands for all below it.
var allowed = map[string][]string{
	".":        {"weir/throttle", "weir/retry", "weir/breaker", "weir/internal/"},
	"headers":  {},
	"throttle": {"weir/headers", "weir/internal/", "weir/throttle/store", "weir/throttle/internal/", "golang.org/x/time/rate"},
	"retry":    {"weir/headers", "weir/internal/", "github.com/cenkalti/backoff/v4", "github.com/hashicorp/go-retryablehttp"},
	"breaker":  {"weir/headers", "weir/internal/", "github.com/sony/gobreaker/v2"},
	"inspect":  {"weir", "weir/throttle", "weir/retry", "weir/breaker", "weir/internal/"},
	"internal": {"weir/internal/"},

	"internal/trip": {"weir/headers", "weir/internal/"}, // what an answer means is read once, for all layers

	"throttle/store":     {},
	"throttle/storetest": {"weir/throttle/store"},

	"throttle/internal/absence":     {"weir/throttle/internal/meter"},
	"throttle/internal/answer":      {"weir/headers", "weir/internal/peek"},
	"throttle/internal/caller":      {},
	"throttle/internal/histogram":   {},
	"throttle/internal/meter":       {"golang.org/x/time/rate"},
	"throttle/internal/concurrency": {"weir/throttle/internal/meter"},
	"throttle/internal/attribution": {"weir/throttle/internal/meter", "weir/throttle/internal/refill"},
	"throttle/internal/refill":      {"weir/throttle/internal/meter"},
	"throttle/internal/cooldown":    {"weir/throttle/internal/meter"},
	"throttle/internal/stated": {"weir/headers", "weir/throttle/internal/attribution", "weir/throttle/internal/cooldown", "weir/throttle/internal/fleet",
		"weir/throttle/internal/meter", "weir/throttle/internal/refill"},
	"throttle/internal/queue":    {"weir/throttle/internal/meter"},
	"throttle/internal/fleet":    {"weir/throttle/internal/meter", "weir/throttle/store"},
	"throttle/internal/farstore": {"weir/throttle/store"},

	"throttle/internal/learn": {"weir/throttle/internal/cooldown", "weir/throttle/internal/meter"},
}

func TestImports(t *testing.T) {
	root := filepath.Join("..", "..")
	checked := 0
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return enter(root, file, d)
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		rel, _ := filepath.Rel(root, filepath.Dir(file))
		rules, ok := rulesFor(filepath.ToSlash(rel))
		if !ok {
			t.Errorf("%s: no rule says what it may import", rel)
			return nil
		}
		checked++
		checkFile(t, file, rules)
		return nil
	})
	if err != nil || checked < 10 {
		t.Fatalf("checked %d files: %v", checked, err)
	}
}

// enter skips what is not of the root module.
func enter(root, dir string, d fs.DirEntry) error {
	if dir == root {
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
		return filepath.SkipDir
	}
	return nil
}

func rulesFor(dir string) ([]string, bool) {
	for ; ; dir = path.Dir(dir) {
		if rules, ok := allowed[dir]; ok {
			return rules, true
		}
		if dir == "." || dir == "/" {
			return nil, false
		}
		if path.Dir(dir) == "." { // "." is the root package, not all below it
			return nil, false
		}
	}
}

func checkFile(t *testing.T, file string, rules []string) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return
	}
	for _, spec := range f.Imports {
		imported := strings.Trim(spec.Path.Value, `"`)
		if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
			continue
		}
		if !slices.ContainsFunc(rules, func(rule string) bool {
			if rest, ours := strings.CutPrefix(rule, "weir"); ours {
				rule = module + rest
			}
			return imported == rule || strings.HasSuffix(rule, "/") && strings.HasPrefix(imported, rule)
		}) {
			t.Errorf("%s imports %s", file, imported)
		}
	}
}

func TestRequirements(t *testing.T) {
	want := []string{
		"github.com/cenkalti/backoff/v4 v4.3.0",
		"github.com/hashicorp/go-retryablehttp v0.7.8",
		"github.com/sony/gobreaker/v2 v2.4.0",
		"golang.org/x/time v0.14.0",
		"pgregory.net/rapid",
	}
	b, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^go 1\.25\.0$`).Match(b) {
		t.Error("go.mod does not say go 1.25.0")
	}
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+ v\S+)( // indirect)?$`).FindAllStringSubmatch(string(b), -1) {
		if m[2] == "" {
			got = append(got, m[1])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("direct requirements %v, want %v", got, want)
	}
	for i, w := range want {
		if !strings.HasPrefix(got[i], w) {
			t.Errorf("requires %s, want %s", got[i], w)
		}
	}
}
