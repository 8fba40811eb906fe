package throttle_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// Which kinds of request draw on a limit is forgotten with the kinds and with the limit: else there is
// no room for those that come later.
func TestWhoDrawsIsForgottenWithKindsAndLimits(t *testing.T) {
	for name, at := range map[string]func(i int) (path, limit string){
		"kinds":  func(i int) (path, limit string) { return fmt.Sprintf("k%d/x", i), "n" },
		"limits": func(i int) (path, limit string) { return "k/x", fmt.Sprint("n", i) },
	} {
		synctest.Test(t, func(t *testing.T) {
			limit := ""
			tr := newTransport(t, testnet.Func(func(r *http.Request) (*http.Response, error) {
				time.Sleep(20 * time.Millisecond)
				return testnet.Answer(r, 429, http.Header{"Ratelimit-Policy": {fmt.Sprintf("%q;q=10;w=60", limit)}, "Ratelimit": {fmt.Sprintf("%q;r=0;t=60", limit)}}, nil), nil
			}), throttle.Config{})
			most := 0
			for i := range 2 * throttle.MostQuotas {
				path := ""
				path, limit = at(i)
				mustGet(t, tr, "http://h/"+path)
				all, gone := throttle.SharesKept(tr, "h")
				if most = max(most, all); gone > 0 {
					t.Fatalf("%s: of %d that are remembered %d are of kinds or limits that are forgotten", name, all, gone)
				}
				time.Sleep(2 * time.Minute)
			}
			if most < 2 {
				t.Errorf("%s: %d are remembered at most, want some", name, most)
			}
		})
	}
}
