package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// kinds are the names that a test file of the root may have, without _test.go, if it does not test
// one of its files: examples, benchmarks, and one call through all layers.
var kinds = []string{"example", "bench", "transport"}

// TestRootIsSmall: the root package puts the layers together and has no policy. Its
// tests stand beside what they test; those of the whole chain are in
// internal/chaintest, those of the guides in internal/doctest.
func TestRootIsSmall(t *testing.T) {
	root := filepath.Join("..", "..")
	files, err := filepath.Glob(filepath.Join(root, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	code := 0
	for _, file := range files {
		subject, isTest := strings.CutSuffix(filepath.Base(file), "_test.go")
		if !isTest {
			code++
			continue
		}
		if _, err := os.Stat(filepath.Join(root, subject+".go")); err != nil && !slices.Contains(kinds, subject) {
			t.Errorf("%s_test.go: the root has no %s.go that it could test; the tests of the whole chain are in internal/chaintest", subject, subject)
		}
	}
	if code > 4 {
		t.Errorf("the root has %d files of code, want at most 4", code)
	}
}
