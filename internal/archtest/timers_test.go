package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTimersOfTestsAreNeverDueAtOnce: testnet.Wait says why. A duration that
// may be zero belongs there, or in max(1, d).
func TestTimersOfTestsAreNeverDueAtOnce(t *testing.T) {
	fset := token.NewFileSet()
	var files []*ast.File
	err := filepath.WalkDir(filepath.Join("..", ".."), func(file string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(fset, file, nil, 0)
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var known durations
	for _, f := range files {
		ast.Inspect(f, known.collect)
	}
	seen := 0
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !isOf(call.Fun, "time", "After", "AfterFunc", "NewTimer") {
				return true
			}
			seen++
			if !known.positive(call.Args[0]) {
				t.Errorf("%s: a timer that may be due when it is made", fset.Position(call.Pos()))
			}
			return true
		})
	}
	if seen < 20 {
		t.Errorf("saw %d timers", seen)
	}
}

// durations are the names of constants whose values are positive.
type durations []string

func (k *durations) collect(n ast.Node) bool {
	if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST {
		for _, spec := range d.Specs {
			s := spec.(*ast.ValueSpec)
			for i, name := range s.Names {
				if i < len(s.Values) && k.positive(s.Values[i]) {
					*k = append(*k, name.Name)
				}
			}
		}
	}
	return true
}

// positive reports whether e can be seen to be above zero if what is unknown
// in its sums is not below.
func (k durations) positive(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Kind == token.INT && e.Value != "0"
	case *ast.Ident:
		return slices.Contains(k, e.Name)
	case *ast.SelectorExpr:
		return isOf(e, "time", "Nanosecond", "Microsecond", "Millisecond", "Second", "Minute", "Hour")
	case *ast.ParenExpr:
		return k.positive(e.X)
	case *ast.BinaryExpr:
		x, y := k.positive(e.X), k.positive(e.Y)
		return e.Op == token.ADD && (x || y) || e.Op == token.MUL && x && y
	case *ast.CallExpr:
		if name, ok := e.Fun.(*ast.Ident); ok && name.Name == "max" {
			return slices.ContainsFunc(e.Args, k.positive)
		}
		return isOf(e.Fun, "time", "Duration") && k.positive(e.Args[0])
	}
	return false
}

// isOf reports whether e is one of the names of a package.
func isOf(e ast.Expr, pkg string, names ...string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg && slices.Contains(names, s.Sel.Name)
}
