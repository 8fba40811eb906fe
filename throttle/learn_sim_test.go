package throttle_test

import (
	"context"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// bout is a run of a Transport against one server, in which some callers have so many
// jobs to do between them, each until it is served.
type bout struct {
	tr      *throttle.Transport
	begin   time.Time
	trip    time.Duration // one way; a quarter more or less
	jobs    int
	workers int

	mu            sync.Mutex
	r             *rand.Rand
	serve         func(now time.Duration) (status int, s headers.Signal) // now: since begin. It is called by one at a time
	onRefuse      func()                                                 // likewise, when the caller has the answer
	onEnd         func()                                                 // when all is done; nil: nothing
	good, refused int
	pauses        int           // begun or prolonged by a refusal
	took          time.Duration // until the last was served
}

// saying is where the context of a request says what its answer is to say.
type saying struct{}

// play is a bout that lasts for most at most. prepare says against which server.
func play(t *testing.T, seed uint64, jobs, workers int, most time.Duration, prepare func(b *bout)) (b *bout) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b = newBout(t, seed, jobs, workers)
		prepare(b)
		b.run(t, most)
	})
	return b
}

func newBout(t *testing.T, seed uint64, jobs, workers int) *bout {
	b := &bout{begin: time.Now(), r: rand.New(rand.NewPCG(seed, 5)), jobs: jobs, workers: workers, trip: 20 * time.Millisecond}
	b.tr = newTransport(t, testnet.Func(b.answer), throttle.Config{
		MaxWait: 1000 * time.Hour, MaxQueue: workers + 1,
		Classify: func(resp *http.Response, _ headers.Signal) headers.Signal {
			return *resp.Request.Context().Value(saying{}).(*headers.Signal)
		},
		OnLearn: func(l throttle.Learned) {
			if strings.Contains(l.Why, ": paused until ") {
				b.mu.Lock()
				b.pauses++
				b.mu.Unlock()
			}
		},
	})
	throttle.Jitter(b.tr, rand.New(rand.NewPCG(seed, 6)).Float64)
	return b
}

// way is how long a request takes one way.
func (b *bout) way() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Duration(float64(b.trip) * (0.75 + 0.5*b.r.Float64()))
}

// answer is the server.
func (b *bout) answer(r *http.Request) (*http.Response, error) {
	if err := testnet.Wait(r.Context(), b.way()); err != nil {
		return nil, err
	}
	b.mu.Lock()
	status, s := b.serve(time.Since(b.begin))
	b.mu.Unlock()
	*r.Context().Value(saying{}).(*headers.Signal) = s
	if err := testnet.Wait(r.Context(), b.way()); err != nil {
		return nil, err
	}
	return testnet.Answer(r, status, nil, nil), nil
}

// run does the jobs, but for no longer than most.
func (b *bout) run(t *testing.T, most time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	left := b.jobs
	next := func(served bool) bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch {
		case served && left == 0:
			return false
		case served:
			left--
		}
		return ctx.Err() == nil
	}
	var wg sync.WaitGroup
	for range b.workers {
		wg.Go(func() {
			for served := true; next(served); {
				r, err := http.NewRequestWithContext(context.WithValue(ctx, saying{}, new(headers.Signal)), "GET", "http://h/v1", nil)
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := b.tr.RoundTrip(r)
				if err != nil {
					return
				}
				b.mu.Lock()
				if served = resp.StatusCode == 200; served {
					b.good++
					b.took = time.Since(b.begin)
				} else if b.refused++; b.onRefuse != nil {
					b.onRefuse()
				}
				b.mu.Unlock()
			}
		})
	}
	wg.Wait()
	if b.onEnd != nil {
		b.onEnd()
	}
}

// A bucketServer says by style, as the two below: 0: bare 429; 1: Retry-After in
// seconds, rounded up; 2: remaining and reset as well.
func bucketServer(rate, burst float64, style int) func(time.Duration) (int, headers.Signal) {
	tokens, last := burst, time.Duration(0)
	return func(now time.Duration) (int, headers.Signal) {
		tokens = min(burst, tokens+(now-last).Seconds()*rate)
		last = now
		status, s := 200, headers.Signal{}
		if tokens >= 1-1e-9 {
			tokens--
		} else {
			status, s.Throttled, s.Kind = 429, true, headers.Quota
			if style > 0 {
				s.RetryAfter = known(time.Duration(math.Ceil((1-tokens)/rate)) * time.Second)
			}
		}
		if style > 1 {
			s.Limits = []headers.Limit{{Name: "default", Quota: known(rate), Window: known(time.Second),
				Remaining: known(math.Floor(tokens + 1e-9)), Reset: known(time.Second), ResetMeans: headers.Next, Source: "RateLimit"}}
		}
		return status, s
	}
}

func windowServer(n float64, per, phase time.Duration, style int) func(time.Duration) (int, headers.Signal) {
	left, number := n, int64(0)
	return func(now time.Duration) (int, headers.Signal) {
		t := now + phase
		if int64(t/per) != number {
			left, number = n, int64(t/per)
		}
		rest := wholeSeconds(per - t%per)
		status, s := 200, headers.Signal{}
		if left >= 1 {
			left--
		} else {
			status, s.Throttled, s.Kind = 429, true, headers.Quota
			if style > 0 {
				s.RetryAfter = known(rest)
			}
		}
		if style > 1 {
			s.Limits = []headers.Limit{{Quota: known(n), Remaining: known(left), Reset: known(rest), ResetMeans: headers.Boundary, Source: "X-RateLimit-Remaining"}}
		}
		if style > 2 {
			s.Limits[0].Window, s.Limits[0].ResetMeans = known(per), headers.Next
		}
		return status, s
	}
}

func slidingServer(n int, per time.Duration, style int) func(time.Duration) (int, headers.Signal) {
	var log []time.Duration
	return func(now time.Duration) (int, headers.Signal) {
		for len(log) > 0 && now-log[0] >= per {
			log = log[1:]
		}
		status, s := 200, headers.Signal{}
		if len(log) < n {
			log = append(log, now)
		} else {
			status, s.Throttled, s.Kind = 429, true, headers.Quota
			if style > 0 {
				s.RetryAfter = known(wholeSeconds(per - (now - log[0])))
			}
		}
		if style > 1 {
			s.Limits = []headers.Limit{{Name: "default", Quota: known(float64(n)), Window: known(per), Remaining: known(float64(n - len(log))),
				Reset: known(wholeSeconds(per - (now - log[0]))), ResetMeans: headers.Next, Source: "RateLimit"}}
		}
		return status, s
	}
}

// wholeSeconds is d, rounded up.
func wholeSeconds(d time.Duration) time.Duration {
	return (d + time.Second - 1) / time.Second * time.Second
}

func known[T any](v T) headers.Opt[T] { return headers.Opt[T]{Value: v, Known: true} }

// At one a second each refusal costs most of a request's time: feeling one's way
// goes by requests then, not by seconds.
func TestSlowRatesAreFeltForSlowly(t *testing.T) {
	var took []float64
	for seed := range uint64(41) {
		b := play(t, seed, 60, 64, 3*time.Minute, func(b *bout) { b.serve = bucketServer(1, 1, 0) })
		if took = append(took, b.took.Seconds()/59); b.good < 60 || b.refused > 24 {
			t.Errorf("seed %d: %d done, %d refused, want 60, at most 24", seed, b.good, b.refused)
		}
	}
	slices.Sort(took)
	if median := took[len(took)/2]; median > 1.3 {
		t.Errorf("%.3f x ideal, want at most 1.3", median)
	}
}

// A server with a bucket may say five seconds to everyone: no window, as what is sent
// before the next one shows. Each refusal costs five seconds until that is found.
func TestConstantHintIsFoundToBeABucket(t *testing.T) {
	for seed := range uint64(5) {
		serve := bucketServer(100, 100, 1)
		b := play(t, seed, 1000, 1000, time.Minute, func(b *bout) {
			b.serve = func(now time.Duration) (int, headers.Signal) {
				status, s := serve(now)
				if s.RetryAfter.Known {
					s.RetryAfter.Value = 5 * time.Second
				}
				return status, s
			}
		})
		if took := b.took.Seconds(); took > 24 || b.refused > 50 {
			t.Errorf("seed %d: took %.1f s with %d refusals, want at most 24 and 50", seed, took, b.refused)
		}
	}
}

// A burst that is refused says how large a bucket is, not how fast it fills. It
// costs a few more refusals to find that out. What else than the pauses, less what the
// bucket saves up in them, is lost is little, but where a pause is long for so fast a
// bucket.
func TestFewRefusalsTellABucketsRate(t *testing.T) {
	for _, c := range []struct {
		rate, burst float64
		jobs        int
		trip        time.Duration
		pauses      float64
		lost        float64 // of the ideal time
	}{
		{50, 10, 500, 200 * time.Microsecond, 3, .05}, {50, 10, 500, 5 * time.Millisecond, 4, .05},
		{100, 20, 1000, 200 * time.Microsecond, 3, .05},
		{200, 50, 1000, 200 * time.Microsecond, 3, .05}, {200, 50, 1000, 5 * time.Millisecond, 7, .15}, {200, 40, 1000, 20 * time.Millisecond, 6, .4},
		{500, 100, 3000, 5 * time.Millisecond, 7, .85}, {1000, 200, 8000, 5 * time.Millisecond, 20, 1.2},
	} {
		var lost, pauses []float64
		for seed := range uint64(9) {
			b := play(t, seed, c.jobs, c.jobs, time.Minute, func(b *bout) { b.trip, b.serve = c.trip, bucketServer(c.rate, c.burst, 1) })
			n := float64(b.pauses)
			if b.good < c.jobs {
				t.Fatalf("%v/s of %v: %d of %d done in a minute", c.rate, c.burst, b.good, c.jobs)
			}
			ideal := (float64(c.jobs) - c.burst) / c.rate
			lost, pauses = append(lost, (b.took.Seconds()-ideal-n*(1-c.burst/c.rate))/ideal), append(pauses, n)
		}
		slices.Sort(lost)
		slices.Sort(pauses)
		if lost[4] > c.lost || pauses[4] > c.pauses {
			t.Errorf("%v/s of %v, %v away: %.0f pauses and %.3f of the ideal time beside them, want at most %.0f and %.2f", c.rate, c.burst, c.trip, pauses[4], lost[4], c.pauses, c.lost)
		}
	}
}

func TestQuotasAreFoundWithFewRefusals(t *testing.T) {
	const said = 2
	type server = func(style int) func(time.Duration) (int, headers.Signal)
	bucket := func(rate, burst float64) server {
		return func(style int) func(time.Duration) (int, headers.Signal) { return bucketServer(rate, burst, style) }
	}
	window := func(style int) func(time.Duration) (int, headers.Signal) {
		return windowServer(100, 10*time.Second, 3700*time.Millisecond, style)
	}
	sliding := func(style int) func(time.Duration) (int, headers.Signal) {
		return slidingServer(600, time.Minute, style)
	}
	for _, c := range []struct {
		name   string
		serve  server
		style  int
		jobs   int
		ideal  float64 // seconds
		most   float64 // times ideal
		wasted float64 // refusals per success
	}{
		{"bucket 1/s bare", bucket(1, 1), 0, 60, 59, 1.5, .4},
		{"bucket 5/s bare", bucket(5, 5), 0, 300, 59, 1.1, .07},
		{"bucket 50/s bare", bucket(50, 50), 0, 3000, 59, 1.01, .03},
		{"bucket 500/s bare", bucket(500, 100), 0, 30000, 60, 1.1, .02},
		{"bucket 1/s retry-after", bucket(1, 1), 1, 60, 59, 1.3, .2},
		{"bucket 2/s of one retry-after", bucket(2, 1), 1, 120, 59.5, 1.35, .12},
		{"bucket 5/s of one retry-after", bucket(5, 1), 1, 300, 59.8, 1.25, .04},
		{"bucket 5/s retry-after", bucket(5, 5), 1, 300, 59, 1.05, .08},
		{"bucket 50/s retry-after", bucket(50, 50), 1, 3000, 59, 1.1, .05},
		{"bucket 500/s retry-after", bucket(500, 100), 1, 30000, 60, 1.8, .013},
		{"bucket 5/s stated", bucket(5, 5), said, 300, 59, 1.02, 0},
		{"bucket 50/s stated", bucket(50, 50), said, 3000, 59, 1.02, 0},
		{"bucket 500/s stated", bucket(500, 100), said, 30000, 60, 1.02, 0},
		{"fixed window bare", window, 0, 1000, 90 - 3.7, 1.5, .1},
		{"fixed window retry-after", window, 1, 1000, 90 - 3.7, 1.03, .04},
		{"fixed window stated", window, said, 1000, 90 - 3.7, 1.03, 0},
		{"fixed window rolling", window, 3, 1000, 90 - 3.7, 1.03, 0},
		{"sliding retry-after", sliding, 1, 3000, 240, 1.1, .03},
		{"sliding stated", sliding, said, 3000, 240, 1.03, 0},
		{"short sliding stated", func(style int) func(time.Duration) (int, headers.Signal) {
			return slidingServer(100, 2*time.Second, style)
		}, said, 500, 8, 1.08, 0},
		{"short window stated", func(style int) func(time.Duration) (int, headers.Signal) {
			return windowServer(100, 2*time.Second, 700*time.Millisecond, style)
		}, 3, 500, 7.3, 1.15, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			seeds := uint64(1)
			switch { // chance decides about
			case c.wasted == 0:
			case c.jobs <= 1000: // few refusals
				seeds = 20
			case c.jobs >= 30000: // few waves of refusals
				seeds = uint64(testnet.Drawn(12, 3))
			}
			took, wasted := 0.0, 0.0
			for seed := range seeds {
				b := play(t, 1+seed, c.jobs, 64, time.Duration(4*c.ideal)*time.Second, func(b *bout) { b.serve = c.serve(c.style) })
				if b.good < c.jobs {
					t.Errorf("got %d of %d done", b.good, c.jobs)
				}
				took += b.took.Seconds() / c.ideal / float64(seeds)
				wasted += float64(b.refused) / float64(c.jobs) / float64(seeds)
			}
			t.Logf("%.3f x ideal, %.3f refusals per success", took, wasted)
			testnet.Judge(t, took <= c.most && wasted <= c.wasted, "%.3f x ideal with %.3f refusals per success, want %.2f, %.2f", took, wasted, c.most, c.wasted)
		})
	}
}
