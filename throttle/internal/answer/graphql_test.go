package answer_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle/internal/answer"
)

const jsonType = "application/json"

// posting is a request of JSON.
func posting(t *testing.T, path, body string) *http.Request {
	r, err := http.NewRequestWithContext(t.Context(), "POST", "https://api.example"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", jsonType)
	return r
}

// ofGraphQL reports whether r is known as one of GraphQL when JSON answers it.
func ofGraphQL(r *http.Request) bool {
	d := answer.Reader{Peek: 4 << 10}
	resp := testnet.Answer(r, 200, http.Header{"Content-Type": {jsonType}}, nil)
	return d.GraphQL(r, resp, new(answer.Posts))
}

// A path that ends in graphql tells what its POSTs and GETs are, as far as their answers
// can be refusals.
func TestGraphQLIsKnownByItsPath(t *testing.T) {
	for _, tt := range []struct {
		method, path string
		status       int
		want         bool
	}{
		{"POST", "/graphql", 200, true},
		{"GET", "/graphql", 400, true},
		{"", "/graphql", 200, true},
		{"POST", "/admin/api/2026-01/graphql.json", 200, true},
		{"PUT", "/graphql", 200, false},
		{"POST", "/graphql/x", 200, false},
		{"POST", "/graphql", 429, false}, // its status tells
		{"POST", "/graphql", 201, false},
	} {
		r := posting(t, tt.path, "{}")
		r.Method = tt.method
		resp := testnet.Answer(r, tt.status, nil, nil)
		var d answer.Reader
		if got := d.GraphQL(r, resp, nil); got != tt.want {
			t.Errorf("%q %s, status %d: %t, want %t", tt.method, tt.path, tt.status, got, tt.want)
		}
	}
}

// A POST is known as one of GraphQL at any path, by what it says in its headers or at
// the start of its body, and by nothing that others say.
func TestGraphQLIsKnownAtAnyPath(t *testing.T) {
	const long = `{"operationName":null,"variables":{"text":"`
	for _, tt := range []struct {
		name, kind, body string
		want             bool
	}{
		{"a query", jsonType, `{"query":"query { boards (ids: 1) { name } }"}`, true},
		{"a selection", "application/json; charset=utf-8", `{"query":"{\n  viewer {\n    login\n  }\n}","variables":null}`, true},
		{"of one field", jsonType, `{"query":"{me}"}`, true},
		{"of two fields", jsonType, `{"query":"{ me you }"}`, true},
		{"of an alias", jsonType, `{"query":"{ me: user(id: 1) { name } }"}`, true},
		{"of a fragment", jsonType, `{"query":"{...all} fragment all on Query { me }"}`, true},
		{"with a directive", jsonType, `{"query":"{ me @include(if: true) }"}`, true},
		{"a mutation", jsonType, ` { "query" : "mutation Add($id: ID!) { add(id: $id) { id } }" }`, true},
		{"a mutation without a name", "Application/JSON", `{"query":"mutation($id: ID!){add(id: $id){id}}"}`, true},
		{"a subscription", jsonType, `{"query":"subscription Late @live { news { text } }"}`, true},
		{"fragments first", jsonType, `{"query":"fragment all on User { name }\nquery { me { ...all } }"}`, true},
		{"a comment first", jsonType, `{"query":"# who am I?\r\n\t\n,query { me }"}`, true},
		{"a name first", jsonType, `{"operationName":"Boards","query":"query Boards { boards { id } }","variables":{}}`, true},
		{"long variables first", jsonType, long + strings.Repeat("x", 4000) + `"},"query":"{me}"}`, true},
		{"short variables first", jsonType, `{"variables":{"query":{"a":[1,"}"]}},"query":"{me}"}`, true},
		{"a long query", jsonType, `{"query":"query { a(b: \"` + strings.Repeat("x", 4000) + `\") }"}`, true},
		{"a list", jsonType, `[{"query":"{me}"},{"query":"{you}"}]`, true},
		{"a stored query", jsonType, `{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"ecf4"}}}`, true},
		{"a stored query with its name", jsonType, `{"id":"ecf4","operationName":"Boards","variables":{"a":1}}`, true},
		{"the query itself", "application/graphql", `{ me }`, true},

		{"a search", jsonType, `{"query":{"match":{"title":"errors"}}}`, false},
		{"a search with variables", jsonType, `{"size":1,"query":{"bool":{"must":[{"query":"{me}"}]}}}`, false},
		{"SQL", jsonType, `{"query":"SELECT name FROM users"}`, false},
		{"words", jsonType, `{"query":"query planner of postgres"}`, false},
		{"words about one", jsonType, `{"query":"mutation (BRCA1) effects"}`, false},
		{"one word", jsonType, `{"query":"query"}`, false},
		{"nothing", jsonType, `{"query":""}`, false},
		{"null", jsonType, `{"query":null,"operationName":1}`, false},
		{"a selector", jsonType, `{"query":"{app=\"shop\"} |= \"error\""}`, false},
		{"another selector", jsonType, `{"query":"{job!~\"x\"}"}`, false},
		{"JSON in a string", jsonType, `{"query":"{\"match\": 1}"}`, false},
		{"an object of a shell", jsonType, `{"query":"{a: 1}"}`, false},
		{"an e-mail address", jsonType, `{"query":"query @"}`, false},
		{"a query within", jsonType, `{"filter":{"query":"{me}"}}`, false},
		{"a query as a value", jsonType, `{"kind":"query","text":"{me}"}`, false},
		{"a chat", jsonType, `{"model":"x","messages":[{"role":"user","content":"{\"query\":\"{me}\"}"}]}`, false},
		{"another operation", jsonType, `{"operationName":"Reboot","properties":{}}`, false},
		{"a list of others", jsonType, `[1,{"query":"{me}"}]`, false},
		{"after the end", jsonType, `{"a":1}{"query":"{me}"}`, false},
		{"only a string", jsonType, `"query"`, false},
		{"cut short", jsonType, `{"query":"query`, false},
		{"cut short in a key", jsonType, `{"que`, false},
		{"empty", jsonType, ` `, false},
		{"a form", "application/x-www-form-urlencoded", `{"query":"{me}"}`, false},
		{"another type", "application/jsonp", `x`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := posting(t, "/v2", tt.body)
			r.Header.Set("Content-Type", tt.kind)
			if got := ofGraphQL(r); got != tt.want {
				t.Errorf("taken for GraphQL: %t, want %t", got, tt.want)
			}
		})
	}
}

// What a request accepts tells that it is of GraphQL, also where its body cannot be
// looked at.
func TestGraphQLIsKnownByWhatIsAccepted(t *testing.T) {
	for _, tt := range []struct {
		name, accept string
		change       func(*http.Request)
		want         bool
	}{
		{"the type", "application/graphql-response+json", func(r *http.Request) { r.GetBody = nil }, true},
		{"among others", "application/json, application/graphql-response+json; charset=utf-8", func(r *http.Request) { r.GetBody = nil }, true},
		{"JSON, and no copy of the body", "application/json", func(r *http.Request) { r.GetBody = nil }, false},
		{"JSON, and no copy can be had", "application/json", func(r *http.Request) {
			r.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("gone") }
		}, false},
		{"JSON, and a copy that fails", "application/json", func(r *http.Request) {
			r.GetBody = func() (io.ReadCloser, error) { return testnet.NewBody(""), nil }
		}, false},
		{"JSON, by another method", "application/graphql-response+json", func(r *http.Request) { r.Method = "PUT" }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := posting(t, "/v2", `{"query":"{me}"}`)
			r.Header.Set("Accept", tt.accept)
			tt.change(r)
			if got := ofGraphQL(r); got != tt.want {
				t.Errorf("taken for GraphQL: %t, want %t", got, tt.want)
			}
		})
	}
}

// Whatever a body holds, looking at it ends and does not panic.
func FuzzGraphQL(f *testing.F) {
	for _, s := range []string{`{"query":"{me}"}`, `[[{"query" : "# \n query A @b"`, `{"a\"b":"\`, `{"query":"fragment a on`, `}}}]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if ofGraphQL(posting(t, "/v2", text)) && !strings.ContainsAny(text, "{[") {
			t.Errorf("%q", text)
		}
	})
}
