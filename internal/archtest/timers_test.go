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

// TestTimersOfTestsAreNeverDueAtOnce: no test makes a timer whose duration may be zero: such a
// duration belongs in testnet.Wait, whose comment says why, or in max(1, d).
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
				t.Errorf("%s: the duration of this timer may be zero: use testnet.Wait or max(1, d)", fset.Position(call.Pos()))
			}
			return true
		})
	}
	if seen < 20 {
		t.Errorf("found %d timers, want at least 20", seen)
	}
}

// durations are the names of constants whose values are positive.
type durations []string

// collect adds the constants that n declares. It is called by ast.Inspect.
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

// positive reports whether e is certainly above zero. In a sum, a part whose value is not known is
// taken to be zero or more.
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
