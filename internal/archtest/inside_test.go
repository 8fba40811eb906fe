package archtest

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// inside is how many files of tests may see what their package does not export.
// Each holds its package to how it is built today, so they must not become more:
// a new test takes the package's surface, and these numbers only fall.
var inside = map[string]int{".": 0, "throttle": 10, "breaker": 2, "retry": 6, "headers": 7, "inspect": 1}

func TestNoMoreTestsLookInside(t *testing.T) {
	for dir, most := range inside {
		files, err := filepath.Glob(filepath.Join("..", "..", dir, "*_test.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, len(files), err)
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
			t.Errorf("%s: %d files of tests look inside, want at most %d: write the new one in package %s_test", dir, got, most, filepath.Base(dir))
		}
	}
}
