package sim

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/bench/wait"
)

// A figure is one number that a run came to.
type figure struct {
	Scenario string
	Strategy string
	Name     string
	Seed     uint64
	Value    float64
}

// A result collects figures. Its name and strategy are those of the run.
type result struct {
	scenario, strategy string
	seed               uint64
	figures            *[]figure
}

func (r *result) add(name string, v float64) {
	*r.figures = append(*r.figures, figure{r.scenario, r.strategy, name, r.seed, v})
}

// virtual runs f in virtual time that begins in a year in which Unix times
// have ten digits.
func virtual(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(26 * 365 * 24 * time.Hour)
		f(t)
	})
}

// jobs has workers goroutines make n calls, and returns how long they took and
// how many failed.
func jobs(ctx context.Context, c client, n, workers int) (took time.Duration, failed int) {
	begin := time.Now()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				mu.Lock()
				n--
				stop := n < 0
				mu.Unlock()
				if stop || ctx.Err() != nil {
					return
				}
				if !c.call(ctx) {
					mu.Lock()
					failed++
					mu.Unlock()
					_ = wait.For(ctx, 10*time.Millisecond) // a refusal takes no time; virtual time must pass
				}
			}
		})
	}
	wg.Wait()
	return time.Since(begin), failed
}

// offer starts calls at random times, perSecond of them on average, for the
// given time, and waits for all to end. done is told of each.
func offer(ctx context.Context, d *dice, perSecond float64, during time.Duration, call func(ctx context.Context) bool, done func(begin time.Time, ok bool)) {
	var wg sync.WaitGroup
	end := time.Now().Add(during)
	for {
		gap := seconds(-math.Log(1-d.float()) / perSecond)
		if wait.For(ctx, gap) != nil || !time.Now().Before(end) {
			break
		}
		wg.Go(func() {
			begin := time.Now()
			ok := call(ctx)
			done(begin, ok)
		})
	}
	wg.Wait()
}

// tally counts events by the second.
type tally struct {
	mu    sync.Mutex
	begin time.Time
	bins  []int
}

func newTally() *tally { return &tally{begin: time.Now()} }

func (c *tally) add(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := int(at.Sub(c.begin) / time.Second)
	for len(c.bins) <= i {
		c.bins = append(c.bins, 0)
	}
	c.bins[i]++
}

// median, best and worst of some numbers.
func spread(v []float64) (median, least, most float64) {
	v = slices.Clone(v)
	slices.Sort(v)
	n := len(v)
	if n == 0 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	median = v[n/2]
	if n%2 == 0 {
		median = (v[n/2-1] + v[n/2]) / 2
	}
	return median, v[0], v[n-1]
}

// quantile of some numbers.
func quantile(v []float64, q float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Clone(v)
	slices.Sort(v)
	return v[min(len(v)-1, int(q*float64(len(v))))]
}
