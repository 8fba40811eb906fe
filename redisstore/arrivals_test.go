package redisstore

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle"
)

// TestSixteenProcessesAtTheAPI measures where a quota is counted: sixteen
// processes that want as much as they can get, one Redis, and servers that note
// each arrival. Windows are judged by brute force.
//
// What a Log keeps is counted until Per after its answer, so no window holds
// more than Limit, unless processes were not let run for so long that Redis
// heard of late answers too late. What a meter keeps is counted from its grant,
// which makes the bound a sum: what Redis granted in a window and the Spread
// before it, and what it had granted earlier and had not arrived when the window
// began. No machine is too slow for that.
func TestSixteenProcessesAtTheAPI(t *testing.T) {
	const members, spread = 16, 200 * time.Millisecond
	s := startServer(t)
	log, meter, bucket := startAPI(t), startAPI(t), startAPI(t)
	ws := processes(t, members, job{
		Redis: s.addr, Members: members, Callers: 2, Deadline: patience, Spread: spread,
		Budgets: map[string]string{log.host: "40/4s burst 40", meter.host: "100/s", bucket.host: "25/s bucket 10"},
	})
	for range 6000 { // two windows and a half of the longest, in real time
		if at := log.seen(); len(at) > 0 && time.Now().UnixMicro()-at[0] > (10*time.Second).Microseconds() {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	d := end(t, ws)
	if d.Failed > 0 {
		t.Errorf("%d requests failed", d.Failed)
	}
	for _, tc := range []struct {
		name string
		a    *api
		per  time.Duration
		most int
	}{{"log", log, 4 * time.Second, 40}, {"meter", meter, time.Second, 100}, {"bucket", bucket, time.Second, 10 + 25}} {
		arrived, granted := tc.a.seen(), d.Granted[tc.a.host]
		slices.Sort(arrived)
		slices.Sort(granted)
		slack := spread
		if tc.name == "bucket" {
			slack = 0
		}
		worst, excess := 0, 0
		for i, from := range arrived {
			worst = max(worst, before(arrived, from+tc.per.Microseconds())-i)
			// Two milliseconds for a clock that is being set while processes wait.
			n := before(arrived, from+tc.per.Microseconds()-2000) - i
			late := max(0, before(granted, from-slack.Microseconds()+1)-i)
			excess = max(excess, n-late-tc.most)
		}
		switch {
		case len(arrived) > len(granted):
			t.Errorf("%s: %d requests arrived, %d were granted", tc.name, len(arrived), len(granted))
		case excess > 0:
			t.Errorf("%s: %d requests more than %d within %v, and those that came late", tc.name, excess, tc.most, tc.per)
		case tc.name == "log" && worst > tc.most && d.Stall < tc.per/8:
			t.Errorf("%s: %d requests within %v, want at most %d", tc.name, worst, tc.per, tc.most)
		case len(arrived) < tc.most:
			t.Errorf("%s: %d requests arrived, want more than a window's", tc.name, len(arrived))
		}
		t.Logf("%s: %d arrived, at most %d within %v of %d; longest stall %v", tc.name, len(arrived), worst, tc.per, tc.most, d.Stall)
	}
}

// before is how many of the sorted instants are earlier than t.
func before(at []int64, t int64) int {
	n, _ := slices.BinarySearch(at, t)
	return n
}

// TestRedisIsGoneForTenSeconds is kill -9 and ten seconds of sixteen processes
// without Redis: each goes on with a sixteenth of the rate, which begins with
// none, and no request fails.
func TestRedisIsGoneForTenSeconds(t *testing.T) {
	const members, callers, rate, outage = 16, 2, 80, 10 * time.Second
	s, a := startServer(t), startAPI(t)
	ws := processes(t, members, job{Redis: s.addr, Members: members, Callers: callers, Budgets: map[string]string{a.host: "80/s"}})
	a.await(t, rate)
	s.kill()
	down := time.Now().UnixMicro()
	time.Sleep(outage)
	up := time.Now().UnixMicro()
	s.restart(t)
	a.await(t, rate)
	d := end(t, ws)
	if d.Failed > 0 {
		t.Errorf("%d requests failed", d.Failed)
	}
	at := a.seen()
	slices.Sort(at)
	alone := before(at, up) - before(at, down)
	// Those on their way when Redis went, one a process, and the rate.
	if most := members*callers + members + int(rate*float64(up-down)/1e6) + 1; alone > most {
		t.Errorf("%d requests in %v without Redis, want at most %d", alone, outage, most)
	}
	if alone < rate*10/4 {
		t.Errorf("%d requests in %v without Redis, want most of %d", alone, outage, rate*10)
	}
	t.Logf("%d requests in %v without Redis; at most %d within a second of %d in all %v", alone, outage, mostIn(at, time.Second), rate, time.Duration(at[len(at)-1]-at[0])*time.Microsecond)
}

// TestTurnsThroughRedis: four processes with unlike numbers of goroutines get
// like shares of a rate. How like is for virtual time to say; this holds that
// none gets what its goroutines would be worth, 2 or 10 of 262, when calls take
// the time they take.
func TestTurnsThroughRedis(t *testing.T) {
	s := startServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	var counts [4]atomic.Int64
	for i, callers := range []int{200, 50, 10, 2} {
		l := limiter(t, s.store(t), "100/s bucket 10", throttle.FleetConfig{Members: 4, Deadline: patience})
		for range callers {
			wg.Go(func() {
				for {
					if _, err := l.Take(ctx, "k", nil); err != nil {
						return
					}
					counts[i].Add(1)
				}
			})
		}
	}
	sum := func() (n int64) {
		for i := range counts {
			n += counts[i].Load()
		}
		return n
	}
	for range 6000 {
		if sum() >= 400 {
			break
		}
		time.Sleep(10 * time.Millisecond) // Redis' own clock
	}
	cancel()
	wg.Wait()
	var got []int64
	for i := range counts {
		n := counts[i].Load()
		if got = append(got, n); n < sum()/8 {
			t.Errorf("process %d got %d of %d, want half of an equal share at least", i, n, sum())
		}
	}
	t.Log(got)
}
