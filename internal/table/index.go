package table

import "sync/atomic"

// index finds the entries of a shard by their keys' hashes. It is read without
// a lock, so that calls to many hosts write nothing in common; whoever changes
// it holds the shard's. Slots are probed one after the other, up to an empty one.
// That of a dropped entry is not empty, as others may stand behind it: it is gone
// until it is used again.
//
// A slot is one word: the mark of an entry, and its place below that. By the mark a
// probe passes the entries of other keys without a look at them: with a million keys
// each look waits for memory. Only places are pointers. So what collects memory meets
// the entries in the order in which they were made, which is how they lie in memory,
// and not in that of their hashes.
//
// A place is set before its slot. So who reads without the lock may miss an entry that
// is being added, but no other.
type index[V any] struct {
	slots  []atomic.Uint64            // as many as a power of two; zero: empty
	places []atomic.Pointer[Entry[V]] // of the entries; nil: free
	used   int                        // slots that are not empty
}

const (
	leastSlots = 8
	gone       = 1 // in the slot of a dropped entry. No mark is zero, so that is no entry's
)

// newIndex makes an index with as many places as it may have slots in use.
func newIndex[V any](slots int) *index[V] {
	return &index[V]{slots: make([]atomic.Uint64, slots), places: make([]atomic.Pointer[Entry[V]], slots/4*3)}
}

// find returns the entry of key, or nil. It may have been dropped: Hold tells.
func (x *index[V]) find(h uint64, key string) *Entry[V] {
	if x == nil {
		return nil
	}
	m, last := markOf(h), uint32(len(x.slots)-1)
	for i := m & last; ; i = (i + 1) & last {
		s := x.slots[i].Load()
		if s == 0 {
			return nil
		}
		if uint32(s>>32) != m {
			continue
		}
		if e := x.places[uint32(s)].Load(); e != nil && e.Key == key && !e.dropped() {
			return e
		}
	}
}

// markOf is the mark of an entry whose key has hash h. Its lower bits are where the
// entry's slot is if that is free. The lowest bits of h have chosen the shard.
func markOf(h uint64) uint32 { return max(1, uint32(h>>16)) }

// slotOf is the slot of the entry at that place which has mark m.
func slotOf(m, place uint32) uint64 { return uint64(m)<<32 | uint64(place) }

// add puts a slot in that is not there.
func (x *index[V]) add(slot uint64) {
	last := uint32(len(x.slots) - 1)
	i := uint32(slot>>32) & last
	for x.slots[i].Load() > gone {
		i = (i + 1) & last
	}
	if x.slots[i].Swap(slot) == 0 {
		x.used++
	}
}

// remove takes the entry out that stands at that place.
func (x *index[V]) remove(h uint64, place uint32) {
	m, last := markOf(h), uint32(len(x.slots)-1)
	i := m & last
	for x.slots[i].Load() != slotOf(m, place) {
		i = (i + 1) & last
	}
	x.slots[i].Store(gone)
	x.places[place].Store(nil)
}

// full reports whether an entry more would make probing slow.
func (x *index[V]) full() bool { return x == nil || 4*(x.used+1) > 3*len(x.slots) }

// again is x with those slots. The entries keep their places.
func (x *index[V]) again(slots int) *index[V] {
	n := newIndex[V](slots)
	if x == nil {
		return n
	}
	for i := range min(len(x.places), len(n.places)) { // those beyond are free
		n.places[i].Store(x.places[i].Load())
	}
	for i := range x.slots {
		if s := x.slots[i].Load(); s > gone {
			n.add(s)
		}
	}
	return n
}

// insert adds e to s. The index is made anew if it is full: twice as large as the
// entries need.
func (t *Table[V]) insert(s *shard[V], h uint64, e *Entry[V]) {
	x := s.index.Load()
	if x.full() {
		n := leastSlots
		for n < 2*(s.top+1) {
			n *= 2
		}
		x = x.again(n)
	}
	place := uint32(s.top)
	if last := len(s.free) - 1; last >= 0 {
		place = s.free[last]
		s.free = s.free[:last]
	} else {
		s.top++
	}
	x.places[place].Store(e)
	x.add(slotOf(markOf(h), place))
	s.index.Store(x)
}
