package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/internal/farstore"
	"github.com/weirhttp/weir/throttle/store"
)

// api is a server in the bubble. A request takes a random time to it and back,
// and it notes when each arrived.
type api struct {
	mu   sync.Mutex
	r    *rand.Rand
	slow time.Duration // some take up to that long, most a hundredth
	farstore.Sends
}

func (a *api) delay() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	most := a.slow
	if a.r.IntN(4) > 0 {
		most /= 100
	}
	return time.Duration(a.r.Int64N(int64(most)))
}

func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	time.Sleep(a.delay())
	a.Add()
	time.Sleep(a.delay())
	resp := answer(200)
	resp.Request = r
	return resp, nil
}

// farStore is a Store whose round trips take a random time both ways.
type farStore struct {
	throttle.Store
	a *api
}

func (s farStore) Book(ctx context.Context, b store.Booking) (store.Booked, error) {
	way := func() { time.Sleep(min(s.a.delay(), 10*time.Millisecond)) }
	way()
	defer way()
	return s.Store.Book(ctx, b)
}

// lateFleet runs 16 processes for some windows of rate and returns when the
// requests arrived.
func lateFleet(t *testing.T, rate throttle.Rate, slow time.Duration, f throttle.FleetConfig, seed uint64) *farstore.Sends {
	a := &api{r: rand.New(rand.NewPCG(seed, 1)), slow: slow}
	f.Members = 16
	s := farStore{store.NewMemory(), a}
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(max(1, 12*rate.Per), cancel).Stop()
	var wg sync.WaitGroup
	for range f.Members {
		tr, err := throttle.New(a, throttle.Config{Default: throttle.Budget{Rates: []throttle.Rate{rate}}, MaxWait: time.Hour, Store: s, Fleet: f})
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		for range 4 {
			wg.Go(func() { busy(t, ctx, tr) })
		}
	}
	wg.Wait()
	slices.SortFunc(a.At, time.Time.Compare)
	return &a.Sends
}

// TestFleetWindowAtTheServer holds a rate's promise where it is counted: however
// long requests take to arrive and answers to come, in no window of Per more
// than Limit arrive.
func TestFleetWindowAtTheServer(t *testing.T) {
	for _, tc := range []struct {
		rate  string
		lease time.Duration
		least int // in twelve windows, of answers that take up to three
	}{
		{"20/s", 0, 40}, {"5/s burst 5", 0, 8}, {"40/4s burst 40", 0, 100}, {"100/s burst 100", 0, 200}, {"30/10s burst 1", 0, 80},
		{"20/s", 100 * time.Millisecond, 30},
	} {
		rate := throttle.MustParseBudget(tc.rate).Rates[0]
		for _, slow := range []time.Duration{rate.Per / 20, rate.Per, 3 * rate.Per} {
			t.Run(fmt.Sprint(strings.ReplaceAll(tc.rate, "/", " a "), tc.lease, slow), func(t *testing.T) {
				for seed := range uint64(2) {
					synctest.Test(t, func(t *testing.T) {
						out := lateFleet(t, rate, slow, throttle.FleetConfig{Lease: tc.lease}, seed)
						if got := out.Most(rate.Per); got > rate.Limit {
							t.Errorf("seed %d: %d requests arrived in a window, want at most %d", seed, got, rate.Limit)
						}
						if n := len(out.At); n < tc.least {
							t.Errorf("seed %d: %d requests in twelve windows, want at least %d", seed, n, tc.least)
						}
					})
				}
			})
		}
	}
}

// TestFleetMeterAtTheServer: what is kept as a meter allows for the Spread, and
// for no more.
func TestFleetMeterAtTheServer(t *testing.T) {
	const spread = 100 * time.Millisecond
	for _, tc := range []struct {
		rate string
		slow time.Duration // the store's answer takes 10 ms at most
		more float64       // than the promise
	}{
		{"100/s", spread - 11*time.Millisecond, 0},
		{"200/s burst 1", spread - 11*time.Millisecond, 0},
		{"50/s bucket 10", spread - 11*time.Millisecond, 50 * spread.Seconds()},
	} {
		t.Run(strings.ReplaceAll(tc.rate, "/", " a "), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rate := throttle.MustParseBudget(tc.rate).Rates[0]
				out := lateFleet(t, rate, tc.slow, throttle.FleetConfig{Spread: spread}, 1)
				for _, w := range []time.Duration{rate.Per / 10, rate.Per, 3 * rate.Per} {
					most := float64(rate.Limit) * max(1, math.Ceil(w.Seconds()/rate.Per.Seconds()))
					if rate.Bucket > 0 {
						most = float64(rate.Bucket) + float64(rate.Limit)/rate.Per.Seconds()*w.Seconds()
					}
					if got := out.Most(w); float64(got) > most+tc.more {
						t.Errorf("%d requests arrived within %v, want at most %v", got, w, most+tc.more)
					}
				}
				if n := len(out.At); n < 8*rate.Limit {
					t.Errorf("%d requests in twelve windows of %d", n, rate.Limit)
				}
			})
		})
	}
}

// TestFleetAlignedWindowAtTheServer holds a window by the clock where it is counted: a request
// that is under way when one ends counts in the next one, too.
func TestFleetAlignedWindowAtTheServer(t *testing.T) {
	for _, tc := range []struct {
		budget string
		slow   time.Duration
	}{{"30/5s align UTC", 1250 * time.Millisecond}, {"20/s align UTC", 250 * time.Millisecond}, {"40/4s even align UTC", 400 * time.Millisecond}} {
		rate := throttle.MustParseBudget(tc.budget).Rates[0]
		for seed := range uint64(6) {
			synctest.Test(t, func(t *testing.T) {
				in := make(map[time.Time]int)
				for _, at := range lateFleet(t, rate, tc.slow, throttle.FleetConfig{}, seed).At {
					in[at.Truncate(rate.Per)]++
				}
				for at, n := range in {
					if n > rate.Limit {
						t.Errorf("%s, seed %d: %d requests arrived in the window from %v on", tc.budget, seed, n, at)
					}
				}
			})
		}
	}
}

// TestFleetTellsAtTheEndOfAWindow: the store hears of a request that is under way when a window
// by the clock ends, although its process has nothing else to ask.
func TestFleetTellsAtTheEndOfAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ts := sharedTransports(t, farstore.New(time.Millisecond), throttle.Config{Default: throttle.MustParseBudget("20 tokens/s burst 20 align UTC")}, 2, slowAnswers(400*time.Millisecond))
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second + 900*time.Millisecond)))
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := tokens(t, ts[0], 1, time.Second); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(110 * time.Millisecond)
		if _, err := tokens(t, ts[1], 20, 100*time.Millisecond); err == nil {
			t.Error("20 tokens of 20 were let in beside one of the window before")
		}
		if _, err := tokens(t, ts[1], 19, 100*time.Millisecond); err != nil {
			t.Error(err)
		}
		wg.Wait()
	})
}

// slowAnswers is a base whose answers come after d.
func slowAnswers(d time.Duration) http.RoundTripper {
	return answers(func(*http.Request) *http.Response {
		time.Sleep(d)
		return answer(200)
	})
}

func tokens(t *testing.T, tr *throttle.Transport, n int64, wait time.Duration) (*http.Response, error) {
	t.Helper()
	ctx := throttle.WithCost(throttle.WithMaxWait(t.Context(), wait), throttle.Cost{"tokens": n})
	r, err := http.NewRequestWithContext(ctx, "GET", "https://api.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	return tr.RoundTrip(r)
}

// TestFleetSettlesWhatCameLate: what an answer says that it cost goes back from
// where the late units are kept by then.
func TestFleetSettlesWhatCameLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		ts := sharedTransports(t, s, throttle.Config{Default: throttle.MustParseBudget("60 tokens/m burst 60")}, 2, slowAnswers(5*time.Second))
		resp, err := tokens(t, ts[0], 30, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tokens(t, ts[0], 1, time.Second); err != nil { // takes the news along
			t.Fatal(err)
		}
		if err := throttle.Settle(resp, throttle.Cost{"tokens": 10}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if _, err := tokens(t, ts[1], 50, time.Second); err == nil {
			t.Error("50 tokens of 60 were let in beside 11")
		}
		if _, err := tokens(t, ts[1], 49, time.Second); err != nil {
			t.Errorf("49 tokens of 60 beside 11: %v", err)
		}
		time.Sleep(time.Minute)
		told := s.Books()
		if time.Sleep(time.Hour); s.Books() != told {
			t.Errorf("%d calls after all was told", s.Books()-told)
		}
	})
}

// TestFleetTellsLateAnswersOnClose: another process learns how long to wait,
// also of a request that is still open.
func TestFleetTellsLateAnswersOnClose(t *testing.T) {
	for _, open := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := farstore.New(time.Millisecond)
			answer := 20 * time.Second
			if open {
				answer += 5 * time.Second
			}
			ts := sharedTransports(t, s, throttle.Config{Default: throttle.MustParseBudget("1/m burst 1"), MaxWait: time.Second}, 2, slowAnswers(answer))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				r, _ := http.NewRequestWithContext(ctx, "GET", "https://api.example/", nil)
				_, _ = ts[0].RoundTrip(r)
			}()
			time.Sleep(20*time.Second + time.Millisecond*10)
			ts[0].Close()
			synctest.Wait()
			var e *throttle.Error
			if err := visit(t, ts[1], "https://api.example/"); !errors.As(err, &e) || e.RetryAfter < 59*time.Second || e.RetryAfter > time.Minute+time.Second {
				t.Errorf("open=%t: got %v, want a wait of a minute from the answer", open, err)
			}
			synctest.Wait()
			time.Sleep(time.Minute) // the answer comes, to nobody's surprise
		})
	}
}

// TestFleetKeepsLateAnswersForLater: a store that is gone when an answer comes
// late hears of it when it is back.
func TestFleetKeepsLateAnswersForLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		ts := sharedTransports(t, s, throttle.Config{Default: throttle.MustParseBudget("2/m burst 2"), MaxWait: time.Second}, 2, slowAnswers(30*time.Second))
		time.AfterFunc(20*time.Second, func() { s.Fail(errors.New("connection refused"), false) })
		time.AfterFunc(45*time.Second, func() { s.Fail(nil, false) })
		if err := visit(t, ts[0], "https://api.example/"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(35 * time.Second) // 65 s after the grant, 35 s after the answer
		r, err := s.Book(t.Context(), store.Booking{Draws: []store.Draw{{Key: "api.example",
			Limits: []store.Limit{{ID: "1m", Kind: store.LogLimit, Size: 1, Per: time.Minute}}, Units: []store.UnitCost{{Unit: requests, First: 1, All: 1}}}}})
		if err != nil || r.Outcome != store.Refused || r.Wait < 24*time.Second || r.Wait > 26*time.Second {
			t.Errorf("got %+v, %v, want the unit to count until a minute after its answer", r, err)
		}
	})
}
