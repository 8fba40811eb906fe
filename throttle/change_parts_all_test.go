package throttle_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// oddParts is a server that limits each object below /v0 for each credential, and refuses others in all
// ways there are, or does not answer.
type oddParts struct {
	draw func(n int) int
	mu   sync.Mutex
	last map[string]time.Time
}

func (s *oddParts) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := testnet.Wait(r.Context(), time.Duration(10+s.draw(200))*time.Millisecond); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h := http.Header{}
	switch s.draw(60) {
	case 0:
		h.Set("Retry-After", fmt.Sprint(1+s.draw(40)))
		return testnet.Answer(r, 429, h, nil), nil
	case 1:
		return testnet.Answer(r, 503, nil, nil), nil
	case 2:
		return nil, fmt.Errorf("no answer")
	case 3:
		h.Set("RateLimit-Policy", `"n";q=10;w=60`)
		h.Set("RateLimit", fmt.Sprintf(`"n";r=%d;t=20`, s.draw(3)))
		return testnet.Answer(r, 200, h, testnet.NewBody("x")), nil
	}
	base := r.Header.Get("Authorization") + r.URL.Host + strings.Split(r.URL.Path+"//", "/")[2]
	if strings.HasPrefix(r.URL.Path, "/v0") && time.Since(s.last[base]) < 2*time.Second {
		return testnet.Answer(r, 429, nil, nil), nil
	}
	s.last[base] = time.Now()
	return testnet.Answer(r, 200, nil, testnet.NewBody("x")), nil
}

// Parts of kinds of request, of several hosts that are pushed out by others, of partitions and credentials,
// under load, while budgets, pools, pauses and settings change and the Transport is closed in the end:
// each request ends, and nothing is left of any.
func TestWhateverHappensNothingIsLeftOfParts(t *testing.T) {
	for seed := range uint64(testnet.Drawn(12, 1)) {
		synctest.Test(t, func(t *testing.T) {
			draw := draws(seed)
			c := throttle.Config{MaxKeys: 12}
			c.Learned = throttle.Knowledge{Version: 1, Salt: make([]byte, 16)}
			for i := range 6 {
				for range 8 { // for each who calls
					c.Learned.Hosts = append(c.Learned.Hosts, throttle.KnownHost{Host: fmt.Sprint("h", i), At: time.Now(), Limits: []throttle.KnownLimit{{
						Kind: throttle.LearnedRate, Routes: []string{"GET /v0"}, Parts: []string{"each object", "some objects", "some URLs together", "each URL"}[draw(4)],
						Unit: "requests", Limit: 1, Per: 2 * time.Second,
					}}})
				}
			}
			if seed%2 == 0 {
				c.Partition = func(r *http.Request) string { return r.Header.Get("Part") }
			}
			tr := newTransport(t, &oddParts{draw: draw, last: map[string]time.Time{}}, c)
			url := func() (string, string) {
				host := fmt.Sprint("h", draw(6))
				switch draw(20) {
				case 0:
					host = fmt.Sprint("other", draw(100))
				case 1, 2, 3:
					return host, fmt.Sprintf("http://%s/k%d/x", host, draw(100))
				}
				return host, fmt.Sprintf("http://%s/v0/app%d/%d", host, draw(40), draw(3))
			}
			call := func(most int) {
				_, u := url()
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+draw(most))*time.Millisecond)
				defer cancel()
				r, _ := http.NewRequestWithContext(ctx, "GET", u, nil)
				if who := draw(5); who > 0 {
					r.Header.Set("Authorization", fmt.Sprint("Bearer ", who%3))
				}
				r.Header.Set("Part", []string{"", "a", "b"}[draw(3)])
				if resp, err := tr.RoundTrip(r); err == nil {
					time.Sleep(time.Duration(draw(50)) * time.Millisecond)
					resp.Body.Close()
				}
			}
			end := time.Now().Add(2 * time.Minute)
			var wg sync.WaitGroup
			for range 64 {
				wg.Go(func() {
					for time.Now().Before(end) {
						call(20000)
						time.Sleep(time.Duration(draw(500)) * time.Millisecond)
					}
				})
			}
			for time.Now().Before(end) {
				time.Sleep(time.Duration(draw(2000)) * time.Millisecond)
				host, _ := url()
				switch draw(7) {
				case 0:
					tr.SetBudget("GET "+host+"/v0/app1/", throttle.Budget{Rates: []throttle.Rate{{Limit: 1 + draw(20), Per: time.Second}}})
				case 1:
					tr.SetBudget(host, throttle.Budget{Pool: "p", InFlight: 1 + draw(20)})
				case 2:
					tr.Pause(host, time.Now().Add(2*time.Second))
				case 3:
					tr.Resume(host)
				case 4:
					tr.SetHost(host, throttle.HostConfig{DisableLearning: true})
				case 5:
					tr.SetHost(host, throttle.HostConfig{})
				case 6:
					tr.Learned()
				}
				tr.Stats()
			}
			tr.Close()
			wg.Wait()
			time.Sleep(time.Minute) // hosts that a pause or an asker held up are free again
			if n := throttle.Waiting(t, tr); n != 0 {
				t.Errorf("seed %d: %d wait, want none", seed, n)
			}
			for _, what := range throttle.Amiss(tr) {
				t.Errorf("seed %d: %s", seed, what)
			}
		})
	}
}
