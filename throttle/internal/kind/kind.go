// Package kind says which kind of request one is, and what that is called.
//
// # Words
//
// Limits bind kinds of request. A kind is the requests that one budget's pattern matches or, of
// those that none does, a method and the first segment of the path, which goes on where that
// names only an API or its version.
//
// # Promises
//
// The name of a kind is as in a budget's pattern. What may be a secret is not shown whole: some
// APIs have their key in the path. No more than 64 bytes of a path are kept.
//
// # Invariants
//
// There is no state here. Keys are equal if and only if they are of one kind.
package kind

import (
	"net/http"
	"net/url"
	"strings"
)

// A Key is one kind of request.
type Key struct {
	Method string // "": of a pattern
	Rest   string // the pattern, or the first segment of the path without the slash before it
}

const most = 64 // bytes of a path that are kept

// Of returns the kind of r. pattern is that of the budget that r matches; "": it matches none.
func Of(r *http.Request, pattern string) Key {
	if pattern != "" {
		return Key{Rest: pattern}
	}
	return unmatched(r)
}

// Method returns r's method, which is GET if r does not say it.
func Method(r *http.Request) string {
	if r.Method == "" {
		return http.MethodGet
	}
	return r.Method
}

// String returns the name as in a budget's pattern. Of a segment that may be a
// key, or that a redirect made up, only the beginning is shown.
func (k Key) String() string {
	if k.Method == "" {
		return k.Rest
	}
	segment, cut := k.Rest, ""
	if secretive(segment) {
		segment, cut = segment[:min(3, len(segment)-1)], "..."
	} else if !strings.ContainsAny(segment, "{}") {
		return k.Method + " /" + segment // nothing to escape
	}
	return k.Method + " " + (&url.URL{Path: "/" + segment}).EscapedPath() + cut
}

// Whole is String, and whether nothing of the name is cut off or changed.
func (k Key) Whole() (name string, whole bool) {
	name = k.String()
	return name, k.Method == "" || name == k.Method+" /"+k.Rest
}

// secretive reports whether a segment of a path may be a token rather than a
// word: some APIs have their key there ("/bot123456:AAE.../").
func secretive(segment string) bool {
	digits := 0
	for i := range len(segment) {
		switch c := segment[i]; {
		case c >= '0' && c <= '9':
			digits++
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-', c == '_', c == '.', c == '~', c == '{', c == '}', c == '/':
		default:
			return true
		}
	}
	return digits > 4 || len(segment) > 32
}

// unmatched is the kind of r that matches no pattern: by the part of its path between the first two
// slashes. If that names an API or a version of it, as most paths of some hosts do (/v1/orders,
// /api/v2/orders), the next part belongs to it, if it is a word: an object's name would make each
// object a kind of its own.
func unmatched(r *http.Request) Key {
	path := strings.TrimPrefix(r.URL.Path, "/")
	segment, rest := cutSegment(path)
	end := len(segment)
	for isVersion(segment) {
		if segment, rest = cutSegment(rest); !isVersion(segment) && !isPlain(segment) {
			break
		}
		end += len("/") + len(segment)
	}
	return Key{Method(r), path[:min(end, most)]}
}

// Ends reports that a path belongs to k whatever comes after k and a slash in it: k does not end
// with the name of an API or a version.
func (k Key) Ends() bool {
	return k.Method != "" && len(k.Rest) < most && !isVersion(k.Rest[strings.LastIndexByte(k.Rest, '/')+1:])
}

// Holds reports that r, which matches no pattern, is of the kind k, for which Ends is true. It is
// quicker than Of, and false for some odd paths.
func (k *Key) Holds(r *http.Request) bool {
	path, n := r.URL.Path, len("/")+len(k.Rest)
	return len(path) >= n && path[0] == '/' && path[1:n] == k.Rest && (len(path) == n || path[n] == '/') && Method(r) == k.Method
}

// cutSegment cuts off what stands before the first slash. Each request pays for it, twice
// as a rule, and strings.Cut, which looks for any text, costs more.
func cutSegment(path string) (segment, rest string) {
	for i := range len(path) {
		if path[i] == '/' {
			return path[:i], path[i+1:]
		}
	}
	return path, ""
}

// isVersion reports whether a segment of a path names an API or a version of it: api, v1,
// v2beta1, v1.0.
func isVersion(segment string) bool {
	return segment == "api" || len(segment) > 1 && len(segment) <= 8 && segment[0] == 'v' && '0' <= segment[1] && segment[1] <= '9'
}

// isPlain reports whether a segment of a path is rather a word, or a method's name
// (chat.postMessage), than the name of an object.
func isPlain(segment string) bool {
	const most = 24 // letters; names of objects without any digit are mostly longer
	if segment == "" || len(segment) > most {
		return false
	}
	for i := range len(segment) {
		switch c := segment[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '-', c == '_', c == '.':
		default:
			return false
		}
	}
	return true
}
