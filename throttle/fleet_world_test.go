package throttle_test

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/internal/farstore"
)

// A budgeted server has one limit, which it counts in one of three ways and states
// in one of four. Everything follows from its seed.
type budgeted struct {
	counts, states string
	size           int
	per            time.Duration
	after          bool // refusals carry Retry-After, whatever else is stated
	way            func() time.Duration

	mu      sync.Mutex
	start   time.Time
	window  int64
	used    int
	level   float64
	at      time.Time
	sent    []time.Time
	served  int
	refused int

	idle   int           // processes of the fleet that have no work
	far    time.Duration // a trip to the store is half to one and a half of it; zero: a millisecond
	outage time.Duration // when the store goes; zero: never
}

var (
	countsIn = []string{"fixed", "log", "bucket"}
	statesIn = []string{"x-ratelimit", "ietf", "retry-after", "silent"}
)

func newBudgeted(seed uint64, counts, states string) *budgeted {
	r := rand.New(rand.NewPCG(seed, 21))
	b := &budgeted{counts: counts, states: states, after: r.IntN(2) == 0}
	b.size = int(math.Round(20 * math.Pow(15, r.Float64()))) // 20 to 300
	b.per = time.Duration(2+r.IntN(19)) * time.Second
	trip := time.Duration(10+r.IntN(70)) * time.Millisecond
	b.way = func() time.Duration { // one way; under the lock
		return time.Duration(float64(trip) / 2 * (0.75 + 0.5*r.Float64()))
	}
	b.start = time.Now().Add(-time.Duration(r.Float64() * float64(b.per)))
	b.at = b.start
	return b
}

func (b *budgeted) travel() {
	b.mu.Lock()
	d := b.way()
	b.mu.Unlock()
	time.Sleep(d)
}

func (b *budgeted) RoundTrip(r *http.Request) (*http.Response, error) {
	b.travel()
	b.mu.Lock()
	resp := b.answer(time.Now())
	b.mu.Unlock()
	b.travel()
	resp.Request = r
	return resp, nil
}

// answer decides at now; left and reset are as it states them.
func (b *budgeted) answer(now time.Time) *http.Response {
	var ok bool
	var left int
	var reset, wait time.Duration
	switch b.counts {
	case "fixed":
		if n := int64(now.Sub(b.start) / b.per); n != b.window {
			b.window, b.used = n, 0
		}
		if ok = b.used < b.size; ok {
			b.used++
		}
		left, reset = b.size-b.used, b.start.Add(time.Duration(b.window+1)*b.per).Sub(now)
		wait = reset
	case "log":
		b.sent = slices.DeleteFunc(b.sent, func(t time.Time) bool { return now.Sub(t) >= b.per })
		if ok = len(b.sent) < b.size; ok {
			b.sent = append(b.sent, now)
		}
		left, reset = b.size-len(b.sent), b.sent[0].Add(b.per).Sub(now)
		wait = reset
	default:
		rate := float64(b.size) / b.per.Seconds()
		b.level, b.at = max(0, b.level-rate*now.Sub(b.at).Seconds()), now
		if ok = b.level+1 <= float64(b.size)+1e-9; ok {
			b.level++
		}
		left = int(float64(b.size) - b.level + 1e-9)
		reset = time.Duration(b.level / rate * 1e9)
		wait = time.Duration(1 / rate * 1e9)
	}
	seconds := func(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }
	var h []string
	switch b.states {
	case "x-ratelimit":
		h = []string{"X-RateLimit-Limit", strconv.Itoa(b.size), "X-RateLimit-Remaining", strconv.Itoa(left), "X-RateLimit-Reset", seconds(reset)}
	case "ietf":
		h = []string{"RateLimit-Policy", fmt.Sprintf(`"default";q=%d;w=%d`, b.size, int(b.per.Seconds())), "RateLimit", fmt.Sprintf(`"default";r=%d;t=%s`, left, seconds(reset))}
	}
	if ok {
		b.served++
		return answer(200, h...)
	}
	b.refused++
	if b.states == "retry-after" || b.after && b.states != "silent" {
		h = append(h, "Retry-After", seconds(wait))
	}
	return answer(429, h...)
}

// A working is what came of some work.
type working struct {
	took            time.Duration
	served, refused int
	each            []int // served, by process
}

// work lets n processes of workers each do jobs in all, or as many as they can in
// most if jobs is zero.
func (b *budgeted) work(t testing.TB, n, workers, jobs int, most time.Duration) (w working) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if jobs == 0 { // no deadline, which would let those give up at once that have to wait for longer
		defer time.AfterFunc(most, cancel).Stop()
	}
	r := rand.New(rand.NewPCG(1, 1))
	s := farstore.Vary(func() time.Duration {
		return max(time.Millisecond, b.far/2+time.Duration(r.Float64()*float64(b.far)))
	})
	if b.outage > 0 {
		defer time.AfterFunc(max(1, b.outage), func() { s.Fail(context.DeadlineExceeded, true) }).Stop()
	}
	w.each = make([]int, n)
	begin := time.Now()
	var all sync.WaitGroup
	for i := range n {
		c := throttle.Config{MaxWait: time.Hour}
		if n+b.idle > 1 {
			c.Store, c.Fleet = s, throttle.FleetConfig{Members: n + b.idle}
		}
		tr, err := throttle.New(b, c)
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		var mu sync.Mutex
		todo := jobs / n
		for range workers {
			all.Go(func() {
				for {
					mu.Lock()
					more := jobs == 0 || todo > 0
					todo--
					mu.Unlock()
					for good := false; more && !good; {
						r, _ := http.NewRequestWithContext(ctx, "GET", "https://api.example/items", nil)
						resp, err := tr.RoundTrip(r)
						if err != nil {
							if jobs > 0 {
								t.Error(err)
							}
							return
						}
						_, _ = io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
						if good = resp.StatusCode == 200; good {
							mu.Lock()
							w.each[i]++
							mu.Unlock()
						}
					}
					if !more {
						return
					}
				}
			})
		}
	}
	all.Wait()
	w.took, w.served, w.refused = time.Since(begin), b.served, b.refused
	return w
}

// unevenness is by what part the share of a process differs most from an equal one.
func (w working) unevenness() (most float64) {
	mean := float64(w.served) / float64(len(w.each))
	for _, n := range w.each {
		most = max(most, math.Abs(float64(n)-mean)/mean)
	}
	return most
}

// docs/fleets.md says what these tests print of other servers, and for longer.
var (
	fleetSeed      = flag.Uint64("fleets.seed", 11, "the first server of the tests that docs/fleets.md names")
	fleetServers   = flag.Uint64("fleets.servers", 0, "how many servers of each kind they have; zero: each test's own number")
	fleetWindows   = flag.Int("fleets.windows", 6, "how many windows the work of TestFleetWithoutBudgets and TestFleetOfUnstatedLimits takes")
	fleetProcesses = flag.Int("fleets.processes", 16, "how many processes their fleets have")
)

// fleetSeeds are those of so many servers, or of as many as the flag says.
func fleetSeeds(servers uint64) (seeds []uint64) {
	for i := range cmp.Or(*fleetServers, servers) {
		seeds = append(seeds, *fleetSeed+i)
	}
	return seeds
}

// fleets is some processes, usually sixteen, that know no budget beside one that does the
// same work, for some seeds.
type fleets struct {
	ratio, uneven float64 // means: of makespans, or of what was served; see unevenness
	middle, share float64 // medians of these
	one, many     float64 // refusals, in the mean
}

func measure(t *testing.T, counts, states string, endless bool, seeds ...uint64) (f fleets) {
	return measureFar(t, 0, counts, states, endless, seeds...)
}

// measureFar is measure with a store that is far away.
func measureFar(t *testing.T, far time.Duration, counts, states string, endless bool, seeds ...uint64) (f fleets) {
	return measureSome(t, *fleetProcesses, far, counts, states, endless, seeds...)
}

// measureSome is measureFar with so many processes.
func measureSome(t *testing.T, processes int, far time.Duration, counts, states string, endless bool, seeds ...uint64) (f fleets) {
	return measureFor(t, *fleetWindows, processes, far, counts, states, endless, seeds...)
}

// measureFor is measureSome with work for so many windows.
func measureFor(t *testing.T, windows, processes int, far time.Duration, counts, states string, endless bool, seeds ...uint64) (f fleets) {
	var ratios, unevens []float64
	for _, seed := range seeds {
		var b *budgeted
		run := func(n int) (w working) {
			synctest.Test(t, func(t *testing.T) {
				b = newBudgeted(seed, counts, states)
				b.far = far
				jobs := 0
				if !endless { // to end where a window does would measure nothing but its edge
					jobs = (b.size*windows - b.size/2) / processes * processes
				}
				w = b.work(t, n, max(4, 64/n), jobs, time.Duration(windows)*b.per)
			})
			return w
		}
		one, many := run(1), run(processes)
		ratio := many.took.Seconds() / one.took.Seconds()
		if endless {
			ratio = float64(one.served) / float64(max(1, many.served))
		}
		t.Logf("%-6s %-11s endless %-5v %d: %3d per %2.0f s, ratio %.2f, refused %3d -> %3d, uneven %.2f", counts, states, endless, seed,
			b.size, b.per.Seconds(), ratio, one.refused, many.refused, many.unevenness())
		ratios, unevens = append(ratios, ratio), append(unevens, many.unevenness())
		n := float64(len(seeds))
		f.ratio, f.uneven = f.ratio+ratio/n, f.uneven+many.unevenness()/n
		f.one, f.many = f.one+float64(one.refused)/n, f.many+float64(many.refused)/n
	}
	f.middle, f.share = median(ratios), median(unevens)
	t.Logf("%-6s %-11s endless %-5v: ratio %.2f (median %.2f), refused %.0f -> %.0f, uneven %.2f (median %.2f)",
		counts, states, endless, f.ratio, f.middle, f.one, f.many, f.uneven, f.share)
	return f
}

// median sorts all, and returns the middle one; of an even number the lower one of two.
func median(all []float64) float64 {
	slices.Sort(all)
	return all[(len(all)-1)/2]
}
