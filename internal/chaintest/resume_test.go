package chaintest

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// TestResumeEndsWhatTheServerAskedFor: an operator's word goes before the
// server's.
func TestResumeEndsWhatTheServerAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, n := time.Now(), 0
		rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
			if n++; n == 1 {
				return testnet.Answer(r, 429, http.Header{"Retry-After": {"30"}}, nil), nil
			}
			return stub(r)
		}), weir.Config{}))(t)
		time.AfterFunc(5*time.Second, func() { rt.Throttle().Resume("h") })
		resp, err := rt.RoundTrip(get(t, "http://h/"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if took := time.Since(start); took < 5*time.Second || took > 8*time.Second {
			t.Errorf("went on after %v, the host was resumed after 5s", took)
		}
	})
}
