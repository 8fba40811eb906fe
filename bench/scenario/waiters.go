package scenario

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"golang.org/x/time/rate"

	"github.com/weirhttp/weir/bench/result"
	"github.com/weirhttp/weir/throttle"
)

// A line makes one limiter with a rate per second and a burst of 1, whose callers
// wait until there is room or their context ends. waiting is how many do; nil: it
// does not say.
type line struct {
	name string
	make func(perSecond, callers int) (wait func(ctx context.Context) error, waiting func() int, err error)
}

func lines() []line {
	return []line{
		{"weir throttle.Limiter", func(perSecond, callers int) (func(context.Context) error, func() int, error) {
			l, err := throttle.NewLimiter(throttle.LimiterConfig{MaxWait: 1000 * time.Hour, MaxQueue: callers,
				Default: throttle.Budget{Rates: []throttle.Rate{{Limit: perSecond, Per: time.Second, Bucket: 1}}}})
			wait := func(ctx context.Context) error { _, err := l.Take(ctx, "a", nil); return err }
			return wait, func() int { return l.Stats().Keys[0].Queue }, err
		}},
		{"x/time/rate", func(perSecond, _ int) (func(context.Context) error, func() int, error) {
			return rate.NewLimiter(rate.Limit(perSecond), 1).Wait, nil, nil
		}},
		{"failsafe-go smooth", func(perSecond, _ int) (func(context.Context) error, func() int, error) {
			return ratelimiter.NewSmooth[any](uint(perSecond), time.Second).AcquirePermit, nil, nil
		}},
	}
}

// waiters lets very many callers wait at one limiter. They give up all at once, or
// are granted at a rate that no limiter can follow, so that it is the limiter which
// is timed.
func waiters(s Size) (result.Table, error) {
	n := pick(s, 50, 10_000, 100_000)
	t := result.Table{ID: "waiters", Title: fmt.Sprintf("%d callers wait at one limiter", n),
		Note:    "The figures are per caller, with the goroutine in which it waits. Give up: the time from the start until all callers wait and then have given up at once. Granted: the same time, if all are granted at 5000000/s instead. Heap: its growth while they wait, without the goroutines themselves. Stack: the growth of the stacks. The limiters are measured one after the other.",
		Columns: []result.Column{less("give up µs", 2, .1), less("granted µs", 2, .1), less("heap bytes", 0, .05), less("stack bytes", 0, .05)}}
	goroutines(n)
	for i, l := range lines() {
		givenUp, heap, stack, err := crowd(l, 1, n, true)
		if err != nil {
			return t, err
		}
		granted, _, _, err := crowd(l, 5_000_000, n, false)
		if err != nil {
			return t, err
		}
		t.Rows = append(t.Rows, result.Row{Name: l.name, Ours: i == 0, Cells: []result.Cell{result.Num(givenUp), result.Num(granted), result.Num(heap), result.Num(stack)}})
	}
	return t, nil
}

// crowd is one run of n callers. It returns the time and the memory of each.
func crowd(l line, perSecond, n int, giveUp bool) (µs, heap, stack float64, err error) {
	wait, waiting, err := l.make(perSecond, n)
	if err != nil {
		return 0, 0, 0, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := wait(ctx); err != nil { // from now on there is no room at once
		return 0, 0, 0, err
	}
	heapBefore, stackBefore := inUse()
	began := time.Now()
	var came, failed atomic.Int64
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			came.Add(1)
			if wait(ctx) != nil {
				failed.Add(1)
			}
		})
	}
	var measured time.Duration
	if giveUp {
		for came.Load() < int64(n) || busy() || waiting != nil && waiting() < n-n/50-1 { // some are granted meanwhile
			time.Sleep(10 * time.Millisecond) // to ask holds them up
		}
		begins := time.Now()
		h, s := inUse()
		heap, stack = max(0, h-heapBefore)/float64(n), max(0, s-stackBefore)/float64(n)
		measured = time.Since(begins)
		cancel()
	}
	all.Wait()
	took := time.Since(began) - measured
	if got := failed.Load(); !giveUp && got > 0 || giveUp && got < int64(n)*9/10 {
		return 0, 0, 0, fmt.Errorf("%s: %d of %d gave up", l.name, got, n)
	}
	return took.Seconds() * 1e6 / float64(n), heap, stack, nil
}

// goroutines starts and ends so many, so that nobody pays for their memory later.
func goroutines(n int) {
	gate := make(chan struct{})
	var all sync.WaitGroup
	for range n {
		all.Go(func() { <-gate })
	}
	close(gate)
	all.Wait()
}

// busy reports whether any goroutine could run that does not.
func busy() bool {
	m := []metrics.Sample{{Name: "/sched/goroutines/runnable:goroutines"}}
	metrics.Read(m)
	return m[0].Value.Kind() == metrics.KindUint64 && m[0].Value.Uint64() > 0
}

// inUse is the memory that the heap and the stacks take.
func inUse() (heap, stack float64) {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc), float64(m.StackInuse)
}
