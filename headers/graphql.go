package headers

import "strings"

// graphQLType is the media type of GraphQL's answers ("GraphQL over HTTP",
// section "Media Types").
const graphQLType = "application/graphql-response+json"

const mediaType = "Content-Type"

// isGraphQL reports whether the lines of a Content-Type name GraphQL's media type.
func isGraphQL(lines []string) bool {
	return len(lines) > 0 && strings.HasPrefix(lines[0], graphQLType)
}

// graphQL is what tells a GraphQL answer that refuses the whole request from
// one that serves a part of it. By the specification (section "Response") a
// request that was not executed is answered without data, and the error of a
// single field has a path. Only the former was surely not executed.
type graphQL struct {
	coded bool // a code that says that this is a refusal stands in the list of errors
	data  bool // there is data that is not null
	field bool // some error is that of a field
	whole bool // the answer was read to its end: nothing of this comes later
}

// served reports whether the code stands in an answer that may have served a part.
func (g *graphQL) served() bool { return g.coded && (g.data || g.field || !g.whole) }

// note takes in one event. coded tells that it was the first such code.
func (g *graphQL) note(j *scanner, e event, coded bool) {
	switch e.kind {
	case eventOpen:
		g.field = g.field || e.key == "path" && j.array[j.depth-1] && j.depth > 2 && j.keys[j.depth-2] == "errors"
	case eventClose:
		g.whole = g.whole || j.depth == 0
	case eventValue:
		first := j.first(e.key)
		g.coded = g.coded || coded && first == "errors"
		g.data = g.data || first == "data" && (e.quoted || e.text != "null")
	}
}

// first is the outermost key that leads to a value called key.
func (j *scanner) first(key string) string {
	for _, k := range j.keys[:j.depth] {
		if k != "" {
			return k
		}
	}
	return key
}
