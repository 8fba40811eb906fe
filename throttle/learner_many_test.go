package throttle_test

import (
	"errors"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// Credentials beyond the most that are told apart share what is learned, unless one of
// which nothing binds makes room.
func TestCredentialsBeyondTheMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wait := ""
		tr := newTransport(t, newBase(func(r *http.Request) (*http.Response, error) {
			if wait != "" {
				return testnet.Answer(r, 429, http.Header{"Retry-After": {wait}}, nil), nil
			}
			return testnet.Answer(r, 200, nil, nil), nil
		}), throttle.Config{MaxWait: -1, MaxPause: time.Hour})
		call := func(i int) error {
			r, err := http.NewRequestWithContext(t.Context(), "GET", "http://h/x", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+strconv.Itoa(i))
			resp, err := tr.RoundTrip(r)
			if err == nil {
				resp.Body.Close()
			}
			return err
		}
		served := func(want bool, i int) {
			t.Helper()
			var e *throttle.Error
			if err := call(i); (err == nil) != want || err != nil && (!errors.As(err, &e) || e.Reason != throttle.Paused) {
				t.Errorf("caller %d: %v, want it served: %t", i, err, want)
			}
		}
		const most = throttle.MostCredentials
		for i := range most {
			served(true, i)
			served(true, i) // from its second request on it is no stranger
		}
		for i := range most {
			if wait = "3600"; i == 7 {
				wait = "60"
			}
			served(true, i) // and is refused
		}
		wait = ""
		served(true, most) // for whom there is no room
		wait = "1800"
		served(true, most+1)
		wait = ""
		served(false, most) // shares what was learned with that one
		served(false, most+2)
		served(false, 7)
		if n, _, _ := throttle.LearnedKept(tr, "h"); n != most {
			t.Errorf("%d are told apart, want %d", n, most)
		}
		time.Sleep(25 * time.Minute)
		wait = "3600"
		served(true, most+3) // takes the place of the one that nothing binds
		wait = ""
		served(false, 7) // which now shares with the others
		served(false, most)
		served(false, 0)
	})
}
