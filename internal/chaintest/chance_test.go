package chaintest

import (
	"context"
	"math"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// A brownOut is a host that fails at random, after it was good for a while. Everything
// follows from its seed.
type brownOut struct {
	seed       uint64
	p          float64
	rate       float64 // calls a second
	trip, lead time.Duration
	patience   time.Duration // of a call
	served     float64       // of what three attempts can serve
	attempts   float64       // per call
}

func newBrownOut(seed uint64) *brownOut {
	draw := rand.New(rand.NewPCG(seed, 77))
	b := &brownOut{
		seed: seed,
		p:    float64(1+draw.IntN(8)) / 10,
		rate: []float64{20, 50, 100, 200, 500}[draw.IntN(5)],
		trip: time.Duration(5+draw.IntN(95)) * time.Millisecond,

		patience: 2 * time.Second,
	}
	if draw.IntN(2) == 0 {
		b.lead = time.Duration(draw.Float64() * float64(3*time.Second))
	}
	return b
}

// run calls it for half a minute.
func (b *brownOut) run(t *testing.T) {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(b.seed, 78))
	start, asked, calls, good := time.Now(), 0, 0, 0
	rt := must(weir.New(testnet.Func(func(q *http.Request) (*http.Response, error) {
		mu.Lock()
		fails := r.Float64() < b.p && time.Since(start) >= b.lead
		took := time.Duration(float64(b.trip) * (.75 + .5*r.Float64()))
		asked++
		mu.Unlock()
		if err := testnet.Wait(q.Context(), took); err != nil {
			return nil, err
		}
		if fails {
			return testnet.Answer(q, 503, nil, http.NoBody), nil
		}
		return stub(q)
	}), weir.Config{}))(t)
	var wg sync.WaitGroup
	for time.Since(start) < 30*time.Second {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), b.patience)
			defer cancel()
			resp, err := rt.RoundTrip(get(t, "http://h/").WithContext(ctx))
			mu.Lock()
			defer mu.Unlock()
			if calls++; err == nil && resp.StatusCode == 200 {
				good++
			}
		})
		mu.Lock()
		next := time.Duration(r.ExpFloat64() / b.rate * 1e9)
		mu.Unlock()
		time.Sleep(next)
	}
	wg.Wait()
	b.served = float64(good) / float64(calls) / (1 - math.Pow(b.p, 3))
	b.attempts = float64(asked) / float64(calls)
}

// TestChanceIsServedAtAnyLoad: of calls to a host that fails half of its attempts at
// random, or fewer, four fifths of those are served that three attempts can serve, however
// often it is called and however long its answers take, though it says 503 as some
// limiters do. One that fails more often may look like a limiter for longer than this
// takes, and so does one in fifteen of the others.
func TestChanceIsServedAtAnyLoad(t *testing.T) {
	var all, hardly [2]int                            // of those that fail half of their attempts at most, and of the others
	for seed := range uint64(testnet.Drawn(30, 10)) { // those of docs/outages.md are 5541 to 5660
		b := newBrownOut(3001 + seed)
		synctest.Test(t, b.run)
		often := 0
		if b.p > .5 {
			often = 1
		}
		if all[often]++; b.served < .8 {
			t.Logf("%+v", *b)
			hardly[often]++
		}
		if most := 1 + b.p + b.p*b.p + .15; b.attempts > most {
			t.Errorf("%+v: want at most %.2f attempts per call", *b, most)
		}
	}
	t.Logf("hardly served: %v of %v", hardly, all)
	testnet.Judge(t, hardly[0] <= all[0]/6 && hardly[0]+hardly[1] <= (all[0]+all[1])/3, "hardly served: %v of %v hosts, want one in six of the first and one in three of all", hardly, all)
}

// TestRare503sOfASlowHostLetNoFewerGo: a host whose answers take long, and that fails one
// or two attempts in a hundred at random, serves most of what three attempts can.
func TestRare503sOfASlowHostLetNoFewerGo(t *testing.T) {
	for _, test := range []struct {
		brownOut
		least float64 // of what three attempts can serve
	}{
		{brownOut{p: .02, rate: 100, trip: 500 * time.Millisecond}, .85},
		{brownOut{p: .01, rate: 100, trip: 2 * time.Second}, .75},
		{brownOut{p: .02, rate: 100, trip: 2 * time.Second}, .55},
	} {
		const seeds = 8
		b, served := test.brownOut, 0.0
		for seed := range uint64(seeds) {
			b.seed, b.patience = seed, 10*time.Second
			synctest.Test(t, b.run)
			served += b.served / seeds
		}
		if t.Logf("%v at %v/s, %v fail: %.2f served", b.trip, b.rate, b.p, served); served < test.least {
			t.Errorf("%v at %v/s, %v fail: %.2f served of what three attempts can, want %v", b.trip, b.rate, b.p, served, test.least)
		}
	}
}

// TestAHostThatSaysItIsOverloadedByChanceIsNotLeftAlone: one in seven answers is a 529 or 503 whose
// body says that the host is overloaded, as of hosts of language models, whatever one client does.
// That holds up no others.
func TestAHostThatSaysItIsOverloadedByChanceIsNotLeftAlone(t *testing.T) {
	const callers, calls, seeds, takes = 32, 800, 6, 2 * time.Second
	for _, status := range []int{503, 529} {
		sum := time.Duration(0)
		for seed := range uint64(seeds) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				dice := rand.New(rand.NewPCG(seed, 3))
				rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
					mu.Lock()
					fails := dice.Float64() < 1./7
					mu.Unlock()
					if fails {
						time.Sleep(100 * time.Millisecond)
						return testnet.Answer(r, status, http.Header{"Content-Type": {"application/json"}}, testnet.NewBody(`{"error":{"type":"overloaded_error"}}`)), nil
					}
					time.Sleep(takes)
					return stub(r)
				}), weir.Config{}))(t)
				start := time.Now()
				if lost := lostOf(t, rt, calls, callers); lost > 0 {
					t.Errorf("%d, seed %d: %d calls lost", status, seed, lost)
				}
				sum += time.Since(start)
			})
		}
		ideal := calls / callers * takes
		if t.Logf("%d: %v in the mean, %v without the overload", status, sum/seeds, ideal); sum > seeds*3*ideal {
			t.Errorf("%d: calls took %v in the mean, want at most three times %v", status, sum/seeds, ideal)
		}
	}
}
