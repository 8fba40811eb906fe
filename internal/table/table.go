// Package table keeps a bounded number of entries by key. An entry is dropped
// only to make room, only when nobody holds it, and only when its owner says
// that it is idle: what has been spent is never forgotten by eviction.
// There is no background goroutine and no timer.
package table

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lookAt is how many old entries an insertion may examine, which makes
	// eviction O(1) whatever the size of the table. What insertions leave of
	// it, those that come upon a row of busy entries have besides, up to mostLooks.
	lookAt    = 16
	mostLooks = 1024
	// shardFrom is the capacity from which the table is split, so that those who
	// insert do not wait for one another. The bound is one for all shards.
	shardFrom = 4096
	shards    = 16 // a power of two
	// strangers is the number of bits that remember who drew on the overflow.
	strangers = 1 << 16
	// dead is the number of holders of an entry that was dropped: whoever finds
	// it without the lock sees that there are less than none.
	dead = -1 << 30
)

// Table is a bounded map. Create it with New. It is safe for concurrent use.
type Table[V any] struct {
	fresh    func(key string) V
	idle     func(v *V, now time.Time) bool
	seed     maphash.Seed
	size     int64        // most entries
	entries  atomic.Int64 // of all shards; only who adds or drops one writes it
	shards   []shard[V]
	overflow Entry[V]
	gone     Entry[V]                      // in the place of dropped entries; dropped itself
	met      [strangers / 64]atomic.Uint64 // hashes of keys sent to overflow since it was last idle
	met1     atomic.Bool                   // any bit of met is set
}

// Entry is one key's place. Its holder calls Release when done with it.
type Entry[V any] struct {
	Key      string
	refs     atomic.Int32  // these stand beside the key: who looks for that needs them, too
	marks    atomic.Uint32 // touched, used
	uses     atomic.Uint32 // see Uses
	Overflow bool          // shared by all keys for which there is no room
	Value    V
}

const (
	touched = 1 << iota // acquired again since the hand passed
	used                // acquired since Uses was called
)

type shard[V any] struct {
	index atomic.Pointer[index[V]] // of ring; changed under mu only
	mu    sync.Mutex
	ring  []*Entry[V]
	hand  int
	looks int      // that insertions have left
	_     [64]byte // neighbours do not share a cache line
}

// New returns a table of at most size entries, beyond which newcomers share
// one more, the overflow. fresh makes the value of a new key; idle reports
// that a value holds nothing worth keeping. Both are called under a lock and
// must not call back.
func New[V any](size int, fresh func(key string) V, idle func(v *V, now time.Time) bool) *Table[V] {
	t := &Table[V]{fresh: fresh, idle: idle, seed: maphash.MakeSeed()}
	t.Resize(size)
	t.overflow = Entry[V]{Value: fresh(""), Overflow: true}
	t.gone.refs.Store(dead)
	return t
}

// Resize changes the bound of a table. Entries beyond a smaller one go as
// they would at any insertion: when they are idle. It must not run beside
// other calls.
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

// Acquire returns the entry of key, which stays in the table until it is
// released. When the table is full of entries that are in use or not idle,
// it is the overflow entry. now zero: the clock is read, if it matters.
func (t *Table[V]) Acquire(key string, now time.Time) *Entry[V] {
	h := t.hash(key)
	s := t.shardOf(h)
	if e := s.index.Load().find(h, key); e != nil && e.Hold() {
		return e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.index.Load().find(h, key)
	if e != nil {
		e.Hold()
		return e
	}
	if now.IsZero() {
		now = time.Now()
	}
	if t.met1.Load() && t.stranger(h, now) || !t.room(h, now) {
		t.meet(h)
		t.overflow.refs.Add(1)
		return &t.overflow
	}
	e = &Entry[V]{Key: key, Value: t.fresh(key)}
	e.refs.Store(1)
	e.marks.Store(used)
	e.uses.Store(uint32(now.UnixNano())) // not what it was of an entry of that key that was dropped
	t.insert(s, h, e)
	s.ring = append(s.ring, e)
	return e
}

func (t *Table[V]) hash(key string) uint64 { return maphash.String(t.seed, key) }

func (t *Table[V]) shardOf(h uint64) *shard[V] { return &t.shards[h&uint64(len(t.shards)-1)] }

// Seen is Acquire for a key whose entry is there; nil: it is not.
func (t *Table[V]) Seen(key string) *Entry[V] {
	h := t.hash(key)
	if e := t.shardOf(h).index.Load().find(h, key); e != nil && e.Hold() {
		return e
	}
	return nil
}

// Glance is Seen for one who does not hold what it finds, but calls Visit.
func (t *Table[V]) Glance(key string) *Entry[V] {
	h := t.hash(key)
	return t.shardOf(h).index.Load().find(h, key)
}

// Visit reports whether e, which the caller does not hold, is still in its table. It
// is called under a lock that idle takes, too: until that is given up e is not
// dropped, nor after that if it is not idle then.
func (e *Entry[V]) Visit() bool {
	e.mark()
	return !e.dropped()
}

// mark notes that e is used. It writes only what is not noted yet.
func (e *Entry[V]) mark() {
	if e.marks.Load() != touched|used {
		e.marks.Store(touched | used)
	}
}

// Uses is a number that has changed if e was acquired or visited since it was called
// last, and whether anybody holds e now: then more may follow without a change. A
// change that is being made just now may show at the next call only.
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

// Release gives back what Acquire or Find returned, or Hold.
func (e *Entry[V]) Release() { e.refs.Add(-1) }

// Len is the number of entries, the overflow not counted.
func (t *Table[V]) Len() int { return int(t.entries.Load()) }

// Overflow is the entry that all keys share for which there is no room.
func (t *Table[V]) Overflow() *Entry[V] { return &t.overflow }

// All calls f for each entry, the overflow last, holding no lock during f. It does not
// count for Uses.
func (t *Table[V]) All(f func(e *Entry[V])) { t.each(true, f) }

// Each is All without holding the entries, for those who look at many and do not
// mind if one is dropped meanwhile: nothing is written of any.
func (t *Table[V]) Each(f func(e *Entry[V])) { t.each(false, f) }

func (t *Table[V]) each(hold bool, f func(e *Entry[V])) {
	var list []*Entry[V]
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		list = append(list[:0], s.ring...)
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

// room makes sure that one more entry fits, and counts it. If there is no place it
// drops an idle one: of the shard of h, which is locked, or else of another.
func (t *Table[V]) room(h uint64, now time.Time) bool {
	s := t.shardOf(h)
	s.looks = min(s.looks+lookAt, mostLooks)
	for !t.claim() {
		own := s.looks
		if len(t.shards) > 1 {
			own = (own + 1) / 2 // or a busy shard would leave none for the others
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

// evictBeside is evict for the other shards, one after the other.
func (t *Table[V]) evictBeside(h uint64, looks *int, now time.Time) (found bool) {
	for i := 1; i < len(t.shards) && *looks > 0 && !found; i++ {
		if o := t.shardOf(h + uint64(i)); o.mu.TryLock() { // two who wait for one another would do so for ever
			found = t.evict(o, looks, *looks, now)
			o.mu.Unlock()
		}
	}
	return found
}

// evict drops an idle entry of s, which is locked. It takes as many looks as it needs,
// at most that many, and has seen all in two rounds: in the first those that were used
// are spared.
func (t *Table[V]) evict(s *shard[V], looks *int, most int, now time.Time) bool {
	for n := min(most, 2*len(s.ring)); n > 0; n-- {
		*looks--
		if s.hand >= len(s.ring) {
			s.hand = 0
		}
		e := s.ring[s.hand]
		s.hand++ // also past one that is dropped, or newcomers would drop one another, and those that are old stay
		if e.marks.And(^uint32(touched))&touched != 0 || e.refs.Load() != 0 || !t.idle(&e.Value, now) || !e.drop() {
			continue
		}
		s.index.Load().remove(t.hash(e.Key), e, &t.gone)
		last := len(s.ring) - 1
		s.ring[s.hand-1] = s.ring[last]
		s.ring[last] = nil
		s.ring = s.ring[:last]
		t.entries.Add(-1)
		return true
	}
	return false
}

// drop marks e as dropped and reports whether it is. It is not if anybody holds it,
// or used it since it was found idle: then it may be idle no more.
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

// stranger reports whether the key of hash h may have drawn on the overflow
// and the overflow has not been idle since: with an entry of its own now it
// would spend twice.
func (t *Table[V]) stranger(h uint64, now time.Time) bool {
	if t.overflow.refs.Load() == 0 && t.idle(&t.overflow.Value, now) {
		t.met1.Store(false)
		for i := range t.met {
			t.met[i].Store(0)
		}
		return false
	}
	return t.met[h%strangers/64].Load()&(1<<(h%64)) != 0
}
