package answer

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
)

// GraphQL reports whether resp answers a request of GraphQL and may be a refusal that its
// status does not tell. The path of r may show GraphQL, or headers and body of a POST. The
// body is read, by GetBody, only if the answer is JSON. posts is what is known of requests
// like r; if it is nil, no body is read.
func (d *Reader) GraphQL(r *http.Request, resp *http.Response, posts *Posts) bool {
	if !mayRefuse(resp) {
		return false
	}
	path := strings.TrimSuffix(r.URL.Path, ".json") // as Shopify's /admin/api/2026-01/graphql.json
	if strings.HasSuffix(path, "/graphql") && (r.Method == http.MethodPost || cmp.Or(r.Method, http.MethodGet) == http.MethodGet) {
		return true
	}
	if r.Method != http.MethodPost || posts == nil || d.Peek <= 0 {
		return false
	}
	return posts.due() && hasType(resp.Header, "application/json") && posts.look(r)
}

// mayRefuse reports whether a GraphQL answer of that status can be a refusal that
// its status does not tell.
func mayRefuse(resp *http.Response) bool {
	return resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusBadRequest
}

// typed reports whether resp has GraphQL's own media type, and may be a refusal.
func typed(resp *http.Response) bool {
	v := resp.Header["Content-Type"]
	return len(v) > 0 && strings.HasPrefix(v[0], "application/graphql-response+json") && mayRefuse(resp)
}

// hasType reports whether h's media type begins with kind, which is in lower case.
func hasType(h http.Header, kind string) bool {
	v := h["Content-Type"]
	return len(v) > 0 && len(v[0]) >= len(kind) && strings.EqualFold(v[0][:len(kind)], kind)
}

const (
	// firstLooks is how many POSTs of a kind are looked at to find out whether it takes
	// GraphQL: more than one, because an API may have other paths with the same first
	// segment.
	firstLooks = 8
	// seldomLook says that one of so many later ones is looked at, so that a program is
	// noticed which begins to use GraphQL late. A look costs some 600 ns, so that is
	// 10 ns for each POST.
	seldomLook = 64
	// lookAt is how many bytes of a body are looked at. In most bodies the query, or its
	// name, begins within the first hundred.
	lookAt = 512
)

// Posts is what is known of the POSTs of one kind: how many there were, and in the highest
// bit whether one of them was of GraphQL. Once one was, each of them is looked at, as requests
// without GraphQL may have the same path. It is safe for concurrent use.
type Posts uint32

const graphQLFound = 1 << 31 // the highest bit; the count wraps below it

// due counts a POST, and reports whether its body is to be looked at.
func (s *Posts) due() bool {
	n := atomic.LoadUint32((*uint32)(s))
	if n&graphQLFound != 0 {
		return true
	}
	atomic.CompareAndSwapUint32((*uint32)(s), n, (n+1)&^graphQLFound) // two POSTs at the same time may count as one
	return n < firstLooks || n%seldomLook == 0
}

// look reports whether r, a POST, is of GraphQL, and remembers it.
func (s *Posts) look(r *http.Request) bool {
	if !saysGraphQL(r) {
		return false
	}
	atomic.StoreUint32((*uint32)(s), graphQLFound)
	return true
}

// saysGraphQL reports whether a POST says that it is of GraphQL: by the type that it
// sends or wants, or by the start of its body.
func saysGraphQL(r *http.Request) bool {
	for _, accepted := range r.Header["Accept"] {
		if strings.Contains(accepted, "application/graphql-response+json") {
			return true
		}
	}
	if hasType(r.Header, "application/graphql") {
		return true
	}
	if r.GetBody == nil || !hasType(r.Header, "application/json") {
		return false
	}
	body, err := r.GetBody()
	if err != nil {
		return false
	}
	defer body.Close()
	start := make([]byte, lookAt)
	n, _ := io.ReadFull(body, start)
	return isGraphQL(start[:n])
}

// isGraphQL reports whether the start of a JSON text is a GraphQL request, or a list
// of them ("GraphQL over HTTP", section "Request Parameters"): its query is a string
// that begins as a GraphQL document does, or it names a stored query as Apollo's
// clients do. A search has a query too, but an object or words.
func isGraphQL(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n[")
	if !bytes.HasPrefix(text, []byte("{")) {
		return false
	}
	named, variables := false, false
	for depth := 0; len(text) > 0; {
		c := text[0]
		text = text[1:]
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				return false
			}
		case '"':
			var key []byte
			if key, text = cutString(text); depth > 2 {
				continue
			}
			value, isKey := bytes.CutPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte(":"))
			if !isKey {
				continue
			}
			text = bytes.TrimLeft(value, " \t\r\n")
			switch string(key) {
			case "query":
				if depth == 1 {
					return len(text) > 0 && text[0] == '"' && isDocument(text[1:])
				}
			case "operationName":
				named = named || depth == 1
			case "variables":
				variables = variables || depth == 1
			case "persistedQuery":
				return depth == 2
			}
			if named && variables {
				return true
			}
		}
	}
	return false
}

// cutString splits text, which begins after the first quote of a JSON string, into the
// string and what follows it. If the string has no end, it is all of text.
func cutString(text []byte) (s, rest []byte) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return text[:i], text[i+1:]
		}
	}
	return text, nil
}

// isDocument reports whether the inside of a JSON string begins as a GraphQL document
// does (October 2021 edition, section 2): with an operation, a fragment, or a
// selection of fields.
func isDocument(text []byte) bool {
	text = ignored(text)
	if rest, ok := bytes.CutPrefix(text, []byte("{")); ok {
		return isSelection(rest)
	}
	word, rest := cutName(text)
	switch string(word) {
	case "query", "mutation", "subscription":
		_, rest = cutName(ignored(rest))
	case "fragment":
		_, rest = cutName(ignored(rest))
		on, _ := cutName(ignored(rest))
		return string(on) == "on"
	default:
		return false
	}
	switch rest = ignored(rest); {
	case len(rest) == 0:
		return false
	case rest[0] == '{':
		return isSelection(rest[1:])
	case rest[0] == '(':
		return bytes.HasPrefix(ignored(rest[1:]), []byte("$"))
	case rest[0] == '@':
		name, _ := cutName(rest[1:])
		return len(name) > 0
	}
	return false
}

// isSelection reports whether text, which follows a brace, is the start of a set of fields.
// The selectors of some query languages ({app="x"}) and JSON have a brace, too.
func isSelection(text []byte) bool {
	text = ignored(text)
	if bytes.HasPrefix(text, []byte("...")) {
		return true
	}
	field, rest := cutName(text)
	rest = ignored(rest)
	if len(field) == 0 || len(rest) == 0 {
		return false
	}
	if rest[0] == ':' { // field is another's alias
		field, _ = cutName(ignored(rest[1:]))
		return len(field) > 0
	}
	return bytes.IndexByte([]byte("{}(@."), rest[0]) >= 0 || isName(rest[0], false)
}

// ignored is text without the tokens at its start that GraphQL ignores: spaces, commas and
// comments. Line ends are escaped, as text is the inside of a JSON string.
func ignored(text []byte) []byte {
	for {
		switch {
		case len(text) > 0 && (text[0] == ' ' || text[0] == ','):
			text = text[1:]
		case len(text) > 1 && text[0] == '\\' && (text[1] == 'n' || text[1] == 't' || text[1] == 'r'):
			text = text[2:]
		case len(text) > 0 && text[0] == '#':
			end := bytes.Index(text, []byte(`\n`))
			if end < 0 {
				return nil
			}
			text = text[end:]
		default:
			return text
		}
	}
}

// cutName cuts the name that text begins with; it may be empty.
func cutName(text []byte) (name, rest []byte) {
	n := 0
	for n < len(text) && isName(text[n], n > 0) {
		n++
	}
	return text[:n], text[n:]
}

// isName reports whether c may be a character of a name: its first one, or if within a
// later one.
func isName(c byte, within bool) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || within && c >= '0' && c <= '9'
}
