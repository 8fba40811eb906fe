package chaintest

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// A server states its reset as a Unix time, by a clock of its own, and its Date in whole
// seconds. From many Dates its clock is known far better than from one, and stays so: in
// each window requests that wait for its reset reach the server soon after it, and none too
// early.
func TestResetsAreReadByTheServersClock(t *testing.T) {
	for _, test := range []struct {
		name  string
		ahead time.Duration // the server's clock of ours
		reset func(at time.Time) string
	}{
		{"epoch, 5 min ahead", 5*time.Minute + 700*time.Millisecond, func(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }},
		{"epoch, 5 min behind", -5*time.Minute - 450*time.Millisecond, func(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }},
		{"epoch, right", 0, func(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }},
		{"date", time.Hour + 123*time.Millisecond, func(at time.Time) string { return at.UTC().Format(time.RFC3339) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const per, limit, trip = 10 * time.Second, 60, 10 * time.Millisecond
				const most = 50 * time.Millisecond // sixty answers at random tell no more for certain
				var mu sync.Mutex
				var late []time.Duration // the first request of each window
				used, refused, window := 0, 0, int64(0)
				serve := func(r *http.Request) (*http.Response, error) {
					time.Sleep(trip / 2)
					defer time.Sleep(trip / 2)
					mu.Lock()
					defer mu.Unlock()
					now := time.Now().Add(test.ahead)
					begins := now.Truncate(per)
					if begins.Unix() != window {
						used, window = 0, begins.Unix()
						late = append(late, now.Sub(begins))
					}
					status := http.StatusOK
					if used++; used > limit {
						status = http.StatusTooManyRequests
						refused++
					}
					h := http.Header{}
					h.Set("Date", now.UTC().Format(http.TimeFormat))
					h.Set("X-RateLimit-Limit", strconv.Itoa(limit))
					h.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, limit-used)))
					h.Set("X-RateLimit-Reset", test.reset(begins.Add(per)))
					return testnet.Answer(r, status, h, nil), nil
				}
				rt := must(weir.New(testnet.Func(serve), weir.Config{Throttle: throttle.Config{MaxWait: time.Hour}}))(t)
				time.Sleep(time.Hour) // into a century that all clocks know
				var wg sync.WaitGroup
				dice := rand.New(rand.NewPCG(3, 3))
				for range 1200 { // ten a second: a window is spent before it ends, and others wait for the next
					time.Sleep(time.Duration(dice.ExpFloat64() * 1e8))
					wg.Go(func() {
						r, _ := http.NewRequest("GET", "http://h/a", nil)
						resp, err := rt.RoundTrip(r)
						if err != nil {
							t.Error(err)
							return
						}
						resp.Body.Close()
					})
				}
				wg.Wait()
				if refused > 0 {
					t.Errorf("%d are refused", refused)
				}
				for i, d := range late {
					if i > 1 && d > most {
						t.Errorf("the first request of window %d comes %v after it began", i, d)
					}
				}
			})
		})
	}
}
