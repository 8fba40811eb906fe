// Package archtest tests the structure of the repository: which package may import
// which, what the root module requires and its packages export, how long documentation is,
// which tests may see what their package does not export or be skipped, how tests make
// timers, and that the mutants in ci/mutants match the code.
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

// allowed lists, for each folder, what its code may import besides the standard library. Tests may
// import more. The rules of a folder hold for those below it that have none of their own. "weir"
// stands for the root module, and an entry that ends in "/" for all packages below it.
var allowed = map[string][]string{
	".":        {"weir/throttle", "weir/retry", "weir/breaker", "weir/internal/"},
	"headers":  {},
	"throttle": {"weir/headers", "weir/internal/", "weir/throttle/store", "weir/throttle/internal/", "golang.org/x/time/rate"},
	"retry":    {"weir/headers", "weir/internal/", "github.com/cenkalti/backoff/v4", "github.com/hashicorp/go-retryablehttp"},
	"breaker":  {"weir/headers", "weir/internal/", "github.com/sony/gobreaker/v2"},
	"inspect":  {"weir", "weir/throttle", "weir/retry", "weir/breaker", "weir/internal/"},
	"internal": {"weir/internal/"},

	"internal/trip": {"weir/headers", "weir/internal/"}, // it parses the headers of an answer once, for all layers

	"throttle/store":     {},
	"throttle/storetest": {"weir/throttle/store"},

	"throttle/internal/absence":     {"weir/throttle/internal/meter"},
	"throttle/internal/answer":      {"weir/headers", "weir/internal/peek"},
	"throttle/internal/caller":      {},
	"throttle/internal/histogram":   {},
	"throttle/internal/kind":        {},
	"throttle/internal/words":       {},
	"throttle/internal/meter":       {"golang.org/x/time/rate"},
	"throttle/internal/concurrency": {"weir/throttle/internal/meter"},
	"throttle/internal/attribution": {"weir/throttle/internal/meter", "weir/throttle/internal/refill"},
	"throttle/internal/refill":      {"weir/throttle/internal/meter"},
	"throttle/internal/cooldown":    {"weir/throttle/internal/meter", "weir/throttle/internal/words"},
	"throttle/internal/stated": {"weir/headers", "weir/throttle/internal/attribution", "weir/throttle/internal/cooldown", "weir/throttle/internal/fleet",
		"weir/throttle/internal/meter", "weir/throttle/internal/refill", "weir/throttle/internal/words"},
	"throttle/internal/queue":    {"weir/throttle/internal/meter"},
	"throttle/internal/fleet":    {"weir/throttle/internal/meter", "weir/throttle/store"},
	"throttle/internal/farstore": {"weir/throttle/store"},

	"throttle/internal/learn": {"weir/throttle/internal/cooldown", "weir/throttle/internal/meter"},
}

// TestPackagesImportOnlyWhatTheyMay: each package of the root module imports only what allowed
// lists for it.
func TestPackagesImportOnlyWhatTheyMay(t *testing.T) {
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
			t.Errorf("%s: allowed has no rule for this folder", rel)
			return nil
		}
		checked++
		checkFile(t, file, rules)
		return nil
	})
	if err != nil || checked < 10 {
		t.Fatalf("checked the imports of %d files, want at least 10; error: %v", checked, err)
	}
}

// enter tells WalkDir to skip a folder that is not of the root module, is hidden, or has test data.
func enter(root, dir string, d fs.DirEntry) error {
	if dir == root {
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil || strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" {
		return filepath.SkipDir
	}
	return nil
}

// rulesFor returns the rules of a folder, or else of the closest one above it; false: there are none.
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

// checkFile reports the imports of a file that rules do not allow.
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
			t.Errorf("%s imports %s, want only the standard library and %q", file, imported, rules)
		}
	}
}

// TestTheRootModuleRequiresFewModules: users of weir get these modules, at these versions, and need
// no newer Go than go.mod says. rapid is for tests alone, so any version of it will do.
func TestTheRootModuleRequiresFewModules(t *testing.T) {
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
		t.Fatalf("go.mod requires %v directly, want %v", got, want)
	}
	for i, w := range want {
		if !strings.HasPrefix(got[i], w) {
			t.Errorf("go.mod requires %s, want %s", got[i], w)
		}
	}
}
