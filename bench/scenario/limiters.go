package scenario

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"

	"github.com/weirhttp/weir/bench/result"
	"github.com/weirhttp/weir/throttle"
)

func limiters() Scenario {
	return Scenario{"limiters", "Limiters without HTTP: the cost of one grant, how exactly a rate is kept, memory per key.", runLimiters}
}

// A limit makes one limiter: a rate per second, a burst, and how many keys.
// try asks without waiting, wait waits.
type limit struct {
	name  string
	keyed string // how it keeps many keys; "": it cannot
	make  func(perSecond, burst, keys int) (try func(key string) bool, wait func(key string), err error)
}

func limits() []limit {
	return []limit{
		{"weir throttle.Limiter", "its own table", weirLimit},
		{"x/time/rate", "map and RWMutex around it", rateLimit},
		{"failsafe-go smooth", "map and RWMutex around it", failsafeLimit},
		{"uber-go/ratelimit", "", uberLimit},
		{"throttled", "its memstore", throttledLimit},
		{"sethvargo/go-limiter", "its memorystore", sethLimit},
	}
}

func weirLimit(perSecond, burst, keys int) (func(string) bool, func(string), error) {
	l, err := throttle.NewLimiter(throttle.LimiterConfig{MaxKeys: max(keys, 1),
		Default: throttle.Budget{Rates: []throttle.Rate{{Limit: perSecond, Per: time.Second, Bucket: burst}}}})
	if err != nil {
		return nil, nil, err
	}
	return func(key string) bool { return l.Try(key, nil).Allowed },
		func(key string) { l.Take(context.Background(), key, nil) }, nil
}

// keyed is what programs write around limiters that have no keys.
func keyed[L any](fresh func() L) func(string) L {
	var mu sync.RWMutex
	m := make(map[string]L)
	return func(key string) L {
		mu.RLock()
		l, ok := m[key]
		mu.RUnlock()
		if ok {
			return l
		}
		mu.Lock()
		defer mu.Unlock()
		if l, ok = m[key]; !ok {
			l = fresh()
			m[key] = l
		}
		return l
	}
}

// forKeys is keyed, or one limiter if there is one key.
func forKeys[L any](keys int, fresh func() L) func(string) L {
	if keys > 1 {
		return keyed(fresh)
	}
	l := fresh()
	return func(string) L { return l }
}

func rateLimit(perSecond, burst, keys int) (func(string) bool, func(string), error) {
	l := forKeys(keys, func() *rate.Limiter { return rate.NewLimiter(rate.Limit(perSecond), burst) })
	return func(key string) bool { return l(key).Allow() }, func(key string) { l(key).Wait(context.Background()) }, nil
}

func failsafeLimit(perSecond, _, keys int) (func(string) bool, func(string), error) {
	l := forKeys(keys, func() ratelimiter.RateLimiter[any] { return ratelimiter.NewSmooth[any](uint(perSecond), time.Second) })
	return func(key string) bool { return l(key).TryAcquirePermit() }, func(key string) { l(key).AcquirePermit(context.Background()) }, nil
}

// uberLimit has no call that does not wait: Take is timed with nothing to
// wait for.
func uberLimit(perSecond, burst, _ int) (func(string) bool, func(string), error) {
	l := uber.New(perSecond, uber.WithSlack(burst))
	return func(string) bool { l.Take(); return true }, func(string) { l.Take() }, nil
}

func throttledLimit(perSecond, burst, keys int) (func(string) bool, func(string), error) {
	store, err := memstore.NewCtx(keys)
	if err != nil {
		return nil, nil, err
	}
	l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(perSecond), MaxBurst: burst - 1})
	if err != nil {
		return nil, nil, err
	}
	ctx := context.Background()
	wait := func(key string) {
		for {
			limited, r, err := l.RateLimitCtx(ctx, key, 1)
			if err == nil && !limited {
				return
			}
			time.Sleep(max(r.RetryAfter, 0))
		}
	}
	return func(key string) bool { limited, _, err := l.RateLimitCtx(ctx, key, 1); return err == nil && !limited }, wait, nil
}

// sethLimit counts whole intervals: one of 1/perSecond with one token is the
// only way to an even rate.
func sethLimit(perSecond, burst, keys int) (func(string) bool, func(string), error) {
	c := &memorystore.Config{Tokens: 1, Interval: time.Second / time.Duration(perSecond), SweepInterval: time.Hour, InitialAlloc: keys}
	if burst > 1 {
		c.Tokens, c.Interval = 30_000, time.Second // a full bucket only while tokens squared is below the interval
	}
	var store limiter.Store
	store, err := memorystore.New(c)
	if err != nil {
		return nil, nil, err
	}
	ctx := context.Background()
	wait := func(key string) {
		for {
			_, _, reset, ok, err := store.Take(ctx, key)
			if err != nil || ok {
				return
			}
			time.Sleep(time.Until(time.Unix(0, int64(reset))))
		}
	}
	return func(key string) bool { _, _, _, ok, _ := store.Take(ctx, key); return ok }, wait, nil
}

func runLimiters(_ context.Context, s Size) ([]result.Table, []result.Plot, error) {
	grants, err := grantCosts(s)
	if err != nil {
		return nil, nil, err
	}
	million, err := manyKeys(pick(s, 50, 100_000, 1_000_000))
	if err != nil {
		return nil, nil, err
	}
	crowd, err := waiters(s)
	if err != nil {
		return nil, nil, err
	}
	exact, err := accuracy(s)
	return []result.Table{grants, million, crowd, exact}, nil, err
}

// manyKeys measures one limiter after the other, as all of them at once need
// too much memory.
func manyKeys(keys int) (result.Table, error) {
	t := result.Table{ID: "keys", Title: fmt.Sprintf("%d keys", keys),
		Note:    "First grant: the time of the first grant of each key, with one goroutine; x2: with two. ns: the time of a grant, over all keys in turns, with one goroutine; x2: with two. Bytes per key: the growth of the heap without the key's own text. The limiters are measured one after the other.",
		Columns: []result.Column{less("first grant ns", 0, .1), less("first grant ns x2", 0, .1), less("ns", 0, .1), less("ns x2", 0, .1), less("bytes per key", 0, .02)}}
	names := keyNames(keys)
	for i, l := range limits() {
		if l.keyed == "" {
			continue
		}
		before := heap()
		try, _, err := l.make(100_000_000, 100_000_000, keys)
		if err != nil {
			return t, err
		}
		f := func(k int) { try(names[k%keys]) }
		first := timed(keys, 1, f)
		memory := (heap() - before) / float64(keys)
		one, two := timed(keys, 1, f), timed(keys/2, 2, f)
		if try, _, err = l.make(100_000_000, 100_000_000, keys); err != nil { // f uses it from now on, and the other is garbage
			return t, err
		}
		runtime.GC()
		both := timed(keys/2, 2, f)
		t.Rows = append(t.Rows, result.Row{Name: l.name, Ours: i == 0, Cells: []result.Cell{result.Num(first.ns), result.Num(both.ns), result.Num(one.ns), result.Num(two.ns), result.Num(memory)}})
	}
	return t, nil
}

func keyNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("key-%d", i)
	}
	return names
}

func grantCosts(s Size) (result.Table, error) {
	keys, n, rounds := pick(s, 50, 20000, 100000), pick(s, 50, 5000, 20000), pick(s, 1, 9, 20)
	t := result.Table{ID: "limiters", Title: "One grant that need not wait",
		Note:    fmt.Sprintf("ns: the time of a call that does not wait; wait ns: that of the call that would wait if it had to. By key: the time of a grant, over %d keys in turns. x2: with two goroutines, the time per grant. Bytes per key: the growth of the heap without the key's own text. throttled and go-limiter forget keys that were not used for some time; the maps keep all keys.", keys),
		Columns: []result.Column{less("ns", 0, .1), less("ns x2", 0, .1), less("wait ns", 0, .1), less("wait ns x2", 0, .1), less("allocs", 1, 0), less("by key ns", 0, .1), less("by key ns x2", 0, .1), less("allocs", 1, 0), less("bytes per key", 0, .02)}}
	names := keyNames(keys)
	list := limits()
	var one, patient, many []func(int)
	var which []int
	memory := make([]float64, len(list))
	for i, l := range list {
		try, wait, err := l.make(100_000_000, 100_000_000, 1)
		if err != nil {
			return t, err
		}
		one, patient = append(one, func(int) { try("a") }), append(patient, func(int) { wait("a") })
		if l.keyed == "" {
			continue
		}
		before := heap()
		if try, _, err = l.make(100_000_000, 100_000_000, keys); err != nil {
			return t, err
		}
		f := func(k int) { try(names[k%keys]) }
		timed(keys, 1, f)
		memory[i] = (heap() - before) / float64(keys)
		many, which = append(many, f), append(which, i)
	}
	a, b := interleave(rounds, n, 1, one), interleave(rounds, n, 2, one)
	p, q := interleave(rounds, n, 1, patient), interleave(rounds, n, 2, patient)
	c, d := interleave(max(rounds/4, 1), keys, 1, many), interleave(max(rounds/4, 1), keys, 2, many)
	for i, l := range list {
		t.Rows = append(t.Rows, result.Row{Name: l.name, Ours: i == 0, Cells: []result.Cell{result.Num(a[i].ns), result.Num(b[i].ns), result.Num(p[i].ns), result.Num(q[i].ns), result.Num(a[i].allocs),
			result.None(), result.None(), result.None(), result.None()}})
	}
	for j, i := range which {
		copy(t.Rows[i].Cells[5:], []result.Cell{result.Num(c[j].ns), result.Num(d[j].ns), result.Num(c[j].allocs), result.Num(memory[i])})
	}
	return t, nil
}

// accuracy lets eight callers wait for a rate, one limiter at a time.
func accuracy(s Size) (result.Table, error) {
	const perSecond = 200
	n := pick(s, 20, 200, 500)
	t := result.Table{ID: "accuracy", Title: fmt.Sprintf("Eight callers wait for %d grants at %d/s, burst 1", n, perSecond),
		Note:    "Error: by how much the rate of the whole run differs from 200/s. Most in 1 s: the most grants in any second, of which 201 are allowed. Gap: the time between two grants, which should be 5 ms. weir is configured as a bucket of 1 here, as the others are.",
		Columns: []result.Column{plain("rate/s", 2), {Name: "error %", Digits: 2}, less("most in 1 s", 0, .01), plain("gap p1 ms", 2), plain("gap p99 ms", 2)}}
	for i, l := range limits() {
		_, wait, err := l.make(perSecond, 1, 1)
		if err != nil {
			return t, err
		}
		at := grantsOf(wait, n)
		took := at[len(at)-1] - at[0]
		got := float64(n-1) / took.Seconds()
		gaps := make([]time.Duration, n-1)
		for k := range gaps {
			gaps[k] = at[k+1] - at[k]
		}
		t.Rows = append(t.Rows, result.Row{Name: l.name, Ours: i == 0, Cells: []result.Cell{result.Num(got), result.Num(100 * (got/perSecond - 1)), result.Num(most(at, time.Second)),
			result.Num(quantile(gaps, .01).Seconds() * 1e3), result.Num(quantile(gaps, .99).Seconds() * 1e3)}})
	}
	return t, nil
}

// grantsOf returns when n grants to eight callers were, in order.
func grantsOf(wait func(string), n int) []time.Duration {
	var mu sync.Mutex
	var at []time.Duration
	begin, left := time.Now(), n
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				mu.Lock()
				if left == 0 {
					mu.Unlock()
					return
				}
				left--
				mu.Unlock()
				wait("a")
				mu.Lock()
				at = append(at, time.Since(begin))
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	quantile(at, 0) // sorts
	return at
}

// most is the largest number of sorted instants in any window of length w.
func most(at []time.Duration, w time.Duration) int {
	worst, first := 0, 0
	for i := range at {
		for at[i]-at[first] >= w {
			first++
		}
		worst = max(worst, i-first+1)
	}
	return worst
}
