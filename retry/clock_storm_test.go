package retry_test

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/internal/trip"
	"github.com/weirhttp/weir/retry"
)

// stalling is a body that blocks until its request ends.
type stalling struct{ r *http.Request }

func (s stalling) Read([]byte) (int, error) {
	<-s.r.Context().Done()
	return 0, s.r.Context().Err()
}

func (stalling) Close() error { return nil }

// Attempts on many goroutines share clocks with those whose timeouts are a
// thousand times shorter or longer, while idle ones are stopped. Each of those
// that hang is ended, not before its time, and no other is.
func TestSharedClocksEndEachHangingAttempt(t *testing.T) {
	w := retry.Wire(testnet.Func(func(r *http.Request) (*http.Response, error) {
		switch r.URL.Path {
		case "/hangs":
			<-r.Context().Done()
			return nil, r.Context().Err()
		case "/stalls":
			return testnet.Answer(r, 200, nil, stalling{r}), nil
		}
		return testnet.Answer(r, 200, nil, testnet.NewBody("x")), nil
	}), retry.Config{AttemptTimeout: time.Hour, StallTimeout: 5 * time.Millisecond})
	attempt := func(path string, limit time.Duration) (took time.Duration, err error) {
		r := request(t, "GET", "http://a.example"+path, "")
		if limit != 0 {
			r = r.WithContext(retry.With(r.Context(), retry.Override{AttemptTimeout: limit}))
		}
		start := time.Now()
		resp, err := w.RoundTrip(r)
		if err == nil {
			start = time.Now()
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		return time.Since(start), err
	}
	var wg sync.WaitGroup
	for g := range 32 {
		wg.Go(func() {
			for i := range 200 {
				var late *retry.TimeoutError
				switch limit := time.Duration(1+(g+i)%50) * 20 * time.Microsecond; (g*7 + i) % 10 {
				case 0:
					if took, err := attempt("/hangs", limit); took < limit || !errors.As(err, &late) || late.Limit != limit {
						t.Errorf("%v after %v, limit %v", err, took, limit)
					}
				case 1:
					if took, err := attempt("/stalls", 0); took < 5*time.Millisecond || !errors.As(err, &late) || !late.Body {
						t.Errorf("%v after %v in a body", err, took)
					}
				case 2:
					if g == 0 { // seldom: it would heal what it should not break
						trip.CloseIdle(w)
					}
				default:
					if took, err := attempt("/", 0); err != nil && took < 5*time.Millisecond {
						t.Errorf("%v after %v", err, took)
					}
				}
			}
		})
	}
	wg.Wait()
}
