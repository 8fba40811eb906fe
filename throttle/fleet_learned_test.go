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

	"github.com/weirhttp/weir/internal/testnet"
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
	one, many     float64 // refusals, likewise
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
	windows := *fleetWindows
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
		n := float64(len(seeds))
		f.ratio, f.uneven = f.ratio+ratio/n, f.uneven+many.unevenness()/n
		f.one, f.many = f.one+float64(one.refused)/n, f.many+float64(many.refused)/n
	}
	t.Logf("%-6s %-11s endless %-5v: ratio %.2f, refused %.0f -> %.0f, uneven %.2f", counts, states, endless, f.ratio, f.one, f.many, f.uneven)
	return f
}

// A fleet that always has more to do is refused as long as it does not know a limit, and
// where a window begins: hardly more than once a window, in the mean of all servers.
func TestAFleetIsSeldomRefusedWhereWindowsBegin(t *testing.T) {
	const processes, windows = 16, 24
	servers := testnet.Drawn(6, 2)
	for _, states := range []string{"x-ratelimit", "ietf"} {
		refused := 0
		for seed := range uint64(servers) {
			synctest.Test(t, func(t *testing.T) {
				b := newBudgeted(11+seed, "fixed", states)
				w := b.work(t, processes, 64/processes, 0, windows*b.per)
				t.Logf("%s, %d per %v: %d served, %d refused", states, b.size, b.per, w.served, w.refused)
				if least := (windows - 2) * b.size; w.served < least {
					t.Errorf("%s, %d per %v: %d were served, want %d", states, b.size, b.per, w.served, least)
				}
				refused += w.refused
			})
		}
		most := servers * windows * 7 / 6
		testnet.Judge(t, refused <= most, "%s: %d were refused in all, want at most %d", states, refused, most)
	}
}

// Sixteen processes without any budget take at most 1.15 times as long as one does for
// the same work where the server states its limit, and are refused at most twice as
// often and once more each. With endless work none is further than a fifth from an equal
// share. In one of a thousand draws of six servers a bucket takes 1.18 times as long, and a
// share is .26 off, so with other seeds the test may fail.
func TestFleetWithoutBudgets(t *testing.T) {
	all, tests := 0.0, 0.0
	for _, counts := range countsIn {
		most := 1.15
		if counts == "bucket" {
			most = 1.2
		}
		for _, states := range statesIn[:2] {
			for _, endless := range []bool{false, true} {
				f := measure(t, counts, states, endless, fleetSeeds(uint64(testnet.Drawn(6, 3)))...)
				all, tests = all+f.ratio, tests+1
				testnet.Judge(t, f.ratio <= most && f.many <= 2*f.one+16, "%s, %s, endless %v: %+v", counts, states, endless, f)
				testnet.Judge(t, f.uneven <= 0.2, "%s, %s: one process was %.2f off an equal share", counts, states, f.uneven)
			}
		}
	}
	testnet.Judge(t, all <= 1.08*tests, "takes %.2f times as long as one process, in the mean of all tests", all/tests)
}

// So it is with a store that is far away. One whose answers come now before
// FleetConfig.Deadline and now after it makes some go alone while others do not know:
// refusals are four each then, at most, and the time up to 1.3 times as long.
func TestFleetOfAFarStore(t *testing.T) {
	for _, test := range []struct {
		far         time.Duration
		ratio, each float64
	}{{20 * time.Millisecond, 1.2, 1.5}, {30 * time.Millisecond, 1.2, 1.5}, {50 * time.Millisecond, 1.3, 4}} {
		for _, counts := range countsIn {
			f := measureFar(t, test.far, counts, "ietf", false, 11, 12, 13, 14, 15, 16)
			if f.ratio > test.ratio || f.many > 2*f.one+16*test.each {
				t.Errorf("%s, store %v away: %+v", counts, test.far, f)
			}
		}
	}
}

// So it is where the server states nothing but a Retry-After, or nothing, and the processes find
// the limit; but the time, and how far a process is from an equal share, only in the mean of all
// tests: of five servers the time can be 1.3 times as long. With other seeds it was up to 1.4 times
// where a log says nothing, and 22 more than twice as many were refused where it sends Retry-After.
func TestFleetOfUnstatedLimits(t *testing.T) {
	var all fleets
	tests, servers := 0.0, testnet.Drawn(5, 1)
	for _, counts := range countsIn {
		for _, states := range statesIn[2:] {
			for _, endless := range []bool{false, true} {
				f := measure(t, counts, states, endless, fleetSeeds(uint64(servers))...)
				testnet.Judge(t, f.ratio <= 1.3 && f.many <= 2*f.one+16, "%s, %s, endless %v: %+v", counts, states, endless, f)
				all.ratio, all.one, all.many = all.ratio+f.ratio, all.one+f.one, all.many+f.many
				all.uneven += f.uneven // finite work is divided evenly from the start
				tests++
			}
		}
	}
	testnet.Judge(t, all.ratio <= 1.15*tests && all.many <= 2*all.one+16*tests, "of %v: %+v", tests, all)
	uneven := all.uneven / (tests / 2)
	testnet.Judge(t, uneven <= .25, "one process was %.2f off an equal share, in the mean of all tests", uneven)
}

// Of a slow bucket the processes believe in different limits for long. One that believes in a fast
// bucket, and so sees room where the others see none, leaves them their part nevertheless.
func TestAFleetSharesASlowBucket(t *testing.T) {
	const processes, servers = 16, 3
	uneven, windows := 0.0, time.Duration(testnet.Drawn(24, 3))
	for _, seed := range [servers]uint64{534, 561, 605} { // 24 or 26 units per 14 to 19 s
		synctest.Test(t, func(t *testing.T) {
			b := newBudgeted(seed, "bucket", "retry-after")
			w := b.work(t, processes, 4, 0, windows*b.per)
			t.Logf("%d per %v: %d served, %d refused, uneven %.2f: %v", b.size, b.per, w.served, w.refused, w.unevenness(), w.each)
			uneven += w.unevenness() / servers
		})
	}
	testnet.Judge(t, uneven <= .3, "one process was %.2f off an equal share, in the mean of %d servers, want at most .3", uneven, servers)
}

// A process that has work while the others of its fleet have none does not wait for them: it
// is served nearly as much as one without a fleet.
func TestOneOfAFleetHasWork(t *testing.T) {
	const windows, least = 6, .85
	for _, states := range statesIn {
		with, without := 0, 0
		for _, counts := range countsIn {
			for _, seed := range fleetSeeds(uint64(testnet.Drawn(4, 1))) {
				for _, idle := range []int{0, 15} {
					synctest.Test(t, func(t *testing.T) {
						b := newBudgeted(seed, counts, states)
						b.idle = idle
						w := b.work(t, 1, 64, 0, windows*b.per)
						if idle > 0 {
							with += w.served
						} else {
							without += w.served
						}
					})
				}
			}
		}
		ratio := float64(with) / float64(without)
		t.Logf("%s: %.2f", states, ratio)
		testnet.Judge(t, ratio >= least, "%s: with 15 idle processes one is served %.2f of what it is without, want %v", states, ratio, least)
	}
}

// A few processes are refused at most twice as often as one by a bucket that does not state
// its size, and once more each: two that see room for one request do not both send one.
func TestAFewProcessesFindABucket(t *testing.T) {
	const processes = 4
	for _, states := range statesIn[2:] {
		for _, endless := range []bool{false, true} {
			if f := measureSome(t, processes, 0, "bucket", states, endless, 135); f.many > 2*f.one+processes {
				t.Errorf("%s, endless %v: %+v", states, endless, f)
			}
		}
	}
}

// Nor are they refused more than once each where the limit is stated, though they begin in a
// burst, in which the server sees requests in another order than they were counted in.
func TestAFewProcessesBeginInABurst(t *testing.T) {
	const processes, tests = 4, 4
	var all fleets // one burst may cost a process two refusals, so all are judged together
	for _, counts := range countsIn[:2] {
		for _, states := range statesIn[:2] {
			f := measureSome(t, processes, 0, counts, states, true, 136, 142)
			if f.ratio > 1.15 {
				t.Errorf("%s, %s: %.2f times as long as one process, want at most 1.15", counts, states, f.ratio)
			}
			all.one, all.many = all.one+f.one, all.many+f.many
		}
	}
	if most := 2*all.one + processes*tests; all.many > most {
		t.Errorf("%v were refused in %d tests, want at most %v", all.many, tests, most)
	}
}

// refusedInAll lets so many processes call servers that state their limits for some windows,
// and returns how often they were refused. change makes of each what the test wants.
func refusedInAll(t *testing.T, counts string, processes, windows, servers int, change func(b *budgeted, i int)) (refused int) {
	served, least := 0, 0
	for _, states := range statesIn[:2] {
		for i := range servers {
			synctest.Test(t, func(t *testing.T) {
				b := newBudgeted(11+uint64(i), counts, states)
				change(b, i)
				w := b.work(t, processes, 4, 0, time.Duration(windows)*b.per)
				t.Logf("%s, %d per %v: %d served, %d refused", states, b.size, b.per, w.served, w.refused)
				if least := (windows - 3) * b.size; w.served < least {
					t.Errorf("%s, %d per %v: %d were served, want %d", states, b.size, b.per, w.served, least)
				}
				refused, served, least = refused+w.refused, served+w.served, least+(windows-2)*b.size
			})
		}
	}
	if served < least { // of all, as single ones differ by a tenth
		t.Errorf("%s: %d were served in all, want %d", counts, served, least)
	}
	return refused
}

// Many processes that share few units, so that not each gets one in a window, are hardly
// refused where a window begins: those that got none ask no more often than the others.
func TestManyProcessesShareASmallWindow(t *testing.T) {
	const processes, windows, servers = 40, 12, 4
	refused := refusedInAll(t, "fixed", processes, windows, servers, func(b *budgeted, i int) { b.size = 20 + 2*i })
	if most := 2 * servers * (2*processes + 2*windows); refused > most { // two of each process at the start
		t.Errorf("%d were refused in all, want at most %d", refused, most)
	}
}

// Many processes that begin together at a server with the smallest limits are refused once
// each, and some of them once more: those that were refused first ask no more, when the window
// ends, than it holds, and learn from the others how long the next one lasts.
func TestManyProcessesBeginAtASmallWindow(t *testing.T) {
	const processes, windows = 40, 12
	servers, refused := testnet.Drawn(4, 1), 0
	for _, counts := range countsIn {
		refused += refusedInAll(t, counts, processes, windows, servers, func(b *budgeted, i int) { b.size = 5*i + 5 })
	}
	runs := len(countsIn) * 2 * servers
	t.Logf("%.0f were refused, in the mean of %d runs", float64(refused)/float64(runs), runs)
	most := runs * processes * 5 / 3
	testnet.Judge(t, refused <= most, "%d were refused in all, want at most %d", refused, most)
}

// Where units leave the window one by one, a fleet is hardly refused but at the start: the
// first reset that is nearer than a window shows how the server counts, and then no process
// needs to ask.
func TestAFleetIsSeldomRefusedByALog(t *testing.T) {
	const processes, windows, servers = 16, 6, 6
	refused := refusedInAll(t, "log", processes, windows, servers, func(*budgeted, int) {})
	if most := 2 * servers * processes * 2 / 3; refused > most {
		t.Errorf("%d were refused in all, want at most %d", refused, most)
	}
}

// A process that was never refused knows as much of a limit as those that were.
func TestFleetKnowsWhatOneProcessFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudgeted(11, "fixed", "silent")
		b.size, b.per = 20, 10*time.Second
		ts := sharedTransports(t, farstore.New(time.Millisecond), throttle.Config{MaxWait: time.Hour}, 2, b)
		for _, tr := range ts {
			if err := visit(t, tr, "https://api.example/items"); err != nil {
				t.Fatal(err)
			}
		}
		for range 30 {
			if err := visit(t, ts[0], "https://api.example/items"); err != nil {
				t.Fatal(err)
			}
		}
		before := b.refused
		if err := visit(t, ts[1], "https://api.example/items"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		knows := slices.ContainsFunc(ts[1].Stats().Hosts[0].Learned, func(x throttle.LearnedLimit) bool { return x.Kind == throttle.LearnedRate })
		if before == 0 || b.refused > before || !knows {
			t.Errorf("%d were refused, then %d of the other process: %+v", before, b.refused-before, ts[1].Stats().Hosts[0].Learned)
		}
	})
}

// Where budgets are configured nothing is counted beside them, and nobody asks while
// requests wait.
func TestFleetWithBudgetsAsksNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		tr := sharedTransports(t, s, throttle.Config{Default: throttle.MustParseBudget("1/s"), MaxWait: time.Hour}, 1, newBase(nil))[0]
		for range 10 {
			if err := visit(t, tr, "https://api.example/items"); err != nil {
				t.Fatal(err)
			}
		}
		for _, b := range s.Asked() {
			if n := len(b.Draws[0].Limits); n != 1 {
				t.Errorf("a booking of %d limits", n)
			}
		}
		if n := s.Books(); n > 10 {
			t.Errorf("asked %d times for 10 requests", n)
		}
	})
}
