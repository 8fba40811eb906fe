package inspect

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/throttle"
)

const (
	keepEvents = 5000 // of the past, in all
	showEvents = 200  // of these, in one frame

	// sumOver is for how long counts are added up before they are told
	// again, so that a host with much to tell does not fill the page.
	sumOver = 10 * time.Second
)

// Event is something that changed between two looks, in words.
type Event struct {
	At        time.Time `json:"at"`
	Host      string    `json:"host"`
	Partition string    `json:"partition,omitempty"`
	Text      string    `json:"text"`
}

// watch looks at the transport for those who look at the page, once for all of
// them, and notes what has changed since. Of a hundred thousand hosts most have
// not: those are not looked at. If very many have, each has its turn.
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

// seen is a host as it was when it was last looked at.
type seen struct {
	key
	host  *Host // never written to
	quiet bool  // host is ok, and no circuit says anything of it
	full  bool  // time alone changes nothing of it: all its limits are whole
	stamp uint64
	look  uint64    // the last in which it was there
	at    time.Time // when it was looked at
	shown time.Time // when it last stood in a frame
}

const (
	// freshFor is how long a host is looked at each time that stood in a frame:
	// the page shows it next time, too.
	freshFor = 3 * time.Second
	// staleAfter is when one is looked at at which nothing happened, since what is
	// left of its budgets has grown: a sixtieth of them a second.
	staleAfter = time.Minute
	// mostLooks is how many hosts that can wait are looked at at a time. It bounds the
	// cost of a look. If a hundred thousand hosts are all busy, each is looked at once in
	// 50 looks, which a page makes in less than staleAfter; with half as many it would
	// take longer than that.
	mostLooks = 2000
)

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

// asItWas reports whether there is nothing to see at s that was not there last time.
// c is its circuit.
func (s *seen) asItWas(now time.Time, stamp uint64, c *breaker.CircuitStats) bool {
	return s.quiet && s.stamp == stamp && c == nil && (s.full || now.Sub(s.at) < staleAfter)
}

// canWait reports whether s need not be looked at before its turn: it is known, and c,
// its circuit, has neither opened nor closed since.
func (s *seen) canWait(c *breaker.CircuitStats) bool {
	if s.host == nil {
		return false
	}
	shut := s.host.Circuit != nil && s.host.Circuit.State != breaker.Closed.String()
	return shut == (c != nil && c.State != breaker.Closed)
}

// rota says whose turn it is among more hosts than are looked at at a time. They are
// numbered as the transport names them.
type rota struct {
	from   int // the first whose turn it is
	next   int // the first that was left out; 0: none
	looked int
}

// begin begins a look where the one before had to end.
func (r *rota) begin() { *r = rota{from: r.next} }

// has reports whether it is the turn of host i, which is looked at then.
func (r *rota) has(i int) bool {
	switch {
	case i < r.from:
		return false
	case r.looked < mostLooks:
		r.looked++
		return true
	case r.next == 0:
		r.next = i
	}
	return false
}

// meet returns the i-th host that the transport names, and whether it is new. As long
// as none comes or goes it is the i-th of the look before: to find a hundred thousand
// by their names takes a while.
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
// Their copies take some 36 MB; with fewer, all hosts are passed by more often.
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

// told is a host as it was at the last look, and as it was when its counts
// were told.
type told struct {
	host, told *Host
	at         time.Time // when they were told; zero: never
}

// compare notes what has changed since the last look, at the hosts that were looked
// at and those of which not all was told.
func (w *watch) compare(changed []*Host) {
	if w.before == nil { // the first look knows no changes
		w.before, w.untold = make(map[key]told, len(changed)), make(map[key]bool)
		for _, h := range changed {
			w.before[keyOf(h)] = told{host: h, told: h}
		}
		return
	}
	if len(changed) <= keepEvents { // of more not all would be told
		slices.SortStableFunc(changed, byName)
	}
	for _, h := range changed {
		delete(w.untold, keyOf(h))
		w.tell(h)
	}
	for _, k := range slices.Collect(maps.Keys(w.untold)) {
		delete(w.untold, k)
		if old, known := w.before[k]; known {
			w.tell(old.host)
		}
	}
	if len(w.before) > 2*(len(w.hosts)+len(changed))+100 { // keys of limiters that are not shown any more
		now := make(map[key]bool, len(changed))
		for _, h := range changed {
			now[keyOf(h)] = true
		}
		maps.DeleteFunc(w.before, func(k key, _ told) bool { return w.hosts[k] == nil && !now[k] })
	}
}

// tell notes what has changed at h.
func (w *watch) tell(h *Host) {
	old, known := w.before[keyOf(h)]
	switch {
	case !known && h.Limiter != "": // it may have been there, and not been shown
		w.before[keyOf(h)] = told{host: h, told: h}
		return
	case !known:
		w.note(h, "first seen")
		none := &Host{State: ok}
		old = told{host: none, told: none}
	}
	if text := turn(old.host, h); text != "" {
		w.note(h, text)
	}
	if w.last.At.Sub(old.at) >= sumOver {
		texts := counted(old.told, h)
		for _, text := range texts {
			w.note(h, text)
		}
		if old.told = h; len(texts) > 0 {
			old.at = w.last.At
		}
	} else {
		w.untold[keyOf(h)] = true
	}
	old.host = h
	w.before[keyOf(h)] = old
}

// note keeps the newest events.
func (w *watch) note(h *Host, text string) {
	if len(w.events) >= 2*keepEvents {
		w.events = slices.Clone(w.events[len(w.events)-keepEvents:])
	}
	w.events = append(w.events, Event{w.last.At, h.Name, h.Partition, text})
}

// newest returns the last events of a host or partition, or of all if host is
// "", the newest first.
func newest(events []Event, host, partition string) []Event {
	found := []Event{}
	for _, e := range slices.Backward(events[max(0, len(events)-keepEvents):]) {
		if len(found) == showEvents {
			break
		}
		if host == "" || e.Host == host && e.Partition == partition {
			found = append(found, e)
		}
	}
	return found
}

// turn says in words how the state of a host has changed; "" if it has not.
func turn(old, h *Host) string {
	switch {
	case old.State != h.State:
		return h.State + ", was " + old.State + h.reason()
	case len(old.Why) == 0 && len(h.Why) > 0:
		return h.Why[0].String()
	}
	return ""
}

// String is w in words, but for how long it lasts.
func (w Hold) String() string {
	if w.Route != "" {
		return w.Route + ": " + w.Text
	}
	return w.Text
}

// reason is what holds requests up, after a colon; "" if nothing does.
func (h *Host) reason() string {
	if len(h.Why) == 0 {
		return ""
	}
	return ": " + h.Why[0].String()
}

// counted says in words what was counted between two looks.
func counted(old, h *Host) []string {
	var texts []string
	say := func(format string, args ...any) { texts = append(texts, fmt.Sprintf(format, args...)) }
	if n := h.Refused - old.Refused; n > 0 {
		say("%d turned away%s", n, h.reason())
	}
	if h.Circuit != nil {
		if n := h.Circuit.Refused - old.turnedAway(); n > 0 {
			say("%d turned away by the circuit", n)
		}
	}
	if n := h.Cancelled - old.Cancelled; n > 0 {
		say("%d gave up waiting", n)
	}
	for _, reason := range slices.Sorted(maps.Keys(h.Retries)) {
		if n := h.Retries[reason] - old.Retries[reason]; n > 0 {
			say("%d tried again, because: %s", n, reason)
		}
	}
	return texts
}

// turnedAway is how many requests the circuit refused.
func (h *Host) turnedAway() uint64 {
	if h.Circuit == nil {
		return 0
	}
	return h.Circuit.Refused
}
