package redisstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/store"
)

const workerEnv = "WEIR_REDISSTORE_WORKER"

// TestMain lets the test binary be a worker, a process of its own.
func TestMain(m *testing.M) {
	if os.Getenv(workerEnv) == "" {
		os.Exit(m.Run())
	}
	if err := work(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

// job is what a worker is told on its standard input; the input's end is the
// job's.
type job struct {
	Redis    string // or a Sentinel of it, or a node of its Cluster
	Sentinel bool
	Cluster  bool
	Members  int
	Budgets  map[string]string // by host; each is called by Callers goroutines
	Callers  int
	Deadline time.Duration
	Spread   time.Duration
	Lease    time.Duration
}

// done is what a worker says on its standard output.
type done struct {
	Failed  int
	Stall   time.Duration      // the longest that it did not run
	Granted map[string][]int64 // per key of the store, by Redis' clock
}

// client is one for j's Redis. It is closed by the caller.
func (j job) client() redis.UniversalClient {
	o := redis.UniversalOptions{Addrs: []string{j.Redis}, IsClusterMode: j.Cluster, ContextTimeoutEnabled: true, PoolSize: 16,
		DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience}
	if j.Sentinel {
		o.MasterName = "quota"
	}
	return redis.NewUniversalClient(&o)
}

// work calls every host as fast as its budget lets it.
func work(in io.Reader, out io.Writer) error {
	var j job
	input := json.NewDecoder(in)
	if err := input.Decode(&j); err != nil {
		return err
	}
	redis.SetLogger(quiet{})
	client := j.client()
	defer client.Close()
	st, err := New(client, Config{})
	if err != nil {
		return err
	}
	noted := &ledgerOfGrants{Store: st, done: done{Granted: make(map[string][]int64)}}
	c := throttle.Config{Budgets: make(map[string]throttle.Budget), MaxWait: time.Hour, DisableLearning: true, Store: noted,
		Fleet: throttle.FleetConfig{Members: j.Members, Deadline: j.Deadline, Spread: j.Spread, Lease: j.Lease}}
	for host, text := range j.Budgets {
		c.Budgets[host] = throttle.MustParseBudget(text)
	}
	t, err := throttle.New(&http.Transport{MaxIdleConnsPerHost: 100}, c)
	if err != nil {
		return err
	}
	defer t.CloseIdleConnections()
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, in)
		stop()
	}()
	var wg sync.WaitGroup
	wg.Go(func() { noted.watch(ctx) })
	for host := range j.Budgets {
		for range j.Callers {
			wg.Go(func() {
				for ctx.Err() == nil {
					if err := call(ctx, t, "http://"+host+"/"); err != nil && ctx.Err() == nil {
						noted.fail(err)
					}
				}
			})
		}
	}
	wg.Wait()
	err = t.Close()
	noted.mu.Lock()
	defer noted.mu.Unlock()
	return errors.Join(err, json.NewEncoder(out).Encode(noted.done))
}

type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func call(ctx context.Context, t http.RoundTripper, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := t.RoundTrip(r)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// ledgerOfGrants notes what the store granted, by its clock.
type ledgerOfGrants struct {
	store.Store
	mu sync.Mutex
	done
}

func (g *ledgerOfGrants) Book(ctx context.Context, b store.Booking) (store.Booked, error) {
	r, err := g.Store.Book(ctx, b)
	n := int64(0)
	switch {
	case err != nil:
	case r.Outcome == store.BookedAll:
		n = b.Draws[0].Units[0].All
	case r.Outcome == store.BookedOne:
		n = b.Draws[0].Units[0].First
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for range n {
		g.Granted[b.Draws[0].Key] = append(g.Granted[b.Draws[0].Key], r.Ready)
	}
	return r, err
}

func (g *ledgerOfGrants) fail(err error) {
	fmt.Fprintln(os.Stderr, "worker:", err)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.Failed++
}

// watch finds out how long this process was not let run.
func (g *ledgerOfGrants) watch(ctx context.Context) {
	for ctx.Err() == nil {
		begin := time.Now()
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
		g.mu.Lock()
		g.Stall = max(g.Stall, time.Since(begin)-10*time.Millisecond)
		g.mu.Unlock()
	}
}

// api is a server that notes when requests arrive.
type api struct {
	host string
	mu   sync.Mutex
	at   []int64 // microseconds
}

func startAPI(t *testing.T) *api {
	t.Helper()
	a := &api{}
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.at = append(a.at, time.Now().UnixMicro())
	}))
	t.Cleanup(s.Close)
	a.host = s.Listener.Addr().String()
	return a
}

func (a *api) seen() []int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]int64(nil), a.at...)
}

// await waits until more than n further requests have arrived.
func (a *api) await(t *testing.T, n int) {
	t.Helper()
	before := len(a.seen())
	for range 6000 {
		if len(a.seen()) > before+n {
			return
		}
		time.Sleep(10 * time.Millisecond) // real processes, real time
	}
	t.Fatalf("%d requests arrived, want more than %d", len(a.seen())-before, n)
}

// A worker is a process that works on a job.
type worker struct {
	cmd *exec.Cmd
	in  io.Closer
	out io.Reader
	done
}

// processes runs n workers on j.
func processes(t *testing.T, n int, j job) (ws []*worker) {
	t.Helper()
	for range n {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env, cmd.Stderr = append(os.Environ(), workerEnv+"=1"), os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := json.NewEncoder(in).Encode(j); err != nil {
			t.Fatal(err)
		}
		ws = append(ws, &worker{cmd: cmd, in: in, out: out})
	}
	return ws
}

// end ends workers and returns what they say, in one: the sum, the longest
// stall, all grants.
func end(t *testing.T, ws []*worker) done {
	t.Helper()
	all := done{Granted: make(map[string][]int64)}
	for _, w := range ws {
		w.in.Close()
	}
	for i, w := range ws {
		if err := json.NewDecoder(w.out).Decode(&w.done); err != nil {
			t.Fatalf("worker %d: %v", i, err)
		}
		if err := w.cmd.Wait(); err != nil {
			t.Error(err)
		}
		all.Failed += w.Failed
		all.Stall = max(all.Stall, w.Stall)
		for key, at := range w.Granted {
			all.Granted[key] = append(all.Granted[key], at...)
		}
	}
	return all
}
