package table

import "sync/atomic"

// index finds the entries of a shard by the hashes of their keys. It is read without a lock, so
// that calls to different hosts write nothing that they share. Whoever changes it holds the lock
// of its shard.
//
// It is a hash table with linear probing: a search looks at one slot after the other, up to an
// empty one. The slot of a dropped entry does not become empty, as the slots of others may follow
// it: it is marked as gone, and used again for the next entry whose search passes it.
//
// A slot is one word. Its upper half is a tag, which is a part of the hash. Its lower half is an
// entry's place, which is an index into places. By the tag, a search passes the entries of most
// other keys without reading them: with a million keys, each such read waits for memory. Slots
// hold no pointers, so the garbage collector follows those of places. It meets the entries there
// in the order in which they were made, which is how they lie in memory.
//
// When an entry is added, its place is set before its slot. So a search without the lock may miss
// an entry that is being added, but never another one.
type index[V any] struct {
	slots  []atomic.Uint64            // their number is a power of two; zero: empty
	places []atomic.Pointer[Entry[V]] // nil: free
	used   int                        // slots that are not empty
}

const (
	leastSlots = 8 // of the first index, which has room for six entries
	gone       = 1 // the slot of a dropped entry: no entry's slot, as tags are not zero
)

// newIndex makes an index of so many slots, and a place for each that may be in use, see full.
func newIndex[V any](slots int) *index[V] {
	return &index[V]{slots: make([]atomic.Uint64, slots), places: make([]atomic.Pointer[Entry[V]], slots/4*3)}
}

// find returns the entry of key, which has hash h, or nil. The entry may be dropped
// meanwhile: Hold reports whether it was not.
func (x *index[V]) find(h uint64, key string) *Entry[V] {
	if x == nil {
		return nil
	}
	tag, last := tagOf(h), uint32(len(x.slots)-1)
	for i := tag & last; ; i = (i + 1) & last {
		s := x.slots[i].Load()
		if s == 0 {
			return nil
		}
		if uint32(s>>32) != tag {
			continue
		}
		if e := x.places[uint32(s)].Load(); e != nil && e.Key == key && !e.dropped() {
			return e
		}
	}
}

// tagOf is the tag of an entry whose key has hash h; never zero. Its lower bits say which slot the
// search begins with. It leaves out the lowest bits of h, which have chosen the shard.
func tagOf(h uint64) uint32 { return max(1, uint32(h>>16)) }

// slotOf is the slot of the entry with that tag and place.
func slotOf(tag, place uint32) uint64 { return uint64(tag)<<32 | uint64(place) }

// add adds a slot, which must not be there yet.
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

// remove removes the entry at that place, whose key has hash h.
func (x *index[V]) remove(h uint64, place uint32) {
	tag, last := tagOf(h), uint32(len(x.slots)-1)
	i := tag & last
	for x.slots[i].Load() != slotOf(tag, place) {
		i = (i + 1) & last
	}
	x.slots[i].Store(gone)
	x.places[place].Store(nil)
}

// full reports whether one more slot in use would make searches slow: three quarters are the most.
func (x *index[V]) full() bool { return x == nil || 4*(x.used+1) > 3*len(x.slots) }

// rebuilt returns an index of so many slots with the entries of x, which keep their places, and
// without slots that are gone.
func (x *index[V]) rebuilt(slots int) *index[V] {
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

// insert adds e, whose key has hash h, to s. A full index is replaced by one with at least twice
// as many slots as there are entries.
func (t *Table[V]) insert(s *shard[V], h uint64, e *Entry[V]) {
	x := s.index.Load()
	if x.full() {
		n := leastSlots
		for n < 2*(s.top+1) {
			n *= 2
		}
		x = x.rebuilt(n)
	}
	place := uint32(s.top)
	if last := len(s.free) - 1; last >= 0 {
		place = s.free[last]
		s.free = s.free[:last]
	} else {
		s.top++
	}
	x.places[place].Store(e)
	x.add(slotOf(tagOf(h), place))
	s.index.Store(x)
}
