package throttle_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/internal/farstore"
)

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
// often and once more each. With endless work none is further than a fifth from an equal share. How
// many units it is off does not grow with time: of six windows it is .13 in the mean, of twelve .07, and
// of 24 .04. So endless work takes twice as long as finite work here. In one of a thousand draws of
// six servers a bucket takes 1.18 times as long, so with other seeds the test may fail.
func TestFleetWithoutBudgets(t *testing.T) {
	all, tests := 0.0, 0.0
	for _, counts := range countsIn {
		for _, states := range statesIn[:2] {
			for _, endless := range []bool{false, true} {
				windows := *fleetWindows
				if endless {
					windows *= 2
				}
				f := measureFor(t, windows, *fleetProcesses, 0, counts, states, endless, fleetSeeds(uint64(testnet.Drawn(6, 3)))...)
				all, tests = all+f.ratio, tests+1
				testnet.Judge(t, f.ratio <= 1.15 && f.many <= 2*f.one+16, "%s, %s, endless %v: %+v", counts, states, endless, f)
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
// the limit: in each row, of the middle one of its servers. A single server can take 1.5 times as
// long if a window or a log says nothing, as chance decides there how soon the limit is found, also
// for one process: in eight runs of one server that took 4.3 to 8.2 windows. Of 18 runs of this
// test the middle one took at most 1.09 times as long, and the farthest share was off by .15.
func TestFleetOfUnstatedLimits(t *testing.T) {
	for _, counts := range countsIn {
		for _, states := range statesIn[2:] {
			for _, endless := range []bool{false, true} {
				f := measure(t, counts, states, endless, fleetSeeds(unstatedServers(counts, states, endless))...)
				testnet.Judge(t, f.middle <= 1.15 && f.many <= 2*f.one+16, "%s, %s, endless %v: %+v", counts, states, endless, f)
				testnet.Judge(t, f.share <= .2, "%s, %s: one process was %.2f off an equal share", counts, states, f.share)
			}
		}
	}
}

// unstatedServers is how many servers a row needs so that chance hardly decides about the middle one.
func unstatedServers(counts, states string, endless bool) uint64 {
	most := 3 // times of one server are much the same in each run
	switch quick := states == "retry-after" || counts == "bucket"; {
	case endless && quick:
		most = 5 // shares differ more than times
	case endless:
		most = 13
	case !quick:
		most = 9
	}
	return uint64(testnet.Drawn(most, 1))
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
