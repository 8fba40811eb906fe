package inspect

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/throttle"
)

// watch looks at the transport once for all pages that are open, and notes what has
// changed since its last look. Of a hundred thousand hosts most have not changed, and
// it does not look at them. If very many have changed, it looks at some of them each
// time, in turns.
type watch struct {
	t        *weir.Transport
	outbox   Outbox // nil: there is none
	limiters []limiter

	mu     sync.Mutex
	last   Snapshot
	looks  uint64
	hosts  map[key]*seen // of the transport
	order  []*seen       // the same, by name and partition
	met    []*seen       // the same, in the order in which the transport named them last
	rota   rota          // whose turn it is to be looked at
	before map[key]told  // what events were told of
	untold map[key]bool  // of these, those of which more is to be told
	events []Event       // the newest last; what was handed out is never written again
}

// key names a host or partition.
type key struct{ name, partition string }

func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.name, o.name), cmp.Compare(k.partition, o.partition))
}

func keyOf(h *Host) key { return key{h.Name, h.Partition} }

func newWatch(t *weir.Transport) *watch { return &watch{t: t, hosts: make(map[key]*seen)} }

// look returns what is known, at most half a second old, and the events so far.
// show is a host to look at in any case.
func (w *watch) look(show key) (Snapshot, []Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if s := w.hosts[show]; s != nil {
		s.shown = now
	}
	if w.before == nil || now.Sub(w.last.At) >= time.Second/2 {
		changed := w.refresh(now)
		w.compare(changed)
	}
	return w.last, w.events
}

// showed notes which rows a frame has.
func (w *watch) showed(rows []*Host) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range rows {
		if s := w.hosts[keyOf(h)]; s != nil {
			s.shown = w.last.At
		}
	}
}

// refresh takes a snapshot, and returns the hosts that were looked at for it.
func (w *watch) refresh(now time.Time) (changed []*Host) {
	circuits := worst(w.t.Circuits().Stats().Circuits)
	w.looks++
	known, fresh := 0, false
	w.rota.begin()
	stats := w.t.StatsOf(func(name, partition string, stamp uint64) bool {
		i := known
		s, is := w.meet(i, key{name, partition})
		known, fresh = known+1, fresh || is
		s.look = w.looks
		var c *breaker.CircuitStats
		if len(circuits) > 0 {
			c = circuits[name]
		}
		if now.Sub(s.shown) > freshFor && (s.asItWas(now, stamp, c) || s.canWait(c) && !w.rota.has(i)) {
			return false
		}
		s.stamp, s.at = stamp, now
		return true
	})
	changed = hostsOf(&stats, circuits, now)
	var others []*Host
	for i, h := range changed {
		if stats.Throttle.Hosts[i].Overflow {
			others = append(others, h) // several of one name
			continue
		}
		s := w.hosts[keyOf(h)]
		s.host, s.quiet, s.full = h, h.State == ok && h.Circuit == nil, h.left() >= 1
	}
	w.met = w.met[:known]
	if gone := known < len(w.order); gone || fresh {
		w.arrange()
	}
	w.last = Snapshot{At: now, Bounds: bounds(), Hosts: make([]*Host, 0, len(w.order)+len(others))}
	for _, s := range w.order {
		w.last.Hosts = append(w.last.Hosts, s.host)
	}
	more := append(others, unmet(circuits, func(name string) bool { return w.hosts[key{name, ""}] != nil }, now)...)
	if w.last.Hosts = append(w.last.Hosts, more...); len(more) > 0 {
		slices.SortFunc(w.last.Hosts, byName)
		changed = append(changed, more[len(others):]...)
	}
	for _, l := range w.limiters {
		rows := l.rows()
		w.last.Hosts, changed = append(w.last.Hosts, rows...), append(changed, rows...)
	}
	w.last.Outbox = kept(w.outbox, now)
	return changed
}

// meet returns the i-th host that the transport names, and whether it is new. If no host
// came or went, it is the i-th of the last look. That is tried first, because it takes a
// while to find a hundred thousand hosts by their names.
func (w *watch) meet(i int, k key) (s *seen, fresh bool) {
	if i < len(w.met) && w.met[i].key == k {
		return w.met[i], false
	}
	if s = w.hosts[k]; s == nil {
		s, fresh = &seen{key: k}, true
		w.hosts[k] = s
		w.order = append(w.order, s)
	}
	if i < len(w.met) {
		w.met[i] = s
	} else {
		w.met = append(w.met, s)
	}
	return s, fresh
}

// arrange drops the hosts that are gone and puts the others in order.
func (w *watch) arrange() {
	w.order = slices.DeleteFunc(w.order, func(s *seen) bool { return s.look != w.looks || s.host == nil })
	slices.SortFunc(w.order, func(a, b *seen) int { return byName(a.host, b.host) })
	if len(w.order) < len(w.hosts) {
		for k, s := range w.hosts {
			if s.look != w.looks || s.host == nil {
				delete(w.hosts, k)
				delete(w.before, k)
			}
		}
	}
}

// atOnce is how many hosts of the transport stats.json looks at before it sends them.
// Their copies take some 36 MB. If it were less, the hosts would be walked through more
// often.
const atOnce = 10000

// all calls yield for all hosts in turn, in the order of a Snapshot, until it returns
// false. It looks at so many of the transport's at once.
func (w *watch) all(now time.Time, atOnce int, yield func(h *Host) bool) {
	circuits := worst(w.t.Circuits().Stats().Circuits)
	var keys []key
	met := make(map[string]bool, len(circuits))
	stats := w.t.StatsOf(func(name, partition string, _ uint64) bool {
		if keys = append(keys, key{name, partition}); circuits[name] != nil {
			met[name] = true
		}
		return false
	})
	more := append(hostsOf(&stats, circuits, now), unmet(circuits, func(name string) bool { return met[name] }, now)...) // of all that share a record, and of none
	slices.SortFunc(keys, key.compare)
	var from key // of the part that is looked at next
	for last := false; !last; {
		last = len(keys) <= atOnce
		var end key
		if !last {
			keys = keys[atOnce:]
			end = keys[0]
		}
		in := func(k key) bool { return k.compare(from) >= 0 && (last || k.compare(end) < 0) }
		stats := w.t.StatsOf(func(name, partition string, _ uint64) bool { return in(key{name, partition}) })
		stats.Throttle.Hosts = slices.DeleteFunc(stats.Throttle.Hosts, func(h throttle.HostStats) bool { return h.Overflow })
		list := hostsOf(&stats, circuits, now)
		for _, h := range more {
			if in(keyOf(h)) {
				list = append(list, h)
			}
		}
		slices.SortFunc(list, byName)
		if !each(list, yield) {
			return
		}
		from = end
	}
	for _, l := range w.limiters {
		if !each(l.rows(), yield) {
			return
		}
	}
}

// each calls yield until it returns false, and reports whether it never did.
func each(list []*Host, yield func(h *Host) bool) bool {
	for _, h := range list {
		if !yield(h) {
			return false
		}
	}
	return true
}
