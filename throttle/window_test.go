package throttle_test

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// A configured rate is that rate whatever answers take: nine tenths of it at
// least, as units under way count until a tenth of Per after their grant.
func TestRateIsTheSameWhateverAnswersTake(t *testing.T) {
	mixed := func(r *rand.Rand) time.Duration {
		if r.IntN(100) < 3 {
			return 20 * time.Second
		}
		return 50 * time.Millisecond
	}
	always := func(d time.Duration) func(*rand.Rand) time.Duration {
		return func(*rand.Rand) time.Duration { return d }
	}
	for name, answer := range map[string]func(*rand.Rand) time.Duration{
		"20 ms": always(20 * time.Millisecond), "200 ms": always(200 * time.Millisecond),
		"1 s": always(time.Second), "5 s": always(5 * time.Second), "20 s": always(20 * time.Second),
		"3 % take 20 s": mixed,
	} {
		for _, budget := range []string{
			"10/s", "100/s", "10/s burst 10", "100/s burst 1", "600/m burst 30", "10/s align UTC", "10/s bucket 10", "10/s bucket 1", "10/s, 900/m",
		} {
			for _, learns := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					var mu sync.Mutex
					rnd := rand.New(rand.NewPCG(1, 11))
					b := newBase(func(r *http.Request) (*http.Response, error) {
						mu.Lock()
						d := answer(rnd)
						mu.Unlock()
						return slow(d)(r)
					})
					tr := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget(budget), DisableLearning: !learns, MaxWait: time.Hour})
					limit := throttle.MustParseBudget(budget).Rates[0]
					rate := float64(limit.Limit) / limit.Per.Seconds()
					seconds := 33.0 // thirty times a second and its transit
					if rate > 50 {
						seconds = 11
					}
					started := saturated(t, tr, b, int(rate*(seconds+11)), time.Duration(seconds)*time.Second)
					if want := int(0.9 * rate * seconds); started < want {
						t.Errorf("%s, answers take %s, learns %t: %d started in %v s, want at least %d", budget, name, learns, started, seconds, want)
					}
				})
			}
		}
	}
}

// From the first second on, too, and where most answers, or half of them, take a
// thousand times as long as the others. A host that is learned about is asked by a
// few callers only until it has answered, so its first two seconds are not counted.
func TestRateIsTheSameFromTheStart(t *testing.T) {
	slowIn := func(share int) func(*rand.Rand) time.Duration {
		return func(r *rand.Rand) time.Duration {
			if r.IntN(100) < share {
				return 20 * time.Second
			}
			return 20 * time.Millisecond
		}
	}
	for name, answer := range map[string]func(*rand.Rand) time.Duration{
		"all take 20 ms": slowIn(0), "all take 20 s": slowIn(100), "3 % take 20 s": slowIn(3), "half take 20 s": slowIn(50), "nine of ten take 20 s": slowIn(90),
		"up to 20 s": func(r *rand.Rand) time.Duration { return time.Duration(r.Int64N(int64(20 * time.Second))) },
	} {
		for _, learns := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				const seconds = 60
				var mu sync.Mutex
				rnd := rand.New(rand.NewPCG(1, 11))
				b := newBase(func(r *http.Request) (*http.Response, error) {
					mu.Lock()
					d := answer(rnd)
					mu.Unlock()
					return slow(d)(r)
				})
				tr := newTransport(t, b, throttle.Config{Default: throttle.MustParseBudget("10/s"), DisableLearning: !learns, MaxWait: time.Hour})
				ctx, cancel := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				for range 11 * seconds {
					wg.Go(func() {
						if resp, err := get(t, ctx, tr, "http://a/"); err == nil {
							resp.Body.Close()
						}
					})
				}
				time.Sleep(seconds*time.Second + 1)
				cancel()
				wg.Wait()
				var started [seconds + 1]int
				for _, at := range b.Times() {
					started[at/time.Second]++
				}
				first := 0
				if learns {
					first = 2
				}
				for i, n := range started[first:seconds] {
					if n < 9 {
						t.Errorf("%s, learns %t: %d started in second %d, want at least 9", name, learns, n, first+i)
					}
				}
			})
		}
	}
}

// Who asks for less than the rate and has little time loses nothing because a few
// answers take long.
func TestSlowAnswersLoseNoQuickCalls(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 13))
			tr := newTransport(t, newBase(func(r *http.Request) (*http.Response, error) {
				if r.URL.RawQuery == "slow" {
					return slow(20 * time.Second)(r)
				}
				return slow(50 * time.Millisecond)(r)
			}), throttle.Config{Default: throttle.MustParseBudget("10/s")})
			var lost, all atomic.Int64
			var wg sync.WaitGroup
			for range 8 * 120 {
				time.Sleep(time.Duration(rnd.ExpFloat64() * float64(time.Second) / 8))
				url, patience := "http://a/", 5*time.Second
				if rnd.IntN(100) < 3 {
					url, patience = "http://a/?slow", time.Minute
				}
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					resp, err := get(t, ctx, tr, url)
					if all.Add(1); err != nil {
						lost.Add(1)
						return
					}
					resp.Body.Close()
				})
			}
			wg.Wait()
			if lost.Load() > 0 {
				t.Errorf("seed %d: %d of %d lost at 8/s under 10/s", seed, lost.Load(), all.Load())
			}
		})
	}
}

// saturated sends n requests at once and returns how many start in d, after the
// first seconds, in which it is found out how the host answers.
func saturated(t *testing.T, rt http.RoundTripper, b *base, n int, d time.Duration) int {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if resp, err := get(t, ctx, rt, "http://a/"); err == nil {
				resp.Body.Close()
			}
		})
	}
	time.Sleep(10 * time.Second)
	before := len(b.Times())
	time.Sleep(d)
	cancel()
	wg.Wait()
	return len(b.Times()) - before
}

// distant is a server that a request reaches after a random time, up to a bound,
// and that answers after another. It keeps a log of what arrived.
type distant struct {
	mu      sync.Mutex
	rnd     *rand.Rand
	far     time.Duration // that each takes
	way     time.Duration // at most, beside that
	start   time.Time
	arrived map[string][]arrived // by unit
}

func (d *distant) RoundTrip(r *http.Request) (*http.Response, error) {
	d.mu.Lock()
	way, work := time.Duration(d.rnd.Int64N(int64(d.way)+1)), time.Duration(d.rnd.Int64N(int64(d.way)))
	lost := false
	switch d.rnd.IntN(10) {
	case 0, 1:
		way = d.way
	case 2, 3:
		way = 0
	case 4:
		work = 20 * time.Second
	case 5:
		lost = true
	}
	way += d.far
	d.mu.Unlock()
	used, _ := r.Context().Value(usedKey{}).(int64)
	go d.arrives(way, used) // also if the attempt has ended meanwhile
	if lost {
		return nil, errors.New("reset")
	}
	if err := testnet.Wait(r.Context(), way+work); err != nil {
		return nil, err
	}
	return testnet.Answer(r, 200, nil, testnet.NewBody("x")), nil
}

func (d *distant) arrives(way time.Duration, used int64) {
	testnet.Wait(context.Background(), way)
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Since(d.start)
	d.arrived[requests] = append(d.arrived[requests], arrived{now, 1})
	d.arrived["tokens"] = append(d.arrived["tokens"], arrived{now, used})
}

// usedKey is the type of the context's key of what a request really costs.
type usedKey struct{}

// The window holds where requests arrive as long as their ways there, however long,
// differ by no more than a tenth of Per: with stacked rates and bursts, with costs that
// are settled, when callers give up, after idling, and with 64 goroutines.
func TestWindowHoldsAtTheServer(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 12))
		per := time.Second * time.Duration(1+rnd.IntN(4))
		rates := []throttle.Rate{
			{Limit: 1 + rnd.IntN(150), Per: per},
			{Limit: 20 + rnd.IntN(400), Per: 3 * per},
			{Limit: 200 + rnd.IntN(2000), Per: 2 * per, Unit: "tokens"},
		}
		for i := range rates {
			rates[i].Burst = []int{0, 1, rates[i].Limit}[rnd.IntN(3)]
		}
		synctest.Test(t, func(t *testing.T) {
			d := &distant{rnd: rnd, far: []time.Duration{0, per / 2, 2 * per}[seed%3], way: per / 10, start: time.Now(), arrived: make(map[string][]arrived)}
			tr := newTransport(t, d, throttle.Config{Default: throttle.Budget{Rates: rates}, DisableLearning: true, MaxWait: time.Hour})
			until := d.start.Add(20 * per)
			var wg sync.WaitGroup
			for i := range uint64(64) {
				wg.Go(func() { settler(t, tr, rand.New(rand.NewPCG(seed, i)), until, per) })
			}
			wg.Wait()
			time.Sleep(3 * per)
			d.mu.Lock()
			defer d.mu.Unlock()
			for _, r := range rates {
				judge(func(format string, args ...any) { t.Errorf("seed %d: "+format, append([]any{seed}, args...)...) }, r, d.arrived[cmp.Or(r.Unit, requests)])
			}
			if n := len(d.arrived[requests]); n < 20 {
				t.Errorf("seed %d: %d requests, too few to judge", seed, n)
			}
		})
	}
}

// settler calls until then. Each call costs less than is reserved, and is settled
// some time after its answer.
func settler(t *testing.T, rt http.RoundTripper, rnd *rand.Rand, until time.Time, per time.Duration) {
	for time.Now().Before(until) {
		if rnd.IntN(6) == 0 {
			time.Sleep(time.Duration(rnd.Int64N(int64(4 * per)))) // all are idle at times
		}
		estimate := 1 + rnd.Int64N(100)
		used := rnd.Int64N(estimate + 1)
		ctx, cancel := context.WithCancel(context.WithValue(throttle.WithCost(t.Context(), throttle.Cost{"tokens": estimate}), usedKey{}, used))
		if rnd.IntN(6) == 0 {
			time.AfterFunc(time.Duration(1+rnd.Int64N(int64(2*per))), cancel)
		}
		if resp, err := get(t, ctx, rt, "http://a/"); err == nil {
			time.Sleep(time.Duration(rnd.Int64N(int64(per))))
			if rnd.IntN(8) > 0 {
				if err := throttle.Settle(resp, throttle.Cost{"tokens": used}); err != nil {
					t.Error(err)
				}
			}
			resp.Body.Close()
		}
		cancel()
	}
}
