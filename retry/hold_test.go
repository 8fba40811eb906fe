package retry_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// An answer too long to be kept is closed unread before the next attempt.
func TestLongDiscardedAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := testnet.NewBody(strings.Repeat("x", holdBytes+1))
		n := 0
		base := testnet.Func(func(r *http.Request) (*http.Response, error) {
			if n++; n > 1 {
				return testnet.Answer(r, 200, nil, nil), nil
			}
			resp := testnet.Answer(r, 503, nil, body)
			resp.ContentLength = holdBytes + 1
			return resp, nil
		})
		resp, err := newTransport(t, base, retry.Config{}).RoundTrip(request(t, "GET", "http://a.example/", ""))
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		if body.Reads() != 0 || body.Closes() != 1 {
			t.Errorf("%d reads, %d closes of the answer before", body.Reads(), body.Closes())
		}
	})
}
