package pattern

import (
	"net/http"
	"strings"
)

// tree finds the routes (patterns with a method or a path) that a request matches. It
// walks the segments of the request's path, so the number of routes does not matter.
// It does not change once it is made.
type tree struct {
	any  []leaf // routes of any path
	root node
}

// node is a place in a path.
type node struct {
	next  map[string]*node // by the next segment
	star  *node            // by any next segment that is not empty
	ends  []leaf           // routes whose path ends here
	below []leaf           // routes whose path ends here in "/": they match all below
}

// leaf is a route whose path has been followed to its end.
type leaf struct {
	route  int    // its number in Routes
	method string // "": any
}

func (l leaf) match(method string) bool {
	return l.method == "" || l.method == method || l.method == "GET" && method == ""
}

func (t *tree) add(route int, p *Pattern) {
	l := leaf{route, p.Method}
	if p.Path == "" {
		t.any = append(t.any, l)
		return
	}
	n, rest := &t.root, p.Path[1:]
	for {
		segment, tail, more := strings.Cut(rest, "/")
		if !more && segment == "" {
			n.below = append(n.below, l)
			return
		}
		n = n.child(segment)
		if !more {
			n.ends = append(n.ends, l)
			return
		}
		rest = tail
	}
}

// child returns the node of the next segment, and makes it if there is none.
func (n *node) child(segment string) *node {
	if segment == "*" {
		if n.star == nil {
			n.star = new(node)
		}
		return n.star
	}
	if n.next == nil {
		n.next = make(map[string]*node)
	}
	c := n.next[segment]
	if c == nil {
		c = new(node)
		n.next[segment] = c
	}
	return c
}

// each calls f with every route that r matches, in any order.
func (t *tree) each(r *http.Request, f func(route int)) {
	visit(t.any, r.Method, f)
	if r.URL != nil && len(r.URL.Path) > 1 {
		t.root.walk(r.Method, r.URL.Path[1:], f)
	}
}

func (n *node) walk(method, rest string, f func(route int)) {
	segment, tail, more := strings.Cut(rest, "/")
	next := n.next[segment]
	for _, c := range [...]*node{next, n.star} {
		switch {
		case c == nil || c == n.star && segment == "":
		case more:
			visit(c.below, method, f)
			c.walk(method, tail, f)
		default:
			visit(c.ends, method, f)
		}
	}
}

func visit(leaves []leaf, method string, f func(route int)) {
	for _, l := range leaves {
		if l.match(method) {
			f(l.route)
		}
	}
}
