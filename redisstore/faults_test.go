package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirhttp/weir/throttle/store"
)

// book books one of limit on key and fails the test unless the outcome is want.
func book(t *testing.T, s store.Store, b store.Booking, want store.Outcome) store.Booked {
	t.Helper()
	r, err := s.Book(context.Background(), b)
	if err != nil {
		t.Fatal(err)
	}
	if r.Outcome != want {
		t.Fatalf("outcome %d after %v, want %d", r.Outcome, r.Wait, want)
	}
	return r
}

// TestWrongType: a key of ours that holds something else is left alone; the
// error names it, and the store counts as alive.
func TestWrongType(t *testing.T) {
	s := startServer(t)
	st, c := s.store(t), s.client(t)
	for _, kind := range []string{"string", "list", "hash"} {
		name := st.name(kind)
		switch kind {
		case "string":
			c.Set(t.Context(), name, "mine", 0)
		case "list":
			c.RPush(t.Context(), name, "mine")
		case "hash": // a hash of other fields is read as an idle key
			c.HSet(t.Context(), name, "t", "x", "g", "", "m1s", "nan?", "s9:", "?", "lx", "a b c")
		}
		_, err := st.Book(t.Context(), request(kind, 1, meterLimit(1, 1)))
		if kind == "hash" {
			if err != nil {
				t.Errorf("a hash of other things: %v", err)
			}
			continue
		}
		if !errors.Is(err, store.ErrBusy) || !strings.Contains(err.Error(), kind) || !strings.Contains(err.Error(), s.addr) {
			t.Errorf("got %v, want ErrBusy that names key %q and %s", err, kind, s.addr)
		}
	}
	if v := c.Get(t.Context(), st.name("string")).Val(); v != "mine" {
		t.Errorf("the key of another now holds %q", v)
	}
}

// TestOutOfMemory: with noeviction a full server refuses; it is busy, not gone.
func TestOutOfMemory(t *testing.T) {
	s := startServer(t, "--maxmemory-policy", "noeviction")
	st := s.store(t)
	book(t, st, request("k", 1, meterLimit(5, 0.001)), store.BookedAll)
	if err := s.client(t).ConfigSet(t.Context(), "maxmemory", "1").Err(); err != nil {
		t.Fatal(err)
	}
	_, err := st.Book(t.Context(), request("k", 1, meterLimit(5, 0.001)))
	if !errors.Is(err, store.ErrBusy) || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("got %v, want ErrBusy because of OOM", err)
	}
	s.client(t).ConfigSet(t.Context(), "maxmemory", "0")
	book(t, st, request("k", 4, meterLimit(5, 0.001)), store.BookedAll)
}

// TestEviction: a server that throws keys away when it is full serves on, and
// what was spent of one comes back with who remembers it, for all.
func TestEviction(t *testing.T) {
	s := startServer(t, "--maxmemory-policy", "allkeys-lru")
	st, c := s.store(t), s.client(t)
	limit := store.Limit{ID: "l", Kind: store.LogLimit, Size: 10, Per: time.Hour}
	last := book(t, st, request("k", 10, limit), store.BookedAll)
	most := strconv.Itoa(int(s.stat(t, "memory", "used_memory")) + 1<<20)
	if err := c.ConfigSet(t.Context(), "maxmemory", most).Err(); err != nil {
		t.Fatal(err)
	}
	for i := 0; c.Exists(t.Context(), st.name("k")).Val() == 1; i++ {
		if err := c.Set(t.Context(), fmt.Sprint("other", i), strings.Repeat("x", 10000), 0).Err(); err != nil || i > 10000 {
			t.Fatalf("after %d keys of others: %v", i, err)
		}
	}
	if err := c.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil { // or it may throw away any key, used or not within a second
		t.Fatal(err)
	}
	b := request("k", 1, limit)
	b.Draws[0].Seen = store.Seen{Standing: last.Keys[0]}
	book(t, st, b, store.Refused)
	book(t, st, request("new", 1, limit), store.BookedAll)
	// Which keys a full server throws away next is chance: from here on none.
	if err := c.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	book(t, st, b, store.Refused)
	book(t, s.store(t), request("k", 1, limit), store.Refused)
	if s.store(t).Refund(t.Context(), last.Refund(request("k", 10, limit), 0, []int64{10}, nil)) != nil {
		t.Error("a refund of what was forgotten is an error")
	}
	book(t, st, b, store.Refused)
}

// TestAuthFailure: the store counts as gone; errors show no password.
func TestAuthFailure(t *testing.T) {
	s := startServer(t, "--requirepass", "right")
	for _, password := range []string{"", "hunter2"} {
		st := s.store(t, func(o *redis.Options) { o.Password = password })
		_, err := st.Book(t.Context(), request("k", 1, meterLimit(1, 1)))
		if err == nil || errors.Is(err, store.ErrBusy) {
			t.Fatalf("password %q: got %v, want an error of a store that is gone", password, err)
		}
		if strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), s.addr) {
			t.Errorf("%v shows the password or does not name %s", err, s.addr)
		}
	}
	book(t, s.store(t, func(o *redis.Options) { o.Password = "right" }), request("k", 1, meterLimit(1, 1)), store.BookedAll)
}

// TestOldReplicaIsPromoted: what the old primary knew last comes back from what
// processes have seen. Before its promotion a replica refuses to book.
func TestOldReplicaIsPromoted(t *testing.T) {
	old := startServer(t, "--repl-diskless-sync-delay", "0")
	host, port, _ := strings.Cut(old.addr, ":")
	replica := startServer(t, "--replicaof", host+" "+port)
	st, now := old.store(t), replica.store(t)
	limit := meterLimit(10, 0.001)
	replicated(t, old) // the first replica of a server changes its replication ID
	book(t, st, request("k", 4, limit), store.BookedAll)
	replicated(t, old)
	if _, err := now.Book(t.Context(), request("k", 1, limit)); err == nil || errors.Is(err, store.ErrBusy) {
		t.Errorf("a replica answered %v, want READONLY as of a store that is gone", err)
	}
	if err := replica.client(t).Do(t.Context(), "replicaof", "no", "one").Err(); err != nil {
		t.Fatal(err)
	}
	first := book(t, st, request("k", 3, limit), store.BookedAll) // the replica never hears of these
	last := book(t, st, request("k", 2, limit), store.BookedAll)
	old.kill()

	healed(t, now, limit, first, last)
}

// replicated waits until a replica of s says that it has all that s has now. (WAIT speaks only of
// what its own connection wrote.)
func replicated(t *testing.T, s *server) {
	t.Helper()
	all := s.stat(t, "replication", "master_repl_offset")
	until(t, "a replica has all", func() bool {
		info := s.client(t).Info(t.Context(), "replication").Val()
		_, has, _ := strings.Cut(info, ",state=online,offset=")
		has, _, _ = strings.Cut(has, ",")
		n, err := strconv.ParseFloat(has, 64)
		return err == nil && n >= all
	})
}

// healed says that a server of which 9 of 10 were granted knows 4 of them, and
// that two processes remember 7 and 9: whoever comes first, one is left.
func healed(t *testing.T, st store.Store, limit store.Limit, first, last store.Booked) {
	t.Helper()
	newcomer, knows, knowsAll := request("k", 1, limit), request("k", 1, limit), request("k", 1, limit)
	knows.Draws[0].Seen, knowsAll.Draws[0].Seen = store.Seen{Standing: first.Keys[0]}, store.Seen{Standing: last.Keys[0]}
	wait := book(t, st, newcomer, store.Refused).Wait
	if wait > store.Ahead {
		t.Errorf("a newcomer is to wait %v, want a second at most", wait)
	}
	book(t, st, knows, store.Refused)
	book(t, st, knowsAll, store.Refused)
	time.Sleep(wait) // Redis' own clock, which no test can move
	book(t, st, newcomer, store.BookedAll)
	book(t, st, newcomer, store.Refused)
}

// A state that another run of the server wrote is noticed by the usual booking too, of one
// who remembers just what is there.
func TestAnotherRunsStateIsNoticed(t *testing.T) {
	s := startServer(t)
	st, client := s.store(t), s.client(t)
	l := store.Limit{ID: "m", Kind: store.MeterLimit, Size: 100, Rate: 1}
	b := store.Booking{Draws: []store.Draw{{Key: "k", Limits: []store.Limit{l}, Units: []store.UnitCost{{Unit: "requests", First: 1, All: 1}}}}}
	r, err := st.Book(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	seen := r.Keys[0]
	seen.Gen ^= 1 << 20
	if err := client.HSet(t.Context(), st.name("k"), "g", seen.Gen).Err(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Millisecond) // as it takes at least until another server is asked
	b.Draws[0].Seen = store.Seen{Standing: seen, Age: 5 * time.Millisecond}
	if r, err = st.Book(t.Context(), b); err != nil || r.Outcome != store.Refused {
		t.Errorf("outcome %v, %v, want a refusal until all have said what they remember", r.Outcome, err)
	}
}

// TestRestartFromADump: kill -9, then a server with the data of some time ago.
func TestRestartFromADump(t *testing.T) {
	s := startServer(t)
	st := s.store(t)
	limit := meterLimit(10, 0.001)
	book(t, st, request("k", 4, limit), store.BookedAll)
	if err := s.client(t).Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	first := book(t, st, request("k", 3, limit), store.BookedAll)
	last := book(t, st, request("k", 2, limit), store.BookedAll)
	s.kill()
	s.restart(t)
	healed(t, s.store(t), limit, first, last)
}

// TestKillAndEmptyRestart: kill -9, then a server without data. The first
// process that remembers puts everything back.
func TestKillAndEmptyRestart(t *testing.T) {
	s := startServer(t)
	st := s.store(t)
	limit := meterLimit(10, 0.001)
	last := book(t, st, request("k", 10, limit), store.BookedAll)
	s.kill()
	if _, err := st.Book(t.Context(), request("k", 1, limit)); err == nil || errors.Is(err, store.ErrBusy) {
		t.Errorf("a killed server answered %v, want an error of a store that is gone", err)
	}
	s.restart(t)
	other := s.store(t)
	book(t, other, request("k", 3, limit), store.BookedAll) // remembers nothing
	b := request("k", 1, limit)
	b.Draws[0].Seen = store.Seen{Standing: last.Keys[0]}
	book(t, st, b, store.Refused)
}

// TestServerClockJumps: by the script's clock, of which ten units a hundred seconds
// were spent. A step back gives nothing, and what is dated ends when it would have. A
// step ahead gives what drained, or left the window, that much early: the size at
// most, once.
func TestServerClockJumps(t *testing.T) {
	const size, per = 10, 100 * time.Second
	server := startServer(t)
	for _, kind := range []store.LimitKind{store.MeterLimit, store.LogLimit, store.CalendarLimit} {
		for step, most := range map[time.Duration][3]int{ // by kind
			-time.Hour: {0, 0, 0}, -30 * time.Second: {0, 0, 0}, 30 * time.Second: {3, 0, 0}, time.Hour: {size, size, size},
		} {
			t.Run(fmt.Sprintf("%d %v", kind, step), func(t *testing.T) {
				set := standing(t, server)
				st := set.Stores[0]
				l := store.Limit{ID: "1", Kind: kind, Size: size}
				switch kind {
				case store.MeterLimit:
					l.Rate = size / per.Seconds()
				case store.LogLimit:
					l.Per = per
				case store.CalendarLimit:
					l.Per, l.Ends = per, set.Now()
				}
				more := func() (n int) {
					for book(t, st, request("k", size+1, l), store.Impossible); ; n++ {
						r, err := st.Book(t.Context(), request("k", 1, l))
						if err != nil {
							t.Fatal(err)
						}
						if r.Outcome != store.BookedAll {
							return n
						}
					}
				}
				if n := more(); n != size {
					t.Fatalf("%d units at first, want %d", n, size)
				}
				set.Advance(step)
				if n := more(); n != most[kind-1] {
					t.Errorf("%d units after the step, want %d", n, most[kind-1])
				}
				rest := per
				if kind == store.CalendarLimit && step == -30*time.Second {
					rest -= step // its windows are the clock's own
				}
				set.Advance(rest)
				if n := more(); n != size {
					t.Errorf("%d units after another %v, want %d", n, rest, size)
				}
			})
		}
	}
}

// TestExpiry: a key is gone from Redis when it says nothing any more, and stays
// as long as it does.
func TestExpiry(t *testing.T) {
	s := startServer(t)
	st, c := s.store(t), s.client(t)
	for _, tc := range []struct {
		limit store.Limit
		n     int64
		least time.Duration // of the time to live
	}{
		{meterLimit(10, 1), 5, 5 * time.Second},
		{store.Limit{ID: "w", Kind: store.MeterLimit, Size: 10, Rate: 1.5, Credit: 90}, 9, 66 * time.Second},
		{store.Limit{ID: "l", Kind: store.LogLimit, Size: 10, Per: time.Minute}, 5, time.Minute},
		{store.Limit{ID: "c", Kind: store.CalendarLimit, Size: 10, Per: time.Hour, Ends: time.Now().Add(20 * time.Minute)}, 1, 20*time.Minute - 5*time.Second},
	} {
		book(t, st, request(tc.limit.ID, tc.n, tc.limit), store.BookedAll)
		ttl := c.PTTL(t.Context(), st.name(tc.limit.ID)).Val()
		if ttl < tc.least-10*time.Second || ttl > tc.least+10*time.Second {
			t.Errorf("limit %s: expires after %v, want about %v", tc.limit.ID, ttl, tc.least+time.Second)
		}
	}
	if err := st.Tell(t.Context(), "p", store.News{Pause: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if ttl := c.PTTL(t.Context(), st.name("p")).Val(); ttl < time.Hour || ttl > time.Hour+2*time.Minute {
		t.Errorf("a pause of an hour expires after %v", ttl)
	}
	if err := st.Tell(t.Context(), "p", store.News{Resume: true}); err != nil {
		t.Fatal(err)
	}
	if ttl := c.PTTL(t.Context(), st.name("p")).Val(); ttl < time.Hour {
		t.Errorf("news shortened the time to live to %v", ttl)
	}
}

// TestKeysAreSmall: a key at rest takes no memory, a busy one little.
func TestKeysAreSmall(t *testing.T) {
	s := startServer(t)
	st, c := s.store(t), s.client(t)
	b := request("k", 1, meterLimit(10, 7.0/3), store.Limit{ID: "1h", Kind: store.MeterLimit, Size: 500, Rate: 4500.0 / 3601, Credit: 4500})
	for range 5 {
		if _, err := st.Book(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	n, err := c.MemoryUsage(t.Context(), st.name("k")).Result()
	if err != nil {
		t.Fatal(err)
	}
	if n > 168 {
		t.Errorf("a busy key with two limits takes %d bytes, want at most 168", n)
	}
	t.Logf("%d bytes: %v", n, c.HGetAll(t.Context(), st.name("k")).Val())
	for range 5 {
		book(t, st, request("one", 1, meterLimit(10, 1.0/3)), store.BookedAll)
	}
	if n := c.MemoryUsage(t.Context(), st.name("one")).Val(); n > 128 {
		t.Errorf("a busy key with one limit takes %d bytes, want at most 128", n)
	}
	// An idle key takes nothing: it expires.
	book(t, st, request("idle", 1, meterLimit(1, 1000)), store.BookedAll)
	for range 2000 {
		if c.Exists(t.Context(), st.name("idle")).Val() == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond) // Redis' own clock, which no test can move
	}
	t.Error("an idle key is still there after 20 s")
}

// TestPoolIsExhausted: all of this process's connections in use is busy.
func TestPoolIsExhausted(t *testing.T) {
	s := startServer(t)
	st := s.store(t, func(o *redis.Options) { o.PoolSize, o.PoolTimeout = 1, time.Millisecond })
	c := st.client.(*redis.Client)
	held := c.Conn()
	defer held.Close()
	if err := held.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Book(t.Context(), request("k", 1, meterLimit(1, 1))); !errors.Is(err, store.ErrBusy) {
		t.Errorf("got %v, want ErrBusy", err)
	}
}

func TestNewNamesFaults(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	ring := redis.NewRing(&redis.RingOptions{})
	defer ring.Close()
	good := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true})
	defer good.Close()
	for _, tc := range []struct {
		client redis.UniversalClient
		c      Config
		want   string
	}{
		{nil, Config{}, "client is nil"},
		{client, Config{}, "ContextTimeoutEnabled"},
		{ring, Config{}, "redis.Ring"},
		{good, Config{Prefix: "a{b"}, `Config.Prefix "a{b"`},
	} {
		if _, err := New(tc.client, tc.c); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got %v, want %q", err, tc.want)
		}
	}
	if _, err := New(good, Config{}); err != nil {
		t.Errorf("a server that is down: %v", err)
	}
}

// TestStoreOfAnUnreachableServer says which key and server.
func TestStoreOfAnUnreachableServer(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ContextTimeoutEnabled: true})
	defer client.Close()
	st, err := New(client, Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	for name, err := range map[string]error{
		"Book":   func() error { _, err := st.Book(ctx, request("api", 1, meterLimit(1, 1))); return err }(),
		"Tell":   st.Tell(ctx, "api", store.News{Pause: 1}),
		"Refund": st.Refund(ctx, store.Refund{Key: "api", Gen: 1}),
	} {
		if err == nil || !strings.Contains(err.Error(), `key "api" at 127.0.0.1:1`) {
			t.Errorf("%s: got %v, want the key and the server", name, err)
		}
	}
}

// A key that is always in use keeps no limits that nobody draws on any more.
func TestKeysShrink(t *testing.T) {
	const limits = 200
	set := standing(t, startServer(t))
	c := set.Stores[0].(*Store)
	for i := range limits {
		name := "window" + strconv.Itoa(i)
		for _, l := range []store.Limit{
			{ID: name, Kind: store.MeterLimit, Size: 1, Rate: 1},
			{ID: name, Kind: store.LogLimit, Size: 1, Per: time.Second},
			{ID: name, Kind: store.CalendarLimit, Size: 1, Per: time.Second, Ends: set.Now()},
		} {
			if _, err := c.Book(t.Context(), request("k", 1, l)); err != nil {
				t.Fatal(err)
			}
		}
		set.Advance(time.Second)
	}
	fields, err := c.client.HKeys(t.Context(), c.name("k")).Result()
	if err != nil {
		t.Fatal(err)
	}
	// Those of the last three seconds, and the four of the key itself.
	if most := 3*3 + 4; len(fields) > most {
		t.Errorf("%d fields after %d limits, want at most %d: %v", len(fields), 3*limits, most, fields)
	}
}
