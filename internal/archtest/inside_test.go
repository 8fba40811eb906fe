package archtest

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// inside is how many test files of a folder may be of the package itself, and so see what it does
// not export. Such a file fails when the package is built differently, even if it does the same.
// So these numbers may fall, but must not rise: new tests are of package x_test.
var inside = map[string]int{".": 0, "throttle": 10, "breaker": 2, "retry": 6, "headers": 7, "inspect": 1}

// TestNoMoreTestsLookInside: no folder has more such files than inside says.
func TestNoMoreTestsLookInside(t *testing.T) {
	for dir, most := range inside {
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: found %d test files, want at least one; error: %v", dir, len(files), err)
		}
		got := 0
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(f.Name.Name, "_test") {
				got++
			}
		}
		if got > most {
			t.Errorf("%s: %d test files see what the package does not export, want at most %d: write the new one in package %s_test", dir, got, most, filepath.Base(dir))
		}
	}
}
