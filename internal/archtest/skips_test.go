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

// mayHold matches the conditions under which a test may be skipped: where CI=true
// makes it fail instead, when -short leaves out what takes long, and on systems that
// do not have what is tested. CI runs on Linux and does not always say -short.
var mayHold = regexp.MustCompile(`os\.Getenv\("CI"\)|testing\.Short\(\)|runtime\.GOOS`)

// programs are functions in files of tests that another program runs, with what
// they are to do in their environment or in flags. They are not tests.
var programs = []string{"TestRun", "TestReport", "TestTable", "TestTrace", "TestShots", "TestStandstillChild"}

// TestNothingIsSkippedInCI: each skip stands in a function that says when it does not
// skip.
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
					t.Errorf("%s: nothing makes this test fail where CI=true", fset.Position(call.Pos()))
				}
				return true
			})
		}
		return nil
	})
	if err != nil || seen < 10 {
		t.Fatalf("saw %d skips: %v", seen, err)
	}
}
