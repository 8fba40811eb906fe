package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestSurfaceNamesNothingInternal: no exported function, method or field of a package that users can import has a type of
// internal/: users could not name that type, and it could not be changed any more.
func TestSurfaceNamesNothingInternal(t *testing.T) {
	root, checked := filepath.Join("..", ".."), 0
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == "internal" {
				return filepath.SkipDir
			}
			return enter(root, file, d)
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			return err
		}
		checked++
		hidden := make(map[string]bool) // names under which internal packages are imported
		for _, spec := range f.Imports {
			if p, _ := strconv.Unquote(spec.Path.Value); strings.Contains(p, "/internal/") {
				name := p[strings.LastIndex(p, "/")+1:]
				if spec.Name != nil {
					name = spec.Name.Name
				}
				hidden[name] = true
			}
		}
		for _, decl := range f.Decls {
			for _, n := range surface(decl) {
				ast.Inspect(n, func(n ast.Node) bool {
					if s, ok := n.(*ast.SelectorExpr); ok {
						if x, ok := s.X.(*ast.Ident); ok && hidden[x.Name] {
							t.Errorf("%v: %s.%s is of an internal package, but users see it here", fset.Position(s.Pos()), x.Name, s.Sel.Name)
						}
					}
					return true
				})
			}
		}
		return nil
	})
	if err != nil || checked < 100 {
		t.Fatalf("checked %d files, want at least 100; error: %v", checked, err)
	}
}

// surface returns the types in decl that users see.
func surface(decl ast.Decl) (nodes []ast.Node) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv)) {
			nodes = append(nodes, d.Type)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			s, ok := spec.(*ast.TypeSpec)
			if !ok || !s.Name.IsExported() {
				continue
			}
			fields, ok := s.Type.(*ast.StructType)
			if !ok {
				nodes = append(nodes, s.Type)
				continue
			}
			for _, field := range fields.Fields.List {
				for _, name := range field.Names {
					if name.IsExported() {
						nodes = append(nodes, field.Type)
					}
				}
			}
		}
	}
	return nodes
}

// exportedReceiver reports whether the receiver's type is exported.
func exportedReceiver(list *ast.FieldList) bool {
	x := list.List[0].Type
	if star, ok := x.(*ast.StarExpr); ok {
		x = star.X
	}
	id, ok := x.(*ast.Ident)
	return ok && id.IsExported()
}
