package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/weirhttp/weir/throttle/store"
	"github.com/weirhttp/weir/throttle/storetest"
)

// mini opens a miniredis whose clock stands still but for Advance.
func mini(t testing.TB) storetest.Setup {
	m := miniredis.RunT(t)
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	m.SetTime(now)
	var stores []store.Store
	for range 2 {
		client := redis.NewClient(options(m.Addr()))
		t.Cleanup(func() { client.Close() })
		s, err := New(client, Config{})
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, s)
	}
	return storetest.Setup{
		Stores: stores,
		Now:    func() time.Time { return now },
		Lose:   m.FlushAll,
		Advance: func(d time.Duration) {
			now = now.Add(d)
			m.SetTime(now)
			m.FastForward(d)
		},
	}
}

func TestMiniredis(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Setup { return mini(t) })
}

// TestScriptIsTheLedger is the differential test of the scripts, in short: the
// long one is TestRealScriptIsTheLedger.
func TestScriptIsTheLedger(t *testing.T) {
	s := mini(t)
	for seed := range uint64(4) {
		if err := storetest.Histories(context.Background(), s, seed, 250); err != nil {
			t.Fatal(err)
		}
	}
}
