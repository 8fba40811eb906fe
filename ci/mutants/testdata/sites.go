package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
)

// site is a place and a change to it. A change either wraps what stands there,
// so that others may stand inside, or replaces it.
type site struct {
	id         int
	file       string
	line       int
	in         string // the function, as in window.at
	what       string
	start, end int
	wraps      bool
	// make returns the new text, with %d for the id; {} is what stood there.
	text string
}

// clashes reports whether s and o cannot both be compiled in.
func (s site) clashes(o site) bool {
	if s.file != o.file || s.end <= o.start || o.end <= s.start {
		return false
	}
	outer := s.wraps && s.start < o.start && o.end < s.end
	inner := o.wraps && o.start < s.start && s.end < o.end
	return !outer && !inner
}

// edit applies those of sites that are in file. Lines keep their numbers.
func edit(text []byte, file string, sites []site) []byte {
	type insert struct {
		at, order int
		text      string
		cut       int // bytes left out after it
	}
	var all []insert
	for _, s := range sites {
		if s.file != file {
			continue
		}
		changed := strings.ReplaceAll(s.text, "%d", strconv.Itoa(s.id))
		if s.wraps {
			before, after, _ := strings.Cut(changed, "{}")
			all = append(all, insert{s.start, 1, before, 0}, insert{s.end, 0, after, 0})
		} else {
			all = append(all, insert{s.start, 1, changed, s.end - s.start})
		}
	}
	slices.SortStableFunc(all, func(a, b insert) int {
		if a.at != b.at {
			return a.at - b.at
		}
		return a.order - b.order
	})
	var out []byte
	at := 0
	for _, i := range all {
		out = append(out, text[at:i.at]...)
		out = append(out, i.text...)
		at = i.at + i.cut
	}
	return append(out, text[at:]...)
}

// finder collects the sites of one file.
type finder struct {
	file  string
	in    string
	text  string
	fset  *token.FileSet
	found []site
}

func sitesOf(file string, text []byte) ([]site, error) {
	f := &finder{file: file, text: string(text), fset: token.NewFileSet()}
	tree, err := parser.ParseFile(f.fset, file, text, 0)
	if err != nil {
		return nil, err
	}
	for _, d := range tree.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
			f.in = f.name(fn)
			f.walk(fn.Body, f.types(fn.Type))
		}
	}
	return f.found, nil
}

func (f *finder) offset(p token.Pos) int { return f.fset.Position(p).Offset }

func (f *finder) src(n ast.Node) string { return f.text[f.offset(n.Pos()):f.offset(n.End())] }

// name is a function's name, after its receiver's if it has one.
func (f *finder) name(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	recv := strings.TrimPrefix(f.src(fn.Recv.List[0].Type), "*")
	recv, _, _ = strings.Cut(recv, "[")
	return recv + "." + fn.Name.Name
}

func (f *finder) types(t *ast.FuncType) []string {
	var all []string
	if t.Results != nil {
		for _, field := range t.Results.List {
			for range max(1, len(field.Names)) {
				all = append(all, f.src(field.Type))
			}
		}
	}
	return all
}

// add notes a change of n, unless its text is too long to be read in a list.
func (f *finder) add(n ast.Node, wraps bool, what, text string) {
	src := strings.Join(strings.Fields(f.src(n)), " ")
	if len(src) > 70 {
		src = src[:70] + "..."
	}
	f.found = append(f.found, site{
		file: f.file, in: f.in, line: f.fset.Position(n.Pos()).Line, what: fmt.Sprintf(what, src),
		start: f.offset(n.Pos()), end: f.offset(n.End()), wraps: wraps, text: text,
	})
}

// walk looks at a function's body.
func (f *finder) walk(body ast.Node, results []string) {
	var room ast.Expr // that a make reserves: nothing but speed depends on it
	ast.Inspect(body, func(n ast.Node) bool {
		if n != nil && n == room {
			return false
		}
		switch n := n.(type) {
		case *ast.CallExpr:
			room = f.reserved(n, room)
		case *ast.FuncLit:
			f.walk(n.Body, f.types(n.Type))
			return false
		case *ast.GenDecl:
			return n.Tok != token.CONST
		case *ast.IfStmt:
			f.condition(n.Cond)
		case *ast.ForStmt:
			if n.Cond != nil {
				f.condition(n.Cond)
			}
		case *ast.BinaryExpr:
			f.binary(n)
		case *ast.BlockStmt:
			f.calls(n.List)
		case *ast.CaseClause:
			f.calls(n.Body)
		case *ast.ReturnStmt:
			f.zero(n, results)
		}
		return true
	})
}

// reserved is the argument of a make that says for how much there is room, if
// there is one; otherwise it is what it was before.
func (f *finder) reserved(c *ast.CallExpr, was ast.Expr) ast.Expr {
	if f.src(c.Fun) != "make" {
		return was
	}
	if _, ok := c.Args[0].(*ast.MapType); ok && len(c.Args) == 2 || len(c.Args) == 3 {
		return c.Args[len(c.Args)-1]
	}
	return was
}

// condition negates what is no comparison: of those binary takes care.
func (f *finder) condition(c ast.Expr) {
	if b, ok := c.(*ast.BinaryExpr); ok && b.Op != token.LAND && b.Op != token.LOR {
		return
	}
	f.add(c, true, "not (%s)", "mutantIs(%d) != ({})")
}

func (f *finder) binary(b *ast.BinaryExpr) {
	swaps := map[token.Token]token.Token{
		token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
		token.EQL: token.NEQ, token.NEQ: token.EQL, token.LAND: token.LOR, token.LOR: token.LAND,
	}
	x, y := f.src(b.X), f.src(b.Y)
	if strings.Contains(x+y, "func(") {
		return // whose statements cannot be put on one line
	}
	was := x + " " + b.Op.String() + " " + y
	lazy := func(what, changed string) {
		f.add(b, false, "%s "+what, "func() bool { if mutantIs(%d) { return "+flat(changed)+" }; return "+flat(was)+" }()")
	}
	if to, ok := swaps[b.Op]; ok {
		lazy("with "+to.String(), x+" "+to.String()+" "+y)
	}
	number, ok := b.Y.(*ast.BasicLit)
	if !ok || number.Kind != token.INT {
		return
	}
	v, err := strconv.ParseInt(number.Value, 0, 64)
	if err != nil {
		return
	}
	more := x + " " + b.Op.String() + " " + strconv.FormatInt(v+1, 10)
	switch b.Op {
	case token.LSS, token.LEQ, token.GTR, token.GEQ, token.EQL, token.NEQ:
		lazy("with one more", more)
	case token.ADD, token.SUB, token.MUL, token.QUO:
		if pure(b.X) {
			f.add(b, false, "%s with one more", "mutantPick(%d, "+flat(more)+", "+flat(was)+")")
		}
	}
}

// flat keeps line numbers right where a text is repeated.
func flat(s string) string { return strings.Join(strings.Fields(s), " ") }

// pure reports that x can be computed twice.
func pure(x ast.Expr) bool {
	ok := true
	ast.Inspect(x, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.CallExpr, *ast.FuncLit, *ast.IndexExpr, *ast.StarExpr:
			ok = false
		}
		return ok
	})
	return ok
}

// calls leaves out statements that are calls, deferred ones too.
func (f *finder) calls(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); ok && f.src(call.Fun) != "panic" {
				f.add(s, true, "without %s", "if !mutantIs(%d) { {} }")
			}
		case *ast.DeferStmt:
			f.add(s, true, "without %s", "if !mutantIs(%d) { {} }")
		}
	}
}

// zero returns zeros, unless it does so already.
func (f *finder) zero(r *ast.ReturnStmt, results []string) {
	if len(r.Results) == 0 || len(results) == 0 {
		return
	}
	plain := true
	for _, x := range r.Results {
		switch f.src(x) {
		case "nil", "0", "false", `""`, "time.Time{}":
		default:
			plain = plain && strings.HasSuffix(f.src(x), "{}")
		}
	}
	if plain {
		return
	}
	zeros := make([]string, len(results))
	for i, t := range results {
		zeros[i] = "*new(" + flat(t) + ")"
	}
	f.add(r, true, "zero for %s", "if mutantIs(%d) { return "+strings.Join(zeros, ", ")+" }; {}")
}
