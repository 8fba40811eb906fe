package throttle

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// Two requests are refused together, and the answer that comes last asks for a
// longer pause: those who cannot wait that long are refused at once, OnLearn is
// told, and the flow resumes at its shaped rate.
func TestALaterAnswerProlongsAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/" {
				return testnet.Answer(r, 200, nil, nil), nil
			}
			pause, _ := strconv.Atoi(r.URL.Path[1:])
			time.Sleep(4*time.Second + time.Duration(pause)*20*time.Millisecond)
			return testnet.Answer(r, 429, http.Header{"Retry-After": {r.URL.Path[1:]}}, nil), nil
		})
		start := time.Now()
		var told atomic.Int32
		tr := newTransport(t, b, Config{Default: MustParseBudget("10/s burst 9"), DisableLearning: true, OnLearn: func(Learned) { told.Add(1) }})
		var wg sync.WaitGroup
		for _, pause := range []string{"4", "50"} {
			wg.Go(func() { mustGet(t, tr, "http://h/"+pause) })
		}
		time.Sleep(4500 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // the first pause ends within it
		defer cancel()
		var e *Error
		if _, err := get(t, ctx, tr, "http://h/"); !errors.As(err, &e) || e.Reason != Paused {
			t.Errorf("got %v, want a refusal because of the pause", err)
		}
		if at := time.Since(start); at != 5*time.Second {
			t.Errorf("refused after %v, want 5s", at)
		}
		wg.Wait()
		if n := told.Load(); n != 2 {
			t.Errorf("%d pauses were told, want 2", n)
		}
		for range 3 {
			wg.Go(func() { mustGet(t, tr, "http://h/") })
		}
		wg.Wait()
		end := 55 * time.Second
		sameTimes(t, b.times()[2:], end, end+100*time.Millisecond, end+200*time.Millisecond)
	})
}

// A pause takes what the budget had saved up, also from one who has it already
// and waits for something else: it goes when that is there again.
func TestAPauseReachesThoseWhoHavePart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/refuse" {
				time.Sleep(23 * time.Second)
				return testnet.Answer(r, 429, http.Header{"Retry-After": {"3"}}, nil), nil
			}
			return testnet.Answer(r, 200, nil, nil), nil
		})
		tr := newTransport(t, b, Config{Default: MustParseBudget("6/m burst 2, 60 tokens/m burst 30"), DisableLearning: true})
		for range settledIn {
			get(t, WithCost(t.Context(), Cost{requests: 0}), tr, "http://h/")
		}
		var wg sync.WaitGroup
		wg.Go(func() { get(t, WithCost(t.Context(), Cost{requests: 2, "tokens": 55}), tr, "http://h/refuse") })
		synctest.Wait()
		// The requests are there after 20 s, the token after 26. By then, when
		// the pause ends, there is one request.
		if _, err := get(t, WithCost(t.Context(), Cost{requests: 2, "tokens": 1}), tr, "http://h/"); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		sameTimes(t, b.times()[settledIn+1:], 36*time.Second)
	})
}

// Who is refused because of the server's pause is told so, whatever the pause
// takes from the budget.
func TestAServersPauseIsWhy(t *testing.T) {
	for _, budget := range []string{"unlimited", "10/s burst 10", "10/s", "7/s burst 2", "10/s bucket 20"} {
		for _, pausesOnly := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				b := newBase(func(r *http.Request) (*http.Response, error) {
					return testnet.Answer(r, 429, http.Header{"Retry-After": {"100"}}, nil), nil
				})
				tr := newTransport(t, b, Config{Default: MustParseBudget(budget), DisableLearning: pausesOnly})
				mustGet(t, tr, "http://h/")
				var e *Error
				if _, err := get(t, t.Context(), tr, "http://h/"); !errors.As(err, &e) || e.Reason != Paused {
					t.Errorf("%s: got %v, want a refusal because of the pause", budget, err)
				}
			})
		}
	}
}
