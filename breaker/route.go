package breaker

import (
	"net/http"
	"strings"
)

// route is a kind of request: a hash of the method, the path and the names in
// the query, so that a call that waits for news (?wait=, ?timeout=) is another
// than the same path read at once. Identifiers in the path do not tell routes
// apart.
//
// Two routes that are taken for one are judged together, as a whole host would
// be; one that is taken for many is many that fail, which is the host's matter.
// It needs no secret: nobody but the caller chooses what is hashed.
type route uint64

func routeOf(r *http.Request) route {
	method := r.Method
	if method == "" {
		method = http.MethodGet
	}
	h := route(14695981039346656037).and(method) // FNV-1a
	if r.URL == nil {
		return h
	}
	for segment := range strings.SplitSeq(r.URL.Path, "/") {
		if identifier(segment) {
			segment = "*"
		}
		h = h.and(segment)
	}
	for query := r.URL.RawQuery; query != ""; {
		var pair string
		pair, query, _ = strings.Cut(query, "&")
		name, _, _ := strings.Cut(pair, "=")
		h = h.and(name)
	}
	return h
}

// and hashes a part and a byte that is in no part.
func (h route) and(part string) route {
	const prime = 1099511628211
	for i := range len(part) {
		h = (h ^ route(part[i])) * prime
	}
	return (h ^ 0xff) * prime
}

// identifier reports whether a segment of a path names a thing rather than a
// kind of things: a number, or something long with a digit in it, as UUIDs and
// tokens are. Sixteen is longer than words such as oauth2 and v1beta3, and
// shorter than most keys.
func identifier(segment string) bool {
	digit, other := false, false
	for i := range len(segment) {
		if '0' <= segment[i] && segment[i] <= '9' {
			digit = true
		} else {
			other = true
		}
	}
	return digit && (!other || len(segment) >= 16)
}
