package headers_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weirhttp/weir/headers"
)

const shopify = `{"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED","documentation":"https://shopify.dev/api/usage/rate-limits"}}],` +
	`"extensions":{"cost":{"requestedQueryCost":752,"actualQueryCost":null,"throttleStatus":{"maximumAvailable":2000.0,"currentlyAvailable":152,"restoreRate":100.0}}}}`

// A GraphQL answer of status 200 is a refusal if its errors say so and nothing of
// it was served: else the request was executed in part, and must not be repeated.
func TestGraphQL(t *testing.T) {
	const no, yes = "nothing said", "throttled (quota)"
	for _, tt := range []struct{ name, body, want string }{
		{"Shopify's", shopify, yes + "; 152 of 2000 points left, refills 100/s, needs 752"},
		{"GitHub's", `{"errors":[{"type":"RATE_LIMITED","message":"API rate limit exceeded for user ID 1."}]}`, yes},
		{"GitHub's newer", `{"errors":[{"type":"RATE_LIMIT","code":"graphql_rate_limit","message":"API rate limit already exceeded."}]}`, yes},
		{"data is null", `{"data":null,"errors":[{"extensions":{"code":"THROTTLED"}}]}`, yes},
		{"data has only nulls", `{"data":{"viewer":null},"errors":[{"extensions":{"code":"THROTTLED"}}]}`, yes},
		{"the path is null", `{"errors":[{"path":null,"extensions":{"code":"THROTTLED"}}]}`, yes},
		{"a path of another kind", `{"errors":[{"extensions":{"code":"THROTTLED","path":["x"]}}]}`, yes},
		{"some data", `{"data":{"a":1,"b":null},"errors":[{"extensions":{"code":"THROTTLED"}}]}`, no},
		{"some data, in the end", `{"errors":[{"extensions":{"code":"THROTTLED"}}],"data":{"a":{"b":["null"]}}}`, no},
		{"one field's", `{"data":null,"errors":[{"path":["b"],"extensions":{"code":"THROTTLED"}}]}`, no},
		{"another field's too", `{"errors":[{"extensions":{"code":"THROTTLED"}},{"message":"x","path":["b",0]}]}`, no},
		{"one of a batch", `[{"errors":[{"extensions":{"code":"THROTTLED"}}]},{"data":{"a":1}}]`, no},
		{"all of a batch", `[{"errors":[{"extensions":{"code":"THROTTLED"}}]},{"errors":[{"extensions":{"code":"THROTTLED"}}]}]`, yes},
		{"cut short", shopify[:len(shopify)-2], no + ": it may serve a part"},
		{"another error", `{"errors":[{"message":"Field 'x' does not exist","extensions":{"code":"undefinedField"}}]}`, no},
		{"a code in the data", `{"data":{"errors":[{"code":"THROTTLED"}]}}`, no},
		{"an answer that tells its cost", `{"data":{"shop":{"name":"a"}},"extensions":{"cost":{"requestedQueryCost":10,"actualQueryCost":2,"throttleStatus":{"maximumAvailable":2000.0,"currentlyAvailable":1998,"restoreRate":100.0}}}}`,
			"1998 of 2000 points left, refills 100/s, needs 10"},
	} {
		got := headers.ParseBody(response(200, http.Header{}), []byte(tt.body), noon)
		if want, because, _ := strings.Cut(tt.want, ": it"); because != "" && got.Throttled || because == "" && got.String() != want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
