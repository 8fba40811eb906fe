package retry_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// TestTookIsTheTimeOnTheWire: the hook is told how long an attempt was on the wire, without the
// delays before it, and nothing of one that did not get there.
func TestTookIsTheTimeOnTheWire(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		var took []time.Duration
		var after []string
		n := 0
		rt := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
			time.Sleep(time.Duration(n) * time.Second)
			if n++; n < 3 {
				return nil, errors.New("connection lost")
			}
			return testnet.Answer(r, 200, nil, nil), nil
		}), retry.Config{Backoff: fixed(time.Minute), OnAttempt: func(a retry.Attempt) {
			took = append(took, a.Took)
			after = append(after, a.Method+" "+a.Outcome.String())
		}})
		resp, err := rt.RoundTrip(request(t, "PUT", "http://a.example/", ""))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if len(took) != 3 || took[0] != 1 || took[1] != time.Second || took[2] != 2*time.Second {
			t.Errorf("took %v", took)
		}
		if after[0] != "PUT broken" || after[2] != "PUT answered" {
			t.Errorf("%q", after)
		}
	})
}
