package redisstore

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"

	"github.com/weirhttp/weir/throttle"
	"github.com/weirhttp/weir/throttle/store"
)

// These tests have what people build first, written as it is usually written, and the
// same in weir. Each shows what goes wrong with the homemade one.

// bubble runs f with a miniredis whose clock is the bubble's. advance moves both.
func bubble(t *testing.T, f func(t *testing.T, c *redis.Client, advance func(time.Duration))) {
	m := miniredis.RunT(t) // outside: its goroutines wait on the network
	synctest.Test(t, func(t *testing.T) {
		m.SetTime(time.Now())
		c := redis.NewClient(options(m.Addr()))
		defer c.Close()
		f(t, c, func(d time.Duration) {
			time.Sleep(d)
			m.SetTime(time.Now())
			m.FastForward(d)
		})
	})
}

func fleetOf(t *testing.T, c *redis.Client, n int, budget string, f throttle.FleetConfig) []*throttle.Limiter {
	t.Helper()
	f.Members = n
	f.Deadline = time.Minute // of the bubble, where a call takes no time
	var ls []*throttle.Limiter
	for range n {
		st, err := New(c, Config{})
		if err != nil {
			t.Fatal(err)
		}
		ls = append(ls, limiter(t, st, budget, f))
	}
	return ls
}

// counter is INCR and EXPIRE: at most n per window from the first hit.
func counter(t *testing.T, c *redis.Client, key string, n int64, per time.Duration) bool {
	t.Helper()
	v, err := c.Incr(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	if v == 1 {
		c.PExpire(t.Context(), key, per) // a process that dies before this line blocks the key for good
	}
	return v <= n
}

func TestHomemadeCounter(t *testing.T) {
	bubble(t, func(t *testing.T, c *redis.Client, advance func(time.Duration)) {
		l := fleetOf(t, c, 1, "10/s burst 10", throttle.FleetConfig{})[0]
		theirs, ours := 0, 0
		spend := func(n int) {
			for range n {
				if counter(t, c, "theirs", 10, time.Second) {
					theirs++
				}
				if l.Try("k", nil).Allowed {
					ours++
				}
			}
		}
		spend(1)
		advance(950 * time.Millisecond)
		theirs, ours = 0, 0 // the next 100 ms
		spend(20)
		advance(100 * time.Millisecond)
		spend(20)
		if theirs != 19 || ours > 10 {
			t.Errorf("in 100 ms at the border: the counter let %d through, want 19; weir %d, want at most 10", theirs, ours)
		}
	})
}

// sortedSet is the sliding log as most write it: add, trim, count.
func sortedSet(t *testing.T, c *redis.Client, key string, n int64, per time.Duration, id int) bool {
	t.Helper()
	now := time.Now()
	var count *redis.IntCmd
	_, err := c.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		p.ZRemRangeByScore(t.Context(), key, "0", fmt.Sprint(now.Add(-per).UnixMicro()))
		p.ZAdd(t.Context(), key, redis.Z{Score: float64(now.UnixMicro()), Member: id})
		count = p.ZCard(t.Context(), key)
		p.PExpire(t.Context(), key, per)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return count.Val() <= n
}

func TestHomemadeSortedSet(t *testing.T) {
	bubble(t, func(t *testing.T, c *redis.Client, advance func(time.Duration)) {
		l := fleetOf(t, c, 1, "10/s burst 10", throttle.FleetConfig{})[0]
		theirs, ours := 0, 0
		for i := range 200 { // a caller that asks every 20 ms for four seconds
			if sortedSet(t, c, "theirs", 10, time.Second, i) {
				theirs++
			}
			if l.Try("k", nil).Allowed {
				ours++
			}
			advance(20 * time.Millisecond)
		}
		if theirs != 10 || ours < 38 {
			t.Errorf("the set let %d through, want 10 as refused calls count; weir %d, want about 40", theirs, ours)
		}
		if n := c.ZCard(t.Context(), "theirs").Val(); n < 45 {
			t.Errorf("the set holds %d, want one for each call of the last second", n)
		}
	})
}

func TestHomemadeTokenList(t *testing.T) {
	bubble(t, func(t *testing.T, c *redis.Client, advance func(time.Duration)) {
		const places = 5
		l := fleetOf(t, c, 1, "5/s burst 5", throttle.FleetConfig{})[0]
		for range places {
			c.RPush(t.Context(), "theirs", "token") // pushed back by who took it
		}
		for range places { // workers that take a token and die
			if c.LPop(t.Context(), "theirs").Err() != nil || !l.Try("k", nil).Allowed {
				t.Fatal("no token at the start")
			}
		}
		advance(time.Hour)
		if err := c.LPop(t.Context(), "theirs").Err(); err != redis.Nil {
			t.Errorf("the list has a token again: %v", err)
		}
		if !l.Try("k", nil).Allowed {
			t.Error("weir's units did not come back with time")
		}
	})
}

// TestHomemadeCellThrottle compares with redis-cell's CL.THROTTLE as throttled/v2
// computes it in memory. The module itself was not run.
func TestHomemadeCellThrottle(t *testing.T) {
	for _, tc := range []struct{ burst, count, seconds int }{{14, 30, 60}, {0, 1, 1}, {4, 10, 1}, {99, 7, 3}} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *redis.Client, advance func(time.Duration)) {
				mem, err := memstore.NewCtx(100)
				if err != nil {
					t.Fatal(err)
				}
				per := time.Duration(tc.seconds) * time.Second
				cell, err := throttled.NewGCRARateLimiterCtx(mem, throttled.RateQuota{MaxRate: throttled.PerDuration(tc.count, per), MaxBurst: tc.burst})
				if err != nil {
					t.Fatal(err)
				}
				l := fleetOf(t, c, 1, fmt.Sprintf("%d/%ds bucket %d", tc.count, tc.seconds, tc.burst+1), throttle.FleetConfig{})[0]
				for i := range 150 {
					n := 1 + i%3
					limited, want, err := cell.RateLimitCtx(t.Context(), "k", n)
					if err != nil {
						t.Fatal(err)
					}
					if n > tc.burst+1 {
						continue // weir lets it in when the bucket is full; CL.THROTTLE never, without saying so
					}
					got := l.Try("k", throttle.Cost{"requests": int64(n)})
					if got.Allowed == limited || got.Limit != int64(want.Limit) || got.Remaining != int64(want.Remaining) {
						t.Fatalf("call %d of %d: allowed %t, limit %d, remaining %d; want %t, %d, %d", i, n,
							got.Allowed, got.Limit, got.Remaining, !limited, want.Limit, want.Remaining)
					}
					if d := got.RetryAfter - want.RetryAfter; limited && (d < -2*time.Microsecond || d > 2*time.Microsecond) {
						t.Fatalf("call %d: retry after %v, want %v", i, got.RetryAfter, want.RetryAfter)
					}
					if d := got.ResetAfter - want.ResetAfter; d < -2*time.Microsecond || d > 2*time.Microsecond {
						t.Fatalf("call %d: reset after %v, want %v", i, got.ResetAfter, want.ResetAfter)
					}
					advance(time.Duration(i%5) * per / time.Duration(3*tc.count))
				}
			})
		})
	}
}

// TestHomemadePrefetch: batches fetched in one window and spent in the next.
func TestHomemadePrefetch(t *testing.T) {
	bubble(t, func(t *testing.T, c *redis.Client, advance func(time.Duration)) {
		const processes, batch, n = 10, 10, 100
		ls := fleetOf(t, c, processes, "100/s burst 100", throttle.FleetConfig{Lease: 100 * time.Millisecond})
		for range processes { // each takes a batch and one of it
			if c.IncrBy(t.Context(), "theirs", batch).Val() > n {
				t.Fatal("no batch in the first window")
			}
		}
		c.PExpire(t.Context(), "theirs", time.Second)
		for _, l := range ls {
			for range 3 {
				l.Try("k", nil)
			}
		}
		advance(1200 * time.Millisecond)
		theirs, ours := processes*(batch-1), 0
		for c.IncrBy(t.Context(), "theirs", batch).Val() <= n {
			theirs += batch
		}
		for range 40 {
			for _, l := range ls {
				if l.Try("k", nil).Allowed {
					ours++
				}
			}
		}
		if theirs != 190 || ours > n || ours < n*3/4 {
			t.Errorf("at one instant: prefetching let %d through, want 190; leases %d, want most of 100", theirs, ours)
		}
	})
}

// gone is a store that cannot be reached.
type gone struct{}

var errGone = errors.New("connection refused")

func (gone) Book(context.Context, store.Booking) (store.Booked, error) {
	return store.Booked{}, errGone
}
func (gone) Refund(context.Context, store.Refund) error     { return errGone }
func (gone) Tell(context.Context, string, store.News) error { return errGone }

// TestHomemadeTokenServerFallback: a server that hands out tokens, and the whole
// limit in each process when it is gone.
func TestHomemadeTokenServerFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const processes, n = 10, 100
		count := func(f throttle.FleetConfig) (granted int) {
			ctx, cancel := context.WithTimeout(t.Context(), 990*time.Millisecond)
			defer cancel()
			done := make(chan int)
			f.Members = processes
			for range processes {
				l := limiter(t, gone{}, "100/s", f)
				go func() {
					n := 0
					for {
						if _, err := l.Take(ctx, "k", nil); err != nil {
							break
						}
						n++
					}
					done <- n
				}()
			}
			for range processes {
				granted += <-done
			}
			return granted
		}
		theirs := count(throttle.FleetConfig{WhenDown: throttle.FailOpen}) // each keeps the whole limit to itself
		ours := count(throttle.FleetConfig{WhenDown: throttle.ShareRates})
		if theirs < 9*n || ours > n+processes || ours < n/2 {
			t.Errorf("in a second without the store: whole limits let %d through, want about 1000; shares %d, want at most 110", theirs, ours)
		}
	})
}
