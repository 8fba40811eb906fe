package redisstore

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/store"
)

// recorder notes when what it grants starts, by the server's clock.
type recorder struct {
	store.Store
	mu    sync.Mutex
	ready []int64 // per request
}

func (r *recorder) Book(ctx context.Context, b store.Booking) (store.Booked, error) {
	k, err := r.Store.Book(ctx, b)
	n := int64(0)
	switch {
	case err != nil:
	case k.Outcome == store.BookedAll:
		n = b.Draws[0].Units[0].All
	case k.Outcome == store.BookedOne:
		n = b.Draws[0].Units[0].First
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for range n {
		r.ready = append(r.ready, k.Ready)
	}
	return k, err
}

// granted is what r granted until now. A call whose callers have left may
// still be under way.
func (r *recorder) granted() []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ready)
}

func limiter(t testing.TB, s store.Store, budget string, f throttle.FleetConfig) *throttle.Limiter {
	t.Helper()
	l, err := throttle.NewLimiter(throttle.LimiterConfig{Default: throttle.MustParseBudget(budget), Store: s, Fleet: f})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// TestSixteenProcesses spends what there is for two seconds, or for as long as
// it takes until a quarter of a window's is spent. By the server's clock no
// window of the rate holds more than its limit. How fast this machine is changes
// how much is spent, not the rule.
func TestSixteenProcesses(t *testing.T) {
	s := startServer(t)
	for _, tc := range []struct {
		budget string
		most   int
	}{{"200/s", 200}, {"50/s burst 50", 50}, {"300/s burst 300", 300}} {
		t.Run(tc.budget, func(t *testing.T) {
			rec := &recorder{}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var wg sync.WaitGroup
			var granted atomic.Int64
			time.AfterFunc(2*time.Second, func() { // of Redis' own clock
				for ctx.Err() == nil && granted.Load() < int64(tc.most)/4 {
					time.Sleep(10 * time.Millisecond)
				}
				cancel()
			})
			rec.Store = s.store(t)
			for range 16 {
				l := limiter(t, rec, tc.budget, throttle.FleetConfig{Members: 16, Deadline: patience})
				for range 4 {
					wg.Go(func() {
						for {
							if _, err := l.Take(ctx, tc.budget, nil); err != nil {
								return
							}
							granted.Add(1)
						}
					})
				}
			}
			wg.Wait()
			most := mostIn(rec.granted(), time.Second)
			if most > tc.most {
				t.Errorf("%d requests in a second, want at most %d", most, tc.most)
			}
			if n := granted.Load(); n < int64(tc.most)/4 {
				t.Errorf("%d requests in %v, want at least %d", n, patience, tc.most/4)
			}
			t.Logf("%d granted, %d in a second", granted.Load(), most)
		})
	}
}

// mostIn is the largest number of instants, in microseconds, in a half-open
// window. They come nearly in order.
func mostIn(ready []int64, per time.Duration) int {
	most := 0
	for _, from := range ready {
		n := 0
		for _, at := range ready {
			if at >= from && at < from+per.Microseconds() {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// TestKillUnderLoad kills Redis under eight processes that have spent a bucket
// of 200, and starts it again empty. Nobody is refused, and the bucket is not
// there again.
func TestKillUnderLoad(t *testing.T) {
	const bucket, perSecond, members = 200, 20, 8
	s := startServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	var granted, failed atomic.Int64
	begin := time.Now()
	var all []*throttle.Limiter
	for range members {
		l := limiter(t, s.store(t), fmt.Sprintf("%d/s bucket %d", perSecond, bucket), throttle.FleetConfig{
			Members: members, Deadline: time.Second,
		})
		all = append(all, l)
		for range 2 {
			wg.Go(func() {
				for ctx.Err() == nil {
					if _, err := l.Take(ctx, "k", nil); err == nil {
						granted.Add(1)
					} else if ctx.Err() == nil {
						failed.Add(1)
					}
				}
			})
		}
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		for range 3000 {
			if ok() {
				return
			}
			time.Sleep(10 * time.Millisecond) // real servers, real time
		}
		t.Fatal("never:", what)
	}
	until("the bucket is spent", func() bool { return granted.Load() > bucket+perSecond/2 })
	s.kill()
	before := granted.Load()
	until("each goes on alone", func() bool { return granted.Load() > before+members })
	s.restart(t)
	for _, l := range all {
		until("all are back", func() bool { return l.StoreState() == throttle.StoreUp })
	}
	after := granted.Load()
	until("the rate goes on", func() bool { return granted.Load() > after+perSecond })
	cancel()
	wg.Wait()
	took := time.Since(begin)
	// The bucket, the rate, one request a process in the outage, and what was
	// granted before those came back who remember best.
	if most := bucket + perSecond*took.Seconds() + 4*members; float64(granted.Load()) > most {
		t.Errorf("%d requests in %v, want at most %.0f", granted.Load(), took, most)
	}
	if failed.Load() > 0 {
		t.Errorf("%d requests failed", failed.Load())
	}
	t.Logf("%d granted in %v", granted.Load(), took)
}

// proxied puts a toxiproxy before s and returns it and a store behind it.
func proxied(t *testing.T, s *server) (*toxiproxy.Proxy, *Store) {
	t.Helper()
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.New(io.Discard))
	p := toxiproxy.NewProxy(api, "redis", "127.0.0.1:0", s.addr)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	client := redis.NewClient(options(p.Listen))
	t.Cleanup(func() { client.Close() })
	st, err := New(client, Config{})
	if err != nil {
		t.Fatal(err)
	}
	return p, st
}

func toxic(t *testing.T, p *toxiproxy.Proxy, json string) {
	t.Helper()
	if _, err := p.Toxics.AddToxicJson(strings.NewReader(json)); err != nil {
		t.Fatal(err)
	}
}

// TestBadNetwork: with a slow network calls take longer, with a dead one the
// share of the rate goes on; no request fails, and all is well afterwards.
func TestBadNetwork(t *testing.T) {
	s := startServer(t)
	for name, tc := range map[string]struct {
		toxic    string
		deadline time.Duration
		gone     bool
	}{
		"latency": {`{"name":"x","type":"latency","attributes":{"latency":30,"jitter":10}}`, 10 * time.Second, false},
		"stall":   {`{"name":"x","type":"timeout","attributes":{"timeout":0}}`, 50 * time.Millisecond, true},
		"reset":   {`{"name":"x","type":"reset_peer","attributes":{"timeout":0}}`, 10 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			p, st := proxied(t, s)
			changes := make(chan throttle.StoreState, 1000)
			l := limiter(t, st, "1000000/s bucket 1000000", throttle.FleetConfig{
				Members: 2, Deadline: tc.deadline, OnStore: func(c throttle.StoreChange) { changes <- c.To },
			})
			take := func(n int) {
				t.Helper()
				for range n {
					if _, err := l.Take(t.Context(), name, nil); err != nil {
						t.Fatal(err)
					}
				}
			}
			take(3)
			toxic(t, p, tc.toxic)
			if !tc.gone {
				take(10)
				if state := l.StoreState(); state != throttle.StoreUp {
					t.Errorf("state %v, want up", state)
				}
				return
			}
			for l.StoreState() != throttle.StoreGone {
				take(1)
			}
			take(100)
			if err := p.Toxics.RemoveToxic(t.Context(), "x"); err != nil {
				t.Fatal(err)
			}
			for l.StoreState() != throttle.StoreUp {
				take(1)
			}
			take(10)
		})
	}
}

// BenchmarkGrants is grants per second of one process with 256 goroutines.
func BenchmarkGrants(b *testing.B) {
	s := startServer(b)
	for _, goroutines := range []int{1, 16, 256} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			l := limiter(b, s.store(b), "1000000000/s bucket 1000000000, 1000000000/m bucket 1000000000", throttle.FleetConfig{Members: 2, Deadline: time.Second})
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			b.ResetTimer()
			for range goroutines {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := l.Take(b.Context(), "k", nil); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "grants/s")
			b.ReportMetric(s.stat(b, "commandstats", "cmdstat_evalsha:calls")/float64(b.N), "calls/op")
			client := s.client(b)
			info := client.Info(b.Context(), "commandstats").Val()
			_, info, _ = strings.Cut(info, "cmdstat_evalsha:")
			_, info, _ = strings.Cut(info, "usec_per_call=")
			info, _, _ = strings.Cut(info, ",")
			var us float64
			if _, err := fmt.Sscan(info, &us); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(us, "redis-µs/call")
			client.ConfigResetStat(b.Context())
		})
	}
}
