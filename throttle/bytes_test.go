package throttle

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// TestBytesWrittenAndRead: what is written is known before, what is read only
// afterwards; each has a budget, which binds by itself, and a request draws on
// both or none.
func TestBytesWrittenAndRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 200, nil, testnet.NewBody(strings.Repeat("x", 700))), nil
		})
		tr := newTransport(t, b, Config{
			Default: MustParseBudget("100 written/s burst 100, 1000 read/s burst 1000"),
			Cost: func(r *http.Request) Cost {
				return Cost{"written": max(0, r.ContentLength), "read": 100} // a guess, settled below
			},
		})
		send := func(bytes int) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://a/", strings.NewReader(strings.Repeat("y", bytes)))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := tr.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			n, _ := io.Copy(io.Discard, resp.Body)
			if err := Settle(resp, Cost{"read": n}); err != nil {
				t.Error(err)
			}
			resp.Body.Close()
		}
		send(60) // 60 written, 700 read
		send(30) // 90 written, 1400 read: settled above the budget, which those after it pay
		send(1)  // waits until the first's 700 have left the window
		send(9)  // 700 of the third are left beside the guess of 100: goes at once
		send(95) // only 100 may be written in a second
		sameTimes(t, b.times(), 0, 0, time.Second, time.Second, 2*time.Second)
	})
}
