package breaker

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
)

// maxShards bounds the circuits of one host.
const maxShards = 256

// record is what a host's record holds for one Circuits: the host's circuits
// by shard. It is made at the host's first failure.
type record struct {
	of   *Circuits
	host string

	sole atomic.Pointer[circuit] // the host's own, found without a lock

	mu       sync.Mutex
	circuits map[string]*circuit // by shard; "" without Config.Shard
	floor    uint64              // newest epoch of a circuit that was dropped
}

// record returns what a host's record holds for c, or nil.
func (c *Circuits) record(h *hosts.Host) *record {
	r, _ := h.Occupant(hosts.Breaker).(*record)
	if r == nil || r.of != c {
		return nil
	}
	return r
}

// find returns the circuit for a request, nil if there is none. If create
// is set there is one afterwards, unless there is no room: requests that have
// no circuit pass and are not judged, for a circuit shared by strangers would
// open for what others did.
func (c *Circuits) find(e *hosts.Entry, s *settings, r *http.Request, create bool) *circuit {
	if e.Overflow {
		return nil
	}
	rec := c.record(&e.Value)
	if rec == nil {
		if !create {
			return nil
		}
		fresh := &record{of: c, host: e.Key, circuits: map[string]*circuit{}}
		if rec, _ = e.Value.Occupy(hosts.Breaker, fresh).(*record); rec == nil || rec.of != c {
			return nil // another set of circuits was first; the next request moves house
		}
	}
	shard := ""
	if s.Shard != nil {
		shard = s.Shard(r)
	} else if sole := rec.sole.Load(); sole != nil && sole.cfg == s {
		return sole
	}
	cir, old := rec.circuit(s, shard, create)
	if old != nil {
		old.announce()
	}
	return cir
}

// circuit returns a shard's circuit, nil if there is none, and the one with other
// settings that was dropped, which is to be announced.
func (r *record) circuit(s *settings, shard string, create bool) (c, old *circuit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c = r.circuits[shard]
	if c != nil && c.cfg == s {
		return c, nil
	}
	if old = c; old != nil {
		r.drop(shard, old, renewed)
	}
	if !create || len(r.circuits) >= maxShards && !r.room() {
		return nil, old
	}
	if s.Shard != nil {
		c = newCircuit(r.of, s, r.host, r.of.mac(shard), r.floor)
	} else {
		c = newCircuit(r.of, s, r.host, "", r.floor)
		r.sole.Store(c)
	}
	r.circuits[shard] = c
	return c, old
}

// renew drops the circuits whose settings are not s, and returns them, to be
// announced.
func (r *record) renew(s *settings) (old []*circuit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for shard, c := range r.circuits {
		if c.cfg != s {
			r.drop(shard, c, renewed)
			old = append(old, c)
		}
	}
	return old
}

// room drops one circuit that is idle.
func (r *record) room() bool {
	now := time.Now()
	for shard, c := range r.circuits {
		if c.idle(now) {
			r.drop(shard, c, "")
			return true
		}
	}
	return false
}

// renewed is the reason of a change that other settings make.
const renewed = "new settings"

func (r *record) drop(shard string, c *circuit, reason string) {
	r.sole.CompareAndSwap(c, nil)
	r.floor = max(r.floor, c.retire(reason))
	delete(r.circuits, shard)
}

// all returns the circuits of the host.
func (r *record) all() []*circuit {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*circuit, 0, len(r.circuits))
	for _, c := range r.circuits {
		list = append(list, c)
	}
	return list
}

// Idle reports that forgetting the circuits changes nothing.
func (r *record) Idle(now time.Time) bool {
	if !r.mu.TryLock() {
		return false
	}
	defer r.mu.Unlock()
	for _, c := range r.circuits {
		if !c.idle(now) {
			return false
		}
	}
	return true
}

// reset drops all circuits of a host, and tells the hook of the change.
func (c *Circuits) reset(key string, from, to State, reason string) {
	if home := c.home.Load(); home != nil {
		if e := home.Find(key); e != nil {
			if r := c.record(&e.Value); r != nil {
				r.mu.Lock()
				for shard, cir := range r.circuits {
					r.drop(shard, cir, "") // told below, for all
				}
				r.mu.Unlock()
			}
			e.Release()
		}
	}
	if hook := c.settings(key).OnStateChange; hook != nil && from != to {
		hook(Change{Ctx: context.Background(), Host: key, From: from, To: to, Reason: reason, At: time.Now()})
	}
}
