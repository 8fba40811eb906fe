// Package table keeps a bounded number of entries by key. An entry is dropped
// only to make room, only when nobody holds it, and only when the table's owner
// says that its value is idle, which means that nothing is lost. If no entry can be
// dropped, new keys share one more entry, the overflow.
// There is no background goroutine and no timer.
//
// Idle entries are found by a hand that goes round a ring of all entries and spares
// those that were used since it last passed (the clock algorithm). To look at an entry
// in this way is called a look.
package table

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lookAt is how many looks each insertion adds to those it may use, which makes
	// eviction O(1) whatever the size of the table. What it does not use is left to
	// later insertions, which may need more where many entries in a row are busy.
	// mostLooks is the most that are saved, and so bounds the time of one insertion.
	lookAt    = 16
	mostLooks = 1024
	// shardFrom is the capacity from which a table is split into shards, each with a
	// lock of its own, so that insertions seldom wait for one another. The bound on the
	// number of entries is one for all shards. Below it, shards would be small: one may
	// then have only busy entries while another has idle ones.
	shardFrom = 4096
	shards    = 16 // a power of two, as a hash chooses one by its lowest bits
	// strangers is how many bits remember which keys drew on the overflow: 8 KiB. Two
	// keys may have the same bit; the second one then uses the overflow without need.
	strangers = 1 << 16
	// dead is the number of holders of an entry that was dropped. It is so far below
	// zero that no number of goroutines that try to hold the entry make it positive.
	dead = -1 << 30
	// apart is how far the first numbers of entries are from one another that are made
	// one after the other, see Uses: 2^32 by the golden ratio, so that no small number of
	// steps leads from one to another.
	apart = 2654435769
)

// Table is a bounded map. Create it with New. It is safe for concurrent use.
type Table[V any] struct {
	fresh    func(key string) V
	idle     func(v *V, now time.Time) bool
	seed     maphash.Seed
	size     int64        // most entries
	entries  atomic.Int64 // the number of entries in all shards
	shards   []shard[V]
	near     [8]atomic.Pointer[near[V]] // by the length of the key
	overflow Entry[V]
	met      [strangers / 64]atomic.Uint64 // hashes of keys sent to overflow since it was last idle
	met1     atomic.Bool                   // any bit of met is set
}

// Entry is one key's place. Whoever holds one calls Release when done with it.
type Entry[V any] struct {
	Key      string        // "" of the overflow
	refs     atomic.Int32  // holders, or about dead. It and marks are beside Key, as a search needs all of them
	marks    atomic.Uint32 // touched, used
	uses     atomic.Uint32 // see Uses
	Overflow bool          // shared by all keys for which there is no room
	Value    V             // what fresh returned; it synchronizes itself
}

// The bits of marks.
const (
	touched = 1 << iota // acquired again since the hand passed
	used                // acquired since Uses was called
)

type shard[V any] struct {
	index atomic.Pointer[index[V]] // changed under mu only
	mu    sync.Mutex
	top   int      // places of index from this one on were never used
	free  []uint32 // places before top of entries that were dropped
	hand  int      // the place that is looked at next to find an entry to drop
	looks int      // that insertions have left
	made  uint32   // see Acquire
	_     [64]byte // neighbours do not share a cache line
}

// New returns a table of at most size entries, beyond which newcomers share
// one more, the overflow. fresh makes the value of a new key; nil: it is zero.
// idle reports that a value holds nothing worth keeping. Both are called under a
// lock and must not call back.
func New[V any](size int, fresh func(key string) V, idle func(v *V, now time.Time) bool) *Table[V] {
	t := &Table[V]{fresh: fresh, idle: idle, seed: maphash.MakeSeed()}
	t.Resize(size)
	t.overflow.Overflow = true
	if fresh != nil {
		t.overflow.Value = fresh("")
	}
	return t
}

// Resize changes the bound of a table. Entries above a lower bound are not dropped at
// once, but there is room for new keys only when enough were dropped. It must not be
// called at the same time as any other method.
func (t *Table[V]) Resize(size int) {
	n := 1
	if size >= shardFrom {
		n = shards
	}
	if len(t.shards) != n && t.Len() == 0 {
		t.shards = make([]shard[V], n)
	}
	t.size = int64(max(1, size))
}

// Acquire returns the entry of key, and makes it if there is none. The entry stays in
// the table until it is released. If the table is full and nothing can be dropped, it is
// the overflow. now is for idle; if it is zero, the clock is read when it is needed.
func (t *Table[V]) Acquire(key string, now time.Time) *Entry[V] {
	h := t.hash(key)
	if e := t.shardOf(h).index.Load().find(h, key); e != nil && e.Hold() {
		return e
	}
	return t.AcquireNew(key, h, now)
}

// AcquireNew is Acquire for a key that Search has just not found, and returned this hash of.
func (t *Table[V]) AcquireNew(key string, h uint64, now time.Time) *Entry[V] {
	s := t.shardOf(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.index.Load().find(h, key)
	if e != nil {
		e.Hold()
		return e
	}
	if t.met1.Load() && t.stranger(h, now) || !t.room(h, now) {
		t.meet(h)
		t.overflow.refs.Add(1)
		return &t.overflow
	}
	e = &Entry[V]{Key: key}
	if t.fresh != nil {
		e.Value = t.fresh(key)
	}
	e.refs.Store(1)
	e.marks.Store(used)
	s.made += apart
	e.uses.Store(s.made) // not what it was of an entry of that key that was dropped
	t.insert(s, h, e)
	return e
}

func (t *Table[V]) hash(key string) uint64 { return maphash.String(t.seed, key) }

func (t *Table[V]) shardOf(h uint64) *shard[V] { return &t.shards[h&uint64(len(t.shards)-1)] }

// Visit reports whether e, which the caller does not hold, is still in its table. The
// caller has a lock that the table's idle function needs for e. So e is not dropped
// before the caller unlocks it, nor afterwards as long as e is not idle.
func (e *Entry[V]) Visit() bool {
	e.mark()
	return !e.dropped()
}

// mark notes that e is used. It does not write if that is noted already, as writing would
// slow other processors that read e.
func (e *Entry[V]) mark() {
	if e.marks.Load() != touched|used {
		e.marks.Store(touched | used)
	}
}

// Uses returns a number that changes when e is acquired or visited: if it is the same as
// at the last call, e was not used in between. held says that somebody holds e, who may
// use it without a change of the number. A use at the time of the call may show only at
// the next call.
func (e *Entry[V]) Uses() (n uint32, held bool) {
	if e.marks.Load()&used != 0 {
		e.marks.And(^uint32(used))
		e.uses.Add(1)
	}
	return e.uses.Load(), e.refs.Load() != 0
}

// Holders is how many hold e now.
func (e *Entry[V]) Holders() int { return int(e.refs.Load()) }

// dropped reports that e is in its table no more.
func (e *Entry[V]) dropped() bool { return e.refs.Load() < dead/2 }

// Hold reports whether e is still in its table, and if so counts one more holder.
func (e *Entry[V]) Hold() bool {
	if e.refs.Add(1) <= 0 {
		e.refs.Add(-1)
		return false
	}
	e.mark()
	return true
}

// Find returns the entry of key without making one; nil if there is none.
// The caller releases what it finds. That does not count for Uses.
func (t *Table[V]) Find(key string) *Entry[V] {
	h := t.hash(key)
	s := t.shardOf(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.index.Load().find(h, key)
	if e != nil {
		e.refs.Add(1)
	}
	return e
}

// Release ends what Acquire, Seen, Find or Hold began. It is called once for each of them.
func (e *Entry[V]) Release() { e.refs.Add(-1) }

// Len is the number of entries, the overflow not counted.
func (t *Table[V]) Len() int { return int(t.entries.Load()) }

// Overflow is the entry that all keys share for which there is no room.
func (t *Table[V]) Overflow() *Entry[V] { return &t.overflow }

// All calls f for each entry, the overflow last. It holds the entry but no lock during f.
// It does not count for Uses.
func (t *Table[V]) All(f func(e *Entry[V])) { t.each(true, f) }

// Each is All without holding the entries. It writes nothing, which is quicker for many
// entries, but an entry may be dropped while f looks at it.
func (t *Table[V]) Each(f func(e *Entry[V])) { t.each(false, f) }

func (t *Table[V]) each(hold bool, f func(e *Entry[V])) {
	var list []*Entry[V]
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		list = list[:0]
		for p := range s.top {
			if e := s.index.Load().places[p].Load(); e != nil {
				list = append(list, e)
			}
		}
		for i := 0; hold && i < len(list); i++ {
			list[i].refs.Add(1)
		}
		s.mu.Unlock()
		for _, e := range list {
			if !hold && e.dropped() {
				continue
			}
			if f(e); hold {
				e.Release()
			}
		}
	}
	f(&t.overflow)
}

// room counts one more entry and reports whether it fits. If the table is full it
// drops an idle entry: of the shard of h, which is locked, or else of another.
func (t *Table[V]) room(h uint64, now time.Time) bool {
	s := t.shardOf(h)
	s.looks = min(s.looks+lookAt, mostLooks)
	for !t.claim() {
		if now.IsZero() {
			now = time.Now()
		}
		own := s.looks
		if len(t.shards) > 1 {
			own = (own + 1) / 2 // the rest is for the other shards, if this one has no idle entry
		}
		if !t.evict(s, &s.looks, own, now) && !t.evictBeside(h, &s.looks, now) {
			return false
		}
	}
	return true
}

// claim counts one more entry, if there is a place.
func (t *Table[V]) claim() bool {
	for {
		n := t.entries.Load()
		if n >= t.size {
			return false
		}
		if t.entries.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// evictBeside is evict for the shards other than that of h, one after the other.
func (t *Table[V]) evictBeside(h uint64, looks *int, now time.Time) (found bool) {
	for i := 1; i < len(t.shards) && *looks > 0 && !found; i++ {
		if o := t.shardOf(h + uint64(i)); o.mu.TryLock() { // with Lock, two insertions could wait for each other's shard
			found = t.evict(o, looks, *looks, now)
			o.mu.Unlock()
		}
	}
	return found
}

// evict drops an idle entry of s, which is locked, and reports whether it found one. It
// takes looks from *looks, at most most of them. Two rounds of the ring are enough: the
// first one spares entries that were touched, and clears that mark.
func (t *Table[V]) evict(s *shard[V], looks *int, most int, now time.Time) bool {
	x := s.index.Load()
	for n := min(most, 2*s.top); n > 0; n-- {
		*looks--
		if s.hand >= s.top {
			s.hand = 0
		}
		place := s.hand
		s.hand++ // also past one that is dropped, or newcomers would drop one another, and those that are old stay
		e := x.places[place].Load()
		if e == nil || e.marks.And(^uint32(touched))&touched != 0 || e.refs.Load() != 0 || !t.idle(&e.Value, now) || !e.drop() {
			continue
		}
		x.remove(t.hash(e.Key), uint32(place))
		s.free = append(s.free, uint32(place))
		t.entries.Add(-1)
		return true
	}
	return false
}

// drop marks e as dropped and reports whether it could. It cannot if somebody holds e, or
// has used it since it was found idle, as it may then be idle no longer.
func (e *Entry[V]) drop() bool {
	if !e.refs.CompareAndSwap(0, dead) {
		return false
	}
	if e.marks.Load()&touched != 0 {
		e.refs.Add(-dead)
		return false
	}
	return true
}

// meet remembers that the key of hash h drew on the overflow.
func (t *Table[V]) meet(h uint64) {
	t.met[h%strangers/64].Or(1 << (h % 64))
	t.met1.Store(true)
}

// stranger reports whether the key of hash h may have drawn on the overflow since that
// was last idle. Such a key gets no entry of its own: with a fresh value it could spend
// again what it has spent already.
func (t *Table[V]) stranger(h uint64, now time.Time) bool {
	if now.IsZero() {
		now = time.Now()
	}
	if t.overflow.refs.Load() == 0 && t.idle(&t.overflow.Value, now) {
		t.met1.Store(false)
		for i := range t.met {
			t.met[i].Store(0)
		}
		return false
	}
	return t.met[h%strangers/64].Load()&(1<<(h%64)) != 0
}
