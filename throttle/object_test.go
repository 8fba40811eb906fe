package throttle_test

import (
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// As many URLs that were refused are remembered as are allowed, however many there are.
func TestRefusedURLsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := map[string]bool{}
		tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
			if !refused[r.URL.Path] {
				refused[r.URL.Path] = true
				return testnet.Answer(r, 429, http.Header{"Retry-After": {"1"}}, nil), nil
			}
			return testnet.Answer(r, 200, nil, nil), nil
		}), throttle.Config{MaxWait: time.Hour})
		for i := range 3 * throttle.MostObjects {
			for range 2 {
				mustGet(t, tr, "http://h/items/"+strconv.Itoa(i))
			}
		}
		if n := throttle.ObjectsKept(tr, "h"); n != throttle.MostObjects {
			t.Errorf("%d URLs are kept, want %d", n, throttle.MostObjects)
		}
	})
}
