package throttle_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/peek"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

const jsonType = "application/json"

// posting is a request of JSON to an API whose path does not tell what it is.
func posting(t *testing.T, path, body string) *http.Request {
	r, err := http.NewRequestWithContext(t.Context(), "POST", "https://api.example"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", jsonType)
	return r
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
			synctest.Test(t, func(t *testing.T) {
				r := posting(t, "/v2", tt.body)
				r.Header.Set("Content-Type", tt.kind)
				if got := asRefusal(t, r); got != tt.want {
					t.Errorf("taken for a refusal: %t, want %t", got, tt.want)
				}
			})
		})
	}
}

// asRefusal reports whether a GraphQL refusal that answers r is taken for one. What is
// not was not read.
func asRefusal(t *testing.T, r *http.Request) bool {
	t.Helper()
	body := testnet.NewBody(`{"errors":[{"message":"slow down","extensions":{"code":"THROTTLED"}}]}`)
	tr := newTransport(t, newBase(func(r *http.Request) (*http.Response, error) {
		resp := testnet.Answer(r, 200, http.Header{"Content-Type": {jsonType}}, body)
		resp.ContentLength = -1
		return resp, nil
	}), throttle.Config{})
	resp, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	throttled := tr.Stats().Hosts[0].Throttled == 1
	if read := body.Reads() > 0; read != throttled {
		t.Errorf("read: %t, throttled: %t", read, throttled)
	}
	return throttled
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
			synctest.Test(t, func(t *testing.T) {
				r := posting(t, "/v2", `{"query":"{me}"}`)
				r.Header.Set("Accept", tt.accept)
				tt.change(r)
				if got := asRefusal(t, r); got != tt.want {
					t.Errorf("taken for a refusal: %t, want %t", got, tt.want)
				}
			})
		})
	}
}

// Whose POSTs are not of GraphQL has few of their bodies looked at, and each copy is
// closed; and who turns to GraphQL later is noticed, at each path of its kind. No body
// is looked at whose answer cannot tell.
func TestGraphQLLooksSeldom(t *testing.T) {
	var copies, open int
	send := func(tr *throttle.Transport, path, body string) {
		r := posting(t, path, body)
		r.GetBody = func() (io.ReadCloser, error) {
			copies++
			open++
			return counted{strings.NewReader(body), &open}, nil
		}
		resp, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	answer := of(200, jsonType, `{"a":1}`)
	tr := newTransport(t, newBase(func(r *http.Request) (*http.Response, error) { return answer(r), nil }), throttle.Config{})
	for range 1000 {
		send(tr, "/shop/items", `{"name":"x"}`)
	}
	if copies == 0 || copies > 30 || open != 0 {
		t.Errorf("%d of 1000 bodies were looked at, %d copies are open; want some 23, and none", copies, open)
	}
	for copies = 0; copies == 0; {
		send(tr, "/shop/data", `{"query":"{me}"}`)
	}
	for range 10 {
		send(tr, "/shop/data/2", `{"query":"{me}"}`)
		send(tr, "/shop/items", `{"name":"x"}`)
	}
	if copies != 21 || open != 0 {
		t.Errorf("%d bodies were looked at, %d copies are open; want each, and none", copies, open)
	}
	for _, answer = range []func(*http.Request) *http.Response{
		of(200, "text/event-stream", "data: x\n\n"), of(200, "text/plain", "x"), of(201, jsonType, "{}"), of(429, jsonType, "{}"),
	} {
		copies = 0
		tr := newTransport(t, newBase(func(r *http.Request) (*http.Response, error) { return answer(r), nil }), throttle.Config{})
		send(tr, "/v2", `{"query":"{me}"}`)
		if copies != 0 {
			t.Errorf("the body of what was answered with %v was looked at", answer(posting(t, "/", "")).Header)
		}
	}
	copies = 0
	answer = of(200, jsonType, `{"errors":[{"extensions":{"code":"THROTTLED"}}]}`)
	tr = newTransport(t, newBase(func(r *http.Request) (*http.Response, error) { return answer(r), nil }), throttle.Config{PeekBody: -1})
	send(tr, "/v2", `{"query":"{me}"}`)
	if copies != 0 || tr.Stats().Hosts[0].Throttled != 0 {
		t.Error("a body was looked at though PeekBody is negative")
	}
}

// counted is one of several copies of a body.
type counted struct {
	io.Reader
	open *int
}

func (c counted) Close() error { *c.open--; return nil }

// What comes slowly is held up for no longer than a body's start is waited for, if it
// answers GraphQL, and not at all if it answers another POST: a search, or a chat.
func TestGraphQLHoldsNobodyUp(t *testing.T) {
	for body, want := range map[string]time.Duration{
		`{"query":"{me}"}`:                         peek.For,
		`{"query":{"match_all":{}}}`:               0,
		`{"query":"how to sort","stream":true}`:    0,
		`{"messages":[{"content":"{me}"}]}`:        0,
		`{"query":"SELECT 1","variables":{"a":1}}`: 0,
	} {
		synctest.Test(t, func(t *testing.T) {
			from, to := io.Pipe()
			b := newBase(func(r *http.Request) (*http.Response, error) {
				resp := testnet.Answer(r, 200, http.Header{"Content-Type": {jsonType}}, from)
				resp.ContentLength = -1
				return resp, nil
			})
			go func() {
				time.Sleep(10 * time.Second)
				io.WriteString(to, `{"data":{"errors":1}}`)
				to.Close()
			}()
			resp, err := newTransport(t, b, throttle.Config{}).RoundTrip(posting(t, "/v2", body))
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(b.Start); took != want {
				t.Errorf("%s: the answer came after %v, want %v", body, took, want)
			}
			if got, err := io.ReadAll(resp.Body); string(got) != `{"data":{"errors":1}}` || err != nil {
				t.Errorf("%s: read %q, %v", body, got, err)
			}
			resp.Body.Close()
		})
	}
}

// The dialects of those whose path does not tell. Only what was surely not executed is
// taken for a refusal.
func TestGraphQLRefusalsAtAnyPath(t *testing.T) {
	const one, two = `{"query":"{me}"}`, `[{"query":"{me}"},{"query":"{you}"}]`
	for _, tt := range []struct {
		name, asked, answer string
		status              int
		wait                time.Duration // before the next; 0: not taken for a refusal
	}{
		{"monday.com's", one, `{"errors":[{"message":"Complexity budget exhausted","extensions":{"code":"COMPLEXITY_BUDGET_EXHAUSTED","retry_in_seconds":16,"status_code":429}}],"account_id":1}`, 200, 16 * time.Second},
		{"monday.com's older", one, `{"errors":["Complexity budget exhausted, reset in 16 seconds"],"status_code":429,"error_code":"complexityBudgetExhausted","account_id":1}`, 200, time.Millisecond},
		{"Shopify's", one, `{"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED"}}],"extensions":{"cost":{"requestedQueryCost":752,"throttleStatus":{"maximumAvailable":2000,"currentlyAvailable":152,"restoreRate":100}}}}`, 200, 6 * time.Second},
		{"GitHub's", one, `{"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded"}]}`, 200, time.Millisecond},
		{"Linear's", one, `{"errors":[{"extensions":{"code":"RATELIMITED"}}]}`, 400, time.Millisecond},
		{"a list's", two, `[{"errors":[{"extensions":{"code":"THROTTLED"}}]},{"errors":[{"extensions":{"code":"THROTTLED"}}]}]`, 200, time.Millisecond},
		{"a part of a list's", two, `[{"data":{"a":1}},{"errors":[{"extensions":{"code":"THROTTLED"}}]}]`, 200, 0},
		{"a part", one, `{"data":{"a":1,"b":null},"errors":[{"path":["b"],"extensions":{"code":"THROTTLED"}}]}`, 200, 0},
		{"another error", one, `{"errors":[{"message":"no such field"}]}`, 200, 0},
		{"of a search, some shards", `{"query":{"match":{}}}`, `{"errors":[{"code":"THROTTLED"}],"hits":{"hits":[]}}`, 200, 0},
		{"of a search by words", `{"query":"query"}`, `{"errors":[{"code":"THROTTLED"}],"hits":[]}`, 200, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := serving(of(tt.status, jsonType, tt.answer), of(200, jsonType, `{"data":{}}`))
				tr := newTransport(t, b, throttle.Config{})
				for range 2 {
					resp, err := tr.RoundTrip(posting(t, "/v2", tt.asked))
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
				}
				n, at := tr.Stats().Hosts[0].Throttled, b.Times()[1]
				if n == 1 != (tt.wait > 0) || at < tt.wait || tt.wait == 0 && at > 0 {
					t.Errorf("%d refusals, the next went after %v; want a wait of %v", n, at, tt.wait)
				}
			})
		})
	}
}

// Whatever a body holds, looking at it ends and does not panic.
func FuzzGraphQLRequest(f *testing.F) {
	for _, s := range []string{`{"query":"{me}"}`, `[[{"query" : "# \n query A @b"`, `{"a\"b":"\`, `{"query":"fragment a on`, `}}}]`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if throttle.IsGraphQL(text) && !bytes.ContainsAny(text, "{[") {
			t.Errorf("%q", text)
		}
	})
}
