package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirhttp/weir/throttle/store"
)

// startCluster starts a cluster of three nodes that hold a third of the slots
// each.
func startCluster(t *testing.T) []*server {
	t.Helper()
	ctx := t.Context()
	var nodes []*server
	for range 3 {
		nodes = append(nodes, startServer(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "60000"))
	}
	for i, n := range nodes {
		c := n.client(t)
		if err := c.Do(ctx, "cluster", "addslotsrange", i*16384/3, (i+1)*16384/3-1).Err(); err != nil {
			t.Fatal(err)
		}
		if err := c.Do(ctx, "cluster", "set-config-epoch", i+1).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range nodes[1:] {
		host, port, _ := net.SplitHostPort(n.addr)
		if err := nodes[0].client(t).ClusterMeet(ctx, host, port).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for range 6000 {
		ok := 0
		for _, n := range nodes {
			info := n.client(t).ClusterInfo(ctx).Val()
			if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3") {
				ok++
			}
		}
		if ok == len(nodes) {
			return nodes
		}
		time.Sleep(10 * time.Millisecond) // of nodes that meet, not of what is tested
	}
	t.Fatal("the nodes do not make a cluster")
	return nil
}

func clusterStore(t *testing.T, nodes []*server, c Config) *Store {
	t.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: []string{nodes[0].addr, nodes[1].addr}, ContextTimeoutEnabled: true,
		DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience,
		ClusterStateReloadInterval: time.Hour, // of its own accord: when a node is gone we tell it
	})
	t.Cleanup(func() { client.Close() })
	st, err := New(client, c)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func TestSlots(t *testing.T) {
	for key, want := range map[string]uint16{ // as CLUSTER KEYSLOT says
		"foo": 12182, "weir1:{foo}": 12182, "weir1:{foo}bar": 12182, "123456789": 12739, "": 0,
	} {
		if got := slot(key); got != want {
			t.Errorf("slot of %q is %d, want %d", key, got, want)
		}
	}
}

func TestCluster(t *testing.T) {
	nodes := startCluster(t)
	st, other := clusterStore(t, nodes, Config{}), clusterStore(t, nodes, Config{})
	for _, key := range []string{"foo", "bar", "{a}b", "a b\x00c", ""} { // our slots are the server's
		got := slot(st.name(key))
		if want := nodes[0].client(t).ClusterKeySlot(t.Context(), st.name(key)).Val(); int64(got) != want {
			t.Errorf("slot of %q is %d, the server says %d", st.name(key), got, want)
		}
	}
	t.Run("one key", func(t *testing.T) {
		for i := range 30 {
			key := fmt.Sprint("key", i)
			book(t, st, request(key, 1, meterLimit(1, 0.001)), store.BookedAll)
			book(t, other, request(key, 1, meterLimit(1, 0.001)), store.Refused)
		}
	})
	t.Run("keys in different slots", func(t *testing.T) { crossSlots(t, st, other) })
	t.Run("keys of one tag", func(t *testing.T) {
		tagged := clusterStore(t, nodes, Config{Prefix: "tagged", Tag: func(string) string { return "api" }})
		b := request("wide", 1, meterLimit(10, 0.001))
		b.Draws = append(b.Draws, request("narrow", 1, meterLimit(1, 0.001)).Draws...)
		book(t, tagged, b, store.BookedAll)
		before := calls(t, nodes)
		book(t, tagged, b, store.Refused)
		if n := calls(t, nodes) - before; n != 1 {
			t.Errorf("a booking on two keys of one slot took %v calls, want 1", n)
		}
		book(t, tagged, request("wide", 9, meterLimit(10, 0.001)), store.BookedAll)
	})
	t.Run("races", func(t *testing.T) {
		b := request("race a", 1, meterLimit(30, 0.0001))
		b.Draws = append(b.Draws, request("race b", 1, meterLimit(20, 0.0001)).Draws...)
		var granted atomic.Int64
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for range 10 {
					r, err := []*Store{st, other}[i%2].Book(context.Background(), b)
					if err != nil {
						t.Error(err)
						return
					}
					if r.Outcome == store.BookedOne {
						granted.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if n := granted.Load(); n != 20 {
			t.Errorf("%d of 80 racing bookings were granted, want 20", n)
		}
		book(t, st, request("race a", 10, meterLimit(30, 0.0001)), store.BookedAll) // refunds came
	})
}

// crossSlots holds that a booking on keys in three slots is charged to all or
// to none, and that nothing is refunded that was not booked.
func crossSlots(t *testing.T, st, other *Store) {
	b := request("x wide", 1, meterLimit(10, 0.001))
	b.Draws = append(b.Draws, request("x middle", 2, meterLimit(20, 0.001)).Draws...)
	b.Draws = append(b.Draws, request("x narrow", 1, meterLimit(2, 0.001)).Draws...)
	if len(st.groups(b)) != 3 {
		t.Fatal("the keys are not in three slots")
	}
	book(t, st, b, store.BookedOne)
	book(t, other, b, store.BookedOne)
	for range 5 {
		r := book(t, st, b, store.Refused)
		if r.Draw != 2 || r.Limit != 0 || r.Wait < 900*time.Second {
			t.Errorf("the wait of %v is laid to draw %d, limit %d, want 2, 0", r.Wait, r.Draw, r.Limit)
		}
	}
	book(t, st, request("x wide", 8, meterLimit(10, 0.001)), store.BookedAll)
	book(t, st, request("x wide", 1, meterLimit(10, 0.001)), store.Refused)
	book(t, st, request("x middle", 16, meterLimit(20, 0.001)), store.BookedAll)
	book(t, st, request("x middle", 1, meterLimit(20, 0.001)), store.Refused)
}

func calls(t *testing.T, nodes []*server) (n float64) {
	t.Helper()
	for _, s := range nodes {
		info := s.client(t).Info(t.Context(), "commandstats").Val()
		if strings.Contains(info, "cmdstat_evalsha:") {
			n += s.stat(t, "commandstats", "cmdstat_evalsha:calls")
		}
	}
	return n
}

// TestClusterNodeIsGone: keys of the other nodes go on; the lost node's are an
// error of a store that is gone.
func TestClusterNodeIsGone(t *testing.T) {
	nodes := startCluster(t)
	st := clusterStore(t, nodes, Config{})
	where := make(map[int]string) // a key on each node
	for i := 0; len(where) < 3; i++ {
		key := fmt.Sprint(i)
		where[int(slot(st.name(key)))*3/16384] = key
		book(t, st, request(key, 1, meterLimit(5, 0.001)), store.BookedAll)
	}
	nodes[2].kill()
	book(t, st, request(where[0], 1, meterLimit(5, 0.001)), store.BookedAll)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := st.Book(ctx, request(where[2], 1, meterLimit(5, 0.001))); err == nil || isBusy(err) {
		t.Errorf("the lost node's key: got %v, want an error of a store that is gone", err)
	}
}

// hung answers the first booking, and then nothing until a call's context ends.
type hung struct{ calls int }

func (h *hung) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *hung) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *hung) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.calls++; h.calls == 1 {
			cmd.(interface{ SetVal(any) }).SetVal([]any{int64(store.BookedOne), int64(0), int64(1), int64(-1), int64(-1), "1", "1", "0", "1"})
			return nil
		}
		select {
		case <-ctx.Done():
			cmd.SetErr(ctx.Err())
		case <-time.After(time.Hour):
		}
		return cmd.Err()
	}
}

// TestClusterHangs: giving back what one slot booked, because another does not
// answer, takes no longer than the call was allowed to.
func TestClusterHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{"127.0.0.1:1"}, ContextTimeoutEnabled: true,
			ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) { return nil, errors.New("nobody there") },
		})
		defer client.Close()
		h := new(hung)
		client.AddHook(h)
		st, err := New(client, Config{})
		if err != nil {
			t.Fatal(err)
		}
		b := request("foo", 1, meterLimit(5, 1))
		b.Draws = append(b.Draws, request("bar", 1, meterLimit(5, 1)).Draws...)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		begin := time.Now()
		if _, err := st.Book(ctx, b); err == nil {
			t.Error("booked on a slot that does not answer")
		}
		if took := time.Since(begin); h.calls != 3 || took > 100*time.Millisecond {
			t.Errorf("%d calls took %v, want 3 in 100 ms", h.calls, took)
		}
	})
}
