package throttle

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// unhurried answers after 100 ms.
type unhurried struct{}

func (unhurried) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(100 * time.Millisecond)
	return testnet.Answer(r, 200, nil, http.NoBody), nil
}

// What cannot be served in time is refused at once, not when its time is up:
// the estimate knows that units count until Per after their answers.
func TestOverloadIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, unhurried{}, Config{Default: MustParseBudget("100/s burst 1")})
		rnd := rand.New(rand.NewPCG(1, 1))
		var mu sync.Mutex
		var good, refused, late int
		var wg sync.WaitGroup
		for range 150 * 30 {
			time.Sleep(time.Duration(rnd.ExpFloat64() * float64(time.Second) / 150))
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				begin := time.Now()
				resp, err := get(t, ctx, tr, "http://a/")
				mu.Lock()
				defer mu.Unlock()
				var e *Error
				switch {
				case errors.As(err, &e) && time.Since(begin) > time.Millisecond:
					late++
				case errors.As(err, &e):
					refused++
				case err != nil:
					t.Error(err)
				default:
					good++
					resp.Body.Close()
				}
			})
		}
		wg.Wait()
		if late > (refused+late)/100 || refused < 1000 || good < 2700 {
			t.Errorf("%d served, %d refused at once, %d after a wait; want at least 2700, 1000, and no more than a hundredth", good, refused, late)
		}
	})
}
