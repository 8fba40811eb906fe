package redisstore

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weirhttp/weir/throttle/store"
)

// behindSentinel is a Store whose client asks a Sentinel, which is told to watch primary,
// where the primary is. more is what else the Sentinel is told.
func behindSentinel(t *testing.T, primary *server, more string) (st *Store, sentinel *server) {
	t.Helper()
	sentinel = sentinelOf(t, primary, more)
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: "quota", SentinelAddrs: []string{sentinel.addr}, ContextTimeoutEnabled: true,
		DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience,
	})
	t.Cleanup(func() { client.Close() })
	st, err := New(client, Config{})
	if err != nil {
		t.Fatal(err)
	}
	return st, sentinel
}

// sentinelOf starts a Sentinel that watches primary. more is what else it is told.
func sentinelOf(t *testing.T, primary *server, more string) *server {
	t.Helper()
	host, port, _ := net.SplitHostPort(primary.addr)
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor quota %s %s 1\n%s", host, port, more)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return startSentinel(t, conf)
}

// TestSentinel: a client that asks a Sentinel where the primary is.
func TestSentinel(t *testing.T) {
	primary := startServer(t)
	st, _ := behindSentinel(t, primary, "")
	book(t, st, request("k", 3, meterLimit(3, 0.001)), store.BookedAll)
	book(t, primary.store(t), request("k", 1, meterLimit(3, 0.001)), store.Refused)
}

// TestSentinelFailsOver: the primary dies, and Sentinel promotes a replica, which may
// not have heard of all that was granted: its connection is cut before the last. The
// client finds it, a newcomer waits, and no more is granted than was left.
func TestSentinelFailsOver(t *testing.T) {
	primary := startServer(t, "--repl-diskless-sync-delay", "0")
	host, port, _ := net.SplitHostPort(primary.addr)
	startServer(t, "--replicaof", host+" "+port)
	st, sentinel := behindSentinel(t, primary, "sentinel down-after-milliseconds quota 500\nsentinel failover-timeout quota 5000\n")
	limit := meterLimit(10, 0.001)
	replicated(t, primary)
	book(t, st, request("k", 4, limit), store.BookedAll)
	replicated(t, primary)
	knowsReplica(t, sentinel)
	if err := primary.client(t).Do(t.Context(), "client", "kill", "type", "replica").Err(); err != nil {
		t.Fatal(err)
	}
	first := book(t, st, request("k", 3, limit), store.BookedAll)
	last := book(t, st, request("k", 2, limit), store.BookedAll)
	primary.kill()
	until(t, "the client finds the new primary", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := st.Book(ctx, request("other", 1, limit))
		return err == nil
	})
	healed(t, st, limit, first, last)
}

// knowsReplica waits until a Sentinel knows the primary's replica.
func knowsReplica(t *testing.T, sentinel *server) {
	t.Helper()
	c := redis.NewSentinelClient(&redis.Options{Addr: sentinel.addr})
	defer c.Close()
	until(t, "Sentinel knows the replica", func() bool {
		rs, err := c.Replicas(t.Context(), "quota").Result()
		return err == nil && len(rs) == 1 && rs[0]["flags"] == "slave"
	})
}

// until waits for other processes, in real time.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}

// TestClusterFailsOver: as behind Sentinel, in a Cluster. The replica of one of its
// nodes takes the node's slots over.
func TestClusterFailsOver(t *testing.T) {
	nodes := startCluster(t)
	st, limit := clusterStore(t, nodes, Config{}), meterLimit(10, 0.001)
	at := func(key string) *server { return nodes[int(slot(st.name(key)))*3/16384] }
	primary, other := at("k"), ""
	for i := 0; other == "" || at(other) != primary; i++ {
		other = fmt.Sprint(i)
	}
	replica := joinCluster(t, nodes, primary)
	book(t, st, request("k", 4, limit), store.BookedAll)
	replicated(t, primary)
	if err := primary.client(t).Do(t.Context(), "client", "kill", "type", "replica").Err(); err != nil {
		t.Fatal(err)
	}
	first := book(t, st, request("k", 3, limit), store.BookedAll)
	last := book(t, st, request("k", 2, limit), store.BookedAll)
	primary.kill()
	if err := replica.client(t).Do(t.Context(), "cluster", "failover", "takeover").Err(); err != nil {
		t.Fatal(err)
	}
	until(t, "the client finds the new primary", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := st.Book(ctx, request(other, 1, limit))
		return err == nil
	})
	healed(t, st, limit, first, last)
}

// joinCluster starts a replica of primary, and returns when it has all and all nodes
// know it.
func joinCluster(t *testing.T, nodes []*server, primary *server) *server {
	t.Helper()
	ctx := t.Context()
	replica := startServer(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "60000", "--repl-diskless-sync-delay", "0")
	c := replica.client(t)
	host, port, _ := net.SplitHostPort(primary.addr)
	if err := c.ClusterMeet(ctx, host, port).Err(); err != nil {
		t.Fatal(err)
	}
	id, err := primary.client(t).Do(ctx, "cluster", "myid").Text()
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the replica knows its primary", func() bool { return c.ClusterReplicate(ctx, id).Err() == nil })
	for _, n := range nodes {
		c := n.client(t)
		until(t, "all know the replica", func() bool {
			return strings.Count(c.ClusterNodes(ctx).Val(), "slave "+id) == 1
		})
	}
	until(t, "the replica has its primary's data", func() bool {
		return strings.Contains(c.Info(ctx, "replication").Val(), "master_link_status:up")
	})
	return replica
}
