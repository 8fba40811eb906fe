package doctest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fields are the fields of weir.Config, by the package whose Config they have.
var fields = map[string]string{"throttle": "Throttle", "retry": "Retry", "breaker": "Breaker"}

// Names returns the names that the packages in folders of root declare, in each way that
// a guide may write them: "retry.New", "retry.Config.Delay", "Config.Delay" and
// "Retry.Delay".
func Names(t *testing.T, root string, folders ...string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", folder, len(files), err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				declared(d, func(name, member string) { add(names, f.Name.Name, name, member) })
			}
		}
	}
	return names
}

// add adds a name that pkg declares or, if member is not "", that field or method of it.
func add(names map[string]bool, pkg, name, member string) {
	if member == "" {
		names[pkg+"."+name] = true
		return
	}
	names[pkg+"."+name+"."+member] = true
	names[name+"."+member] = true
	if name == "Config" && fields[pkg] != "" {
		names[fields[pkg]+"."+member] = true
	}
}

// declared calls add for each name in d, and for each field and method of a type.
func declared(d ast.Decl, add func(name, member string)) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			add(d.Name.Name, "")
			return
		}
		of := d.Recv.List[0].Type
		if p, ok := of.(*ast.StarExpr); ok {
			of = p.X
		}
		if id, ok := of.(*ast.Ident); ok {
			add(id.Name, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					add(n.Name, "")
				}
			case *ast.TypeSpec:
				add(s.Name.Name, "")
				if st, ok := s.Type.(*ast.StructType); ok {
					for _, f := range st.Fields.List {
						for _, n := range f.Names {
							add(s.Name.Name, n.Name)
						}
					}
				}
			}
		}
	}
}

var quoted = regexp.MustCompile("`([a-zA-Z]+(?:\\.[A-Z]\\w*)+)")

// Quoted returns the names in text that stand in backquotes and have a dot, as
// `retry.New` and `Retry.Delay: f` do.
func Quoted(text string) []string {
	var found []string
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		found = append(found, m[1])
	}
	return found
}

// Text returns the text of a file without its code blocks.
func Text(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile("(?s)\n```.*?\n```").ReplaceAllString(string(text), "")
}
