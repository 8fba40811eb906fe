package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mayHold matches the conditions of which a function that skips a test must mention one: that CI is
// not set, so that the test fails in CI instead; that -short is given, which CI does not always
// give; or that the system is another one than Linux, on which CI runs.
var mayHold = regexp.MustCompile(`os\.Getenv\("CI"\)|testing\.Short\(\)|runtime\.GOOS`)

// programs are Test functions that are not tests: another program runs them, and says in the
// environment or in flags what they are to do. They may be skipped.
var programs = []string{"TestRun", "TestReport", "TestTable", "TestTrace", "TestShots", "TestStandstillChild"}

// TestNothingIsSkippedInCI: each call of Skip is in a function that mentions one of these conditions.
func TestNothingIsSkippedInCI(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(filepath.Join("..", ".."), func(file string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".go") {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, text, 0)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || slices.Contains(programs, fn.Name.Name) {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || !isOf(call.Fun, "t", "Skip", "Skipf", "SkipNow") && !isOf(call.Fun, "b", "Skip", "Skipf", "SkipNow") {
					return true
				}
				seen++
				if !mayHold.Match(text[fset.Position(fn.Pos()).Offset:fset.Position(fn.End()).Offset]) {
					t.Errorf("%s: the function skips a test, but does not mention %s: with CI=true nothing may be skipped", fset.Position(call.Pos()), mayHold)
				}
				return true
			})
		}
		return nil
	})
	if err != nil || seen < 10 {
		t.Fatalf("found %d calls of Skip, want at least 10; error: %v", seen, err)
	}
}
