//go:build unix

package redisstore

import (
	"net"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
)

// A pair is a primary and its replica, and how processes find the one that is primary.
type pair struct {
	primary, replica *server
	job              job
	promote          func(t *testing.T) // the primary is dead
}

// pairByHand stands behind an address that somebody lets lead to the replica.
func pairByHand(t *testing.T, _ string) pair {
	p := startPair(t)
	proxy, _ := proxied(t, p.primary)
	p.job.Redis = proxy.Listen
	p.promote = func(t *testing.T) {
		if err := p.replica.client(t).Do(t.Context(), "replicaof", "no", "one").Err(); err != nil {
			t.Fatal(err)
		}
		if err := proxy.Update(&toxiproxy.Proxy{Listen: proxy.Listen, Upstream: p.replica.addr, Enabled: true}); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// pairOfSentinel is watched by a Sentinel, which promotes a replica that has heard nothing
// for less than ten times as long as the primary.
func pairOfSentinel(t *testing.T, _ string) pair {
	p := startPair(t)
	sentinel := sentinelOf(t, p.primary, "sentinel down-after-milliseconds quota 3000\nsentinel failover-timeout quota 5000\n")
	knowsReplica(t, sentinel)
	p.job.Redis, p.job.Sentinel = sentinel.addr, true
	p.promote = func(*testing.T) {}
	return p
}

// pairOfCluster is a node of a Cluster that keeps key.
func pairOfCluster(t *testing.T, key string) (p pair) {
	nodes := startCluster(t)
	i := int(slot(clusterStore(t, nodes, Config{}).name(key))) * 3 / 16384
	p.primary = nodes[i]
	p.replica = joinCluster(t, nodes, p.primary)
	p.job.Redis, p.job.Cluster = nodes[(i+1)%3].addr, true
	p.promote = func(t *testing.T) {
		if err := p.replica.client(t).Do(t.Context(), "cluster", "failover", "takeover").Err(); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func startPair(t *testing.T) (p pair) {
	t.Helper()
	p.primary = startServer(t, "--repl-diskless-sync-delay", "0")
	host, port, _ := net.SplitHostPort(p.primary.addr)
	p.replica = startServer(t, "--replicaof", host+" "+port)
	replicated(t, p.primary)
	return p
}

// separate lets the replica hear nothing more of the primary: it cannot log in there.
func (p pair) separate(t *testing.T) {
	t.Helper()
	replicated(t, p.primary)
	replica := p.replica.client(t)
	if err := replica.ConfigSet(t.Context(), "masterauth", "wrong").Err(); err != nil {
		t.Fatal(err)
	}
	if err := p.primary.client(t).Do(t.Context(), "client", "kill", "type", "replica").Err(); err != nil {
		t.Fatal(err)
	}
	until(t, "the replica has lost its primary", func() bool {
		return strings.Contains(replica.Info(t.Context(), "replication").Val(), "master_link_status:down")
	})
}

// TestStaleReplicaTakesOverUnderProcesses: a bucket is spent by processes when the primary dies,
// whose replica has heard nothing of the last five seconds. They put back what they
// remember. One that comes new gets nothing that was spent.
func TestStaleReplicaTakesOverUnderProcesses(t *testing.T) {
	const members, callers, bucket, rate = 4, 2, 100, 10
	for name, start := range map[string]func(t *testing.T, key string) pair{
		"by hand": pairByHand, "by Sentinel": pairOfSentinel, "in a Cluster": pairOfCluster,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for its rate most of the time
			a := startAPI(t)
			p := start(t, a.host)
			p.job.Members, p.job.Callers, p.job.Deadline = members+1, callers, time.Second
			p.job.Budgets = map[string]string{a.host: "10/s bucket 100"}
			ws := processes(t, members, p.job)
			a.await(t, bucket+rate/2)
			p.separate(t)
			a.await(t, 5*rate) // the replica does not know of these
			p.primary.kill()
			p.promote(t)
			ws = append(ws, processes(t, 1, p.job)...)
			until(t, "the replica is asked", func() bool { return calls(t, []*server{p.replica}) > 0 })
			a.await(t, 5*rate)
			if d := end(t, ws); d.Failed > 0 {
				t.Errorf("%d requests failed", d.Failed)
			}
			a.judgeBucket(t, bucket, rate, len(ws), callers)
		})
	}
}
