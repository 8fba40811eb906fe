package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"

	"github.com/weirhttp/weir/bench/result"
	"github.com/weirhttp/weir/bench/rival"
	"github.com/weirhttp/weir/redisstore"
	"github.com/weirhttp/weir/throttle"
)

func fleet() Scenario {
	return Scenario{"fleet", "Clients as in four processes share one budget in Redis. This part is left out where redis-server is not installed.", runFleet}
}

// A member is one process of a fleet: wait returns when it has a grant.
type member struct {
	wait  func(context.Context) error
	close func()
}

// A fleetKind makes members for one budget of so many per second.
type fleetKind struct {
	name string
	make func(addr string, perSecond, burst int) (member, error)
}

func fleetKinds() []fleetKind {
	return []fleetKind{
		{"weir redisstore", func(a string, r, b int) (member, error) { return weirMember(a, r, b, 0) }},
		{"weir redisstore, leases of 100 ms", func(a string, r, b int) (member, error) { return weirMember(a, r, b, 100*time.Millisecond) }},
		{"redis_rate", redisRateMember},
		{"throttled goredisstore", throttledMember},
	}
}

func weirMember(addr string, perSecond, burst int, lease time.Duration) (member, error) {
	client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
	store, err := redisstore.New(client, redisstore.Config{})
	if err != nil {
		return member{}, err
	}
	l, err := throttle.NewLimiter(throttle.LimiterConfig{Store: store,
		Default: throttle.Budget{Rates: []throttle.Rate{{Limit: perSecond, Per: time.Second, Bucket: burst}}},
		Fleet:   throttle.FleetConfig{Members: 4, Lease: lease, Deadline: time.Second}})
	if err != nil {
		return member{}, errors.Join(err, client.Close())
	}
	return member{func(ctx context.Context) error { _, err := l.Take(ctx, "fleet", nil); return err },
		func() { l.Close(); client.Close() }}, nil
}

func redisRateMember(addr string, perSecond, burst int) (member, error) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	l := redis_rate.NewLimiter(client)
	wait := func(ctx context.Context) error {
		for {
			r, err := l.Allow(ctx, "fleet", redis_rate.Limit{Rate: perSecond, Burst: burst, Period: time.Second})
			if err != nil || r.Allowed > 0 {
				return err
			}
			if err := nap(ctx, r.RetryAfter); err != nil {
				return err
			}
		}
	}
	return member{wait, func() { client.Close() }}, nil
}

func throttledMember(addr string, perSecond, burst int) (member, error) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	store, err := goredisstore.NewCtx(client, "throttled:")
	if err != nil {
		return member{}, err
	}
	l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(perSecond), MaxBurst: burst - 1})
	if err != nil {
		return member{}, err
	}
	wait := func(ctx context.Context) error {
		for {
			limited, r, err := l.RateLimitCtx(ctx, "fleet", 1)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err == nil && !limited {
				return nil
			}
			if err := nap(ctx, max(r.RetryAfter, 0)); err != nil { // after ten lost races it returns an error
				return err
			}
		}
	}
	return member{wait, func() { client.Close() }}, nil
}

func nap(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func runFleet(ctx context.Context, s Size) ([]result.Table, []result.Plot, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, nil, nil // nothing to measure with
	}
	addr, stop, err := startRedis(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	defer stop()
	d := pick(s, 200*time.Millisecond, time.Second, 4*time.Second)
	free := result.Table{ID: "fleet-free", Title: "Grants through Redis with room for all, 4 members of 8 callers",
		Note: "Each member is a client with its own connections; all members are in one process. Commands: the number that Redis counted, including those of scripts.", Columns: []result.Column{more("grants/s", 0, .05), less("commands per grant", 2, .02), less("p99 ms", 2, .15)}}
	tight := result.Table{ID: "fleet-tight", Title: fmt.Sprintf("The same with a budget of 200/s, burst 20, for %v", d),
		Note:    "Of allowed: the number of grants, divided by 20 + 200/s times the duration. Overshoot: by how many grants the members exceeded 20 + 200/s times the length of a window, in the worst window of 100 ms or more; a few come from the delay between Redis and the caller. throttled writes by compare-and-set, so callers of one key make one another's writes fail.",
		Columns: []result.Column{more("of allowed", 3, .01), less("overshoot", 0, 0), less("commands per grant", 2, .02)}}
	for i, k := range fleetKinds() {
		f, err := race(ctx, addr, k, 1_000_000, 1_000_000, d)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", k.name, err)
		}
		free.Rows = append(free.Rows, result.Row{Name: k.name, Ours: i < 2, Cells: []result.Cell{result.Num(float64(len(f.at)) / d.Seconds()), result.Num(f.commands), result.Num(quantile(f.waits, .99).Seconds() * 1e3)}})
		if f, err = race(ctx, addr, k, 200, 20, d); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", k.name, err)
		}
		tight.Rows = append(tight.Rows, result.Row{Name: k.name, Ours: i < 2, Cells: []result.Cell{result.Num(float64(len(f.at)) / (20 + 200*d.Seconds())), result.Num(excess(f.at, 200, 20)), result.Num(f.commands)}})
	}
	return []result.Table{free, tight}, nil, nil
}

// raced is what a fleet got.
type raced struct {
	at       []time.Duration // sorted
	waits    []time.Duration
	commands float64 // of Redis, per grant
}

// race lets four members of eight callers take what they can for d.
func race(ctx context.Context, addr string, k fleetKind, perSecond, burst int, d time.Duration) (r raced, err error) {
	admin := redis.NewClient(&redis.Options{Addr: addr})
	defer admin.Close()
	if err := admin.FlushAll(ctx).Err(); err != nil {
		return r, err
	}
	var members []member
	for range 4 {
		m, err := k.make(addr, perSecond, burst)
		if err != nil {
			return r, err
		}
		defer m.close()
		members = append(members, m)
	}
	before, err := commands(ctx, admin)
	if err != nil {
		return r, err
	}
	limited, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	begin := time.Now()
	var mu sync.Mutex
	err = each(make([]rival.Rival, 32), func(i int, _ rival.Rival) error {
		at, waits, err := members[i%4].take(limited, begin)
		mu.Lock()
		defer mu.Unlock()
		r.at, r.waits = append(r.at, at...), append(r.waits, waits...)
		return err
	})
	if err != nil {
		return r, err
	}
	after, err := commands(ctx, admin)
	r.commands = (after - before) / float64(max(len(r.at), 1))
	quantile(r.at, 0) // sorts
	return r, err
}

// take waits again and again until ctx ends, and returns when it got
// something and how long each took.
func (m member) take(ctx context.Context, begin time.Time) (at, waits []time.Duration, err error) {
	for ctx.Err() == nil {
		start := time.Since(begin)
		if err := m.wait(ctx); err != nil {
			if ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
				return at, waits, err
			}
			break
		}
		at = append(at, time.Since(begin))
		waits = append(waits, at[len(at)-1]-start)
	}
	return at, waits, nil
}

// commands is how many Redis has processed.
func commands(ctx context.Context, c *redis.Client) (float64, error) {
	text, err := c.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, err
	}
	var sum float64
	for line := range strings.Lines(text) {
		if _, rest, ok := strings.Cut(line, ":calls="); ok {
			n, _, _ := strings.Cut(rest, ",")
			v, err := strconv.ParseFloat(n, 64)
			if err != nil {
				return 0, err
			}
			sum += v
		}
	}
	return sum, nil
}

// excess is by how many the grants in some window exceed burst + perSecond
// times its length.
func excess(at []time.Duration, perSecond, burst float64) int {
	worst := 0.
	for i := range at {
		for j := i; j < len(at); j++ {
			w := at[j] - at[i]
			if w >= 100*time.Millisecond {
				worst = max(worst, float64(j-i+1)-burst-perSecond*w.Seconds())
			}
		}
	}
	return int(worst)
}

// startRedis runs a server of its own, which keeps nothing.
func startRedis(ctx context.Context, path string) (addr string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	addr = l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	l.Close()
	dir, err := os.MkdirTemp("", "weir-bench-redis")
	if err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	stop = func() {
		cmd.Process.Kill()
		cmd.Wait()
		os.RemoveAll(dir)
	}
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	for range 500 {
		if err = client.Ping(ctx).Err(); err == nil {
			return addr, stop, nil
		}
		if nap(ctx, 20*time.Millisecond) != nil {
			break
		}
	}
	stop()
	return "", nil, fmt.Errorf("scenario: redis-server did not start: %w: %s", err, out.String())
}
