package throttle_test

import (
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
