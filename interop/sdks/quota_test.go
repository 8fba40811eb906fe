package sdks

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-github/v93/github"

	"github.com/weirhttp/weir"
)

// TestQuota: 60 calls from 10 goroutines of an API that allows 20 every 10 s
// and says so, or not, in its own way: all succeed, and no more are refused if
// the SDK retries by itself, too.
func TestQuota(t *testing.T) {
	for _, s := range sdks() {
		if s.deny == nil {
			continue
		}
		for _, own := range []bool{true, false} {
			name := s.name + ", its retries off"
			if own {
				name = s.name
			}
			t.Run(name, func(t *testing.T) {
				q := &quota{limit: 20, per: 10 * time.Second, state: s.state, deny: s.deny}
				bubble(t, q.over(says(s.body)), weir.Config{}, func(t *testing.T, c *http.Client) {
					start, call := time.Now(), s.call(c, own)
					var wg sync.WaitGroup
					for range 10 {
						wg.Go(func() {
							for range 6 {
								if err := call(t.Context()); err != nil {
									t.Error(err)
								}
							}
						})
					}
					wg.Wait()
					took := time.Since(start)
					t.Logf("%v (ideal 20 s), %d refused", took, q.refused)
					if most := time.Duration(s.mayRefuse+20) * time.Second; took > most {
						t.Errorf("took %v, more than %v", took, most)
					}
					if q.refused > int64(s.mayRefuse) {
						t.Errorf("%d refusals of 60 calls, more than %d", q.refused, s.mayRefuse)
					}
				})
			})
		}
	}
}

// TestGitHubChecksByItself: as it comes, go-github fails by itself what would
// be refused, and weir never sees it. That is why it is switched off above.
func TestGitHubChecksByItself(t *testing.T) {
	s := sdks()[0]
	q := &quota{limit: 5, per: time.Hour, state: s.state, deny: s.deny}
	bubble(t, q.over(says(s.body)), weir.Config{}, func(t *testing.T, c *http.Client) {
		gh := gitHub(c)
		var limited int
		for range 8 {
			_, _, err := gh.Users.Get(t.Context(), "octocat")
			if _, ok := err.(*github.RateLimitError); ok {
				limited++
			} else if err != nil {
				t.Error(err)
			}
		}
		if limited != 3 || q.served != 5 || q.refused != 0 {
			t.Errorf("%d limited by go-github; the server served %d, refused %d", limited, q.served, q.refused)
		}
	})
}

// TestAttempts counts what a server that only says 500 sees of one call. The
// numbers are those of docs/sdks.md.
func TestAttempts(t *testing.T) {
	for _, s := range sdks() {
		for _, tt := range []struct {
			name string
			own  bool
			c    weir.Config
			want int
		}{
			{"as they come", true, weir.Config{}, s.both},
			{"its retries off", false, weir.Config{}, s.ours},
			{"ours off", true, once(), s.theirs},
		} {
			t.Run(s.name+", "+tt.name, func(t *testing.T) {
				var seen atomic.Int64
				h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					seen.Add(1)
					refuse(w, 500, `{"error":{"code":"500","message":"broken"}}`)
				})
				bubble(t, h, tt.c, func(t *testing.T, c *http.Client) {
					if err := s.call(c, tt.own)(t.Context()); err == nil {
						t.Error("no error")
					}
				})
				if seen.Load() != int64(tt.want) {
					t.Errorf("the server saw %d, want %d", seen.Load(), tt.want)
				}
			})
		}
	}
}

// TestOutage: where both loops run, ours is paid from the host's allowance, so
// that an outage costs what the SDK's would, and little more.
func TestOutage(t *testing.T) {
	s := sdks()[2]
	var seen atomic.Int64
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		refuse(w, 500, `{}`)
	})
	const calls = 300
	bubble(t, h, weir.Config{}, func(t *testing.T, c *http.Client) {
		call := s.call(c, true)
		for range calls {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if err := call(ctx); err == nil {
				t.Error("no error")
			}
			cancel()
		}
	})
	t.Logf("%d requests for %d calls; the SDK alone would send %d, both without an allowance %d", seen.Load(), calls, 3*calls, 9*calls)
	if seen.Load() > 3*calls {
		t.Errorf("the server saw %d", seen.Load())
	}
}
