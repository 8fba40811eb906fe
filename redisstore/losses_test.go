//go:build unix

package redisstore

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// What it costs when processes of a fleet stop, die or lose their way to Redis:
// the bounds of docs/fleets.md, with real processes. How much of a bound shows
// depends on the machine; none of them does.

// TestAProcessStandsStill: what a process had on its way when it was stopped
// (SIGSTOP, a suspended machine) arrives when it goes on, beside what the others
// may send then: at most one request of each of its callers.
func TestAProcessStandsStill(t *testing.T) {
	const members, callers, limit, per = 4, 2, 40, 2 * time.Second
	s, a := startServer(t), startAPI(t)
	ws := processes(t, members, job{Redis: s.addr, Members: members, Callers: callers, Deadline: patience,
		Budgets: map[string]string{a.host: "40/2s burst 40"}})
	a.await(t, limit)
	stopped := ws[0].cmd.Process
	if err := stopped.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	a.await(t, limit) // the others have all of it
	time.Sleep(2 * per)
	if err := stopped.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	a.await(t, limit)
	d := end(t, ws)
	others := time.Duration(0)
	for _, w := range ws[1:] {
		others = max(others, w.Stall)
	}
	a.judge(t, d, per, limit, callers, others)
}

// TestProcessesAreKilled: what a process had booked ahead when it was killed, and
// what it had on its way, counts until the window is over. Nothing is sent beyond
// the limit, and the others go on.
func TestProcessesAreKilled(t *testing.T) {
	const members, killed, callers, limit, per = 6, 3, 2, 60, 2 * time.Second
	s, a := startServer(t), startAPI(t)
	ws := processes(t, members, job{Redis: s.addr, Members: members, Callers: callers, Deadline: patience, Lease: 200 * time.Millisecond,
		Budgets: map[string]string{a.host: "60/2s burst 60"}})
	a.await(t, 2*limit)
	for _, w := range ws[:killed] {
		if err := w.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = w.cmd.Wait() // it says that it was killed
	}
	a.await(t, 2*limit)
	d := end(t, ws[killed:])
	d.Granted = nil // the dead say nothing
	a.judge(t, d, per, limit, 0, d.Stall)
}

// TestPlacesOfKilledProcesses: no more requests than may be are at the server at a time,
// while processes are killed too, and the places of these come back.
func TestPlacesOfKilledProcesses(t *testing.T) {
	const members, killed, places, took = 4, 2, 6, 50 * time.Millisecond
	s := startServer(t)
	var mu sync.Mutex
	now, most, all := 0, 0, 0
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		now, all = now+1, all+1
		most = max(most, now)
		mu.Unlock()
		select {
		case <-time.After(took): // real processes, real time
		case <-r.Context().Done():
		}
		mu.Lock()
		now--
		mu.Unlock()
	}))
	defer web.Close()
	served := func(d time.Duration) float64 {
		mu.Lock()
		before := all
		mu.Unlock()
		time.Sleep(d)
		mu.Lock()
		defer mu.Unlock()
		return float64(all-before) / d.Seconds()
	}
	host := web.Listener.Addr().String()
	ws := processes(t, members, job{Redis: s.addr, Members: members, Callers: places, Deadline: time.Second, Budgets: map[string]string{host: "6 in flight"}})
	served(time.Second)
	before := served(3 * time.Second)
	for _, w := range ws[:killed] {
		if err := w.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = w.cmd.Wait() // it says that it was killed
	}
	less := served(5 * time.Second)
	served(6 * time.Second)
	after := served(3 * time.Second)
	if d := end(t, ws[killed:]); d.Failed > 0 {
		t.Errorf("%d requests failed", d.Failed)
	}
	t.Logf("%d at a time of %d; %.0f requests a second, %.0f when two of four were killed, %.0f later", most, places, before, less, after)
	if most > places {
		t.Errorf("%d at a time, want %d", most, places)
	}
	if after < .7*before {
		t.Errorf("%.0f requests a second, %.0f after two of four were killed: their places did not come back", before, after)
	}
}

// TestHalfIsCutOff: processes that lose their way to Redis go on with their shares
// of the rate, beside what Redis gives to the others, for as long as that lasts.
func TestHalfIsCutOff(t *testing.T) {
	const members, callers, rate = 8, 2, 80
	s, a := startServer(t), startAPI(t)
	proxy, _ := proxied(t, s)
	j := job{Redis: s.addr, Members: members, Callers: callers, Deadline: time.Second, Budgets: map[string]string{a.host: "80/s"}}
	ws := processes(t, members/2, j)
	j.Redis = proxy.Listen
	ws = append(ws, processes(t, members/2, j)...)
	a.await(t, rate)
	toxic(t, proxy, `{"name":"x","type":"timeout","attributes":{"timeout":0}}`)
	cut := time.Now().UnixMicro()
	a.await(t, 4*rate)
	mended := time.Now().UnixMicro()
	if err := proxy.Toxics.RemoveToxic(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	a.await(t, rate)
	if d := end(t, ws); d.Failed > 0 {
		t.Errorf("%d requests failed", d.Failed)
	}
	at := a.seen()
	slices.Sort(at)
	n, took := before(at, mended)-before(at, cut), float64(mended-cut)/1e6
	// The rate, the shares of a half, one request of each process where it begins,
	// and those on their way.
	if most := rate*(took+1) + rate/2*took + members + members*callers; float64(n) > most {
		t.Errorf("%d requests in %.1f s, want at most %.0f", n, took, most)
	}
	t.Logf("%d requests in %.1f s, %.2f of the rate", n, took, float64(n)/rate/took)
}

// TestSlowRedisServesWhatADeadOneDoes: when each answer of Redis comes later than Deadline, processes
// are served as when it is gone. When that begins and when it ends, a burst can come in addition, and
// one request of each process.
func TestSlowRedisServesWhatADeadOneDoes(t *testing.T) {
	const members, callers, rate, burst = 8, 2, 80, 8
	s, a := startServer(t), startAPI(t)
	proxy, _ := proxied(t, s)
	ws := processes(t, members, job{Redis: proxy.Listen, Members: members, Callers: callers, Budgets: map[string]string{a.host: "80/s"}})
	a.await(t, rate)
	served := make(map[string]float64) // a second
	for i, fault := range []string{"latency", "timeout"} {
		if i > 0 {
			time.Sleep(6 * time.Second) // until all have asked again
		}
		begin := time.Now().UnixMicro()
		toxic(t, proxy, `{"name":"x","type":"`+fault+`","attributes":{"latency":100,"timeout":0}}`)
		time.Sleep(time.Second) // until all processes go on alone
		alone := time.Now().UnixMicro()
		a.await(t, 4*rate)
		end := time.Now().UnixMicro()
		if err := proxy.Toxics.RemoveToxic(t.Context(), "x"); err != nil {
			t.Fatal(err)
		}
		at := a.seen()
		slices.Sort(at)
		n, took := before(at, end)-before(at, begin), float64(end-begin)/1e6
		served[fault] = float64(before(at, end)-before(at, alone)) / (float64(end-alone) / 1e6)
		if most := rate*took + 2*(burst+members) + members*callers; float64(n) > most {
			t.Errorf("%s: %d requests in %.1f s, want at most %.0f", fault, n, took, most)
		}
		t.Logf("%s: %d requests in %.1f s, %.2f of the rate", fault, n, took, float64(n)/took/rate)
	}
	if d := end(t, ws); d.Failed > 0 {
		t.Errorf("%d requests failed", d.Failed)
	}
	if served["latency"] < .9*served["timeout"] {
		t.Errorf("%.0f requests a second with a slow Redis, want .9 of the %.0f with a dead one", served["latency"], served["timeout"])
	}
}

// TestStateIsLostUnderProcesses: a bucket is spent by processes when Redis loses all, falls back to
// a dump of some seconds ago, or throws the key away. They put back what they remember: one that
// comes new with the dump gets nothing that was spent, and with the others what those leave.
func TestStateIsLostUnderProcesses(t *testing.T) {
	const members, callers, bucket, rate = 4, 2, 100, 10
	faults := map[string]func(t *testing.T, s *server){
		"restarted from a dump": func(t *testing.T, s *server) { s.kill(); s.restart(t) },
		"restarted empty":       func(t *testing.T, s *server) { s.kill(); s.restart(t) },
		"thrown away":           func(t *testing.T, s *server) { s.client(t).FlushAll(t.Context()) },
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for its rate most of the time
			s, a := startServer(t), startAPI(t)
			j := job{Redis: s.addr, Members: members + 1, Callers: callers, Deadline: time.Second,
				Budgets: map[string]string{a.host: "10/s bucket 100"}}
			ws := processes(t, members, j)
			a.await(t, bucket+rate/2)
			if name == "restarted from a dump" {
				if err := s.client(t).Save(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
			}
			a.await(t, 5*rate) // a dump does not know of these
			fault(t, s)
			if name == "restarted from a dump" {
				ws = append(ws, processes(t, 1, j)...)
			}
			a.await(t, 3*rate)
			if d := end(t, ws); d.Failed > 0 {
				t.Errorf("%d requests failed", d.Failed)
			}
			a.judgeBucket(t, bucket, rate, len(ws), callers)
		})
	}
}

// judgeBucket compares all that arrived with what a bucket of the given size and rate allows while
// Redis goes once and comes back: beside that, one request of each process where the outage
// begins and where it ends, and those that were on their way.
func (a *api) judgeBucket(t *testing.T, size, rate, processes, callers int) {
	t.Helper()
	at := a.seen()
	took := float64(slices.Max(at)-slices.Min(at)) / 1e6
	extra := float64(len(at)) - float64(size) - float64(rate)*took
	if most := float64((2 + callers) * processes); extra > most {
		t.Errorf("%.0f beyond the limit, want at most %.0f", extra, most)
	}
	t.Logf("%d requests in %.1f s, %.0f beyond the limit", len(at), took, extra)
}

// judge compares what arrived within per with what may: limit, and more of those
// that were held up. stall is for how long processes were not let run that were to
// be: longer than an eighth of the window, and requests may come late.
func (a *api) judge(t *testing.T, d done, per time.Duration, limit, more int, stall time.Duration) {
	t.Helper()
	at := a.seen()
	slices.Sort(at)
	worst := mostIn(at, per)
	if d.Failed > 0 {
		t.Errorf("%d requests failed", d.Failed)
	}
	if granted := d.Granted[a.host]; d.Granted != nil && len(at) > len(granted) {
		t.Errorf("%d requests arrived, %d were granted", len(at), len(granted))
	}
	if worst > limit+more && stall < per/8 {
		t.Errorf("%d requests within %v, want at most %d and %d", worst, per, limit, more)
	}
	t.Logf("%d arrived, at most %d within %v of %d and %d; longest stall %v", len(at), worst, per, limit, more, stall)
}
