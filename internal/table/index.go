package table

import "sync/atomic"

// index finds the entries of a shard by their keys' hashes. It is read without
// a lock, so that calls to many hosts write nothing in common; whoever changes
// it holds the shard's. Slots are probed one after the other, up to an empty one.
// That of a dropped entry is not empty, as others may stand behind it: it holds
// Table.gone until it is used again.
//
// Each slot has a mark beside it, by which a probe passes the entries of other keys
// without a look at them: with a million keys each look waits for memory. A slot is
// set before its mark. So who reads without the lock may miss an entry that is being
// added, but no other.
type index[V any] struct {
	marks []atomic.Uint32            // of slots; zero: the slot is empty
	slots []atomic.Pointer[Entry[V]] // as many as a power of two
	used  int                        // that are not empty
}

const leastSlots = 8

func newIndex[V any](slots int) *index[V] {
	return &index[V]{marks: make([]atomic.Uint32, slots), slots: make([]atomic.Pointer[Entry[V]], slots)}
}

// find returns the entry of key, or nil. It may have been dropped: Hold tells.
func (x *index[V]) find(h uint64, key string) *Entry[V] {
	if x == nil {
		return nil
	}
	m, last := markOf(h), uint32(len(x.slots)-1)
	for i := m & last; ; i = (i + 1) & last {
		switch x.marks[i].Load() {
		case 0:
			return nil
		case m:
			if e := x.slots[i].Load(); e.Key == key && !e.dropped() {
				return e
			}
		}
	}
}

// markOf is the mark of an entry whose key has hash h. Its lower bits are where the
// entry stands if that slot is free. The lowest bits of h have chosen the shard.
func markOf(h uint64) uint32 { return max(1, uint32(h>>16)) }

// add puts e in, which has mark m and is not there. gone stands in the places of
// dropped entries.
func (x *index[V]) add(m uint32, e, gone *Entry[V]) {
	last := uint32(len(x.slots) - 1)
	i := m & last
	for x.marks[i].Load() != 0 && x.slots[i].Load() != gone {
		i = (i + 1) & last
	}
	x.slots[i].Store(e)
	if x.marks[i].Swap(m) == 0 {
		x.used++
	}
}

// remove takes e out, in whose place gone stands from now on.
func (x *index[V]) remove(h uint64, e, gone *Entry[V]) {
	last := uint32(len(x.slots) - 1)
	for i := markOf(h) & last; ; i = (i + 1) & last {
		if x.slots[i].Load() == e {
			x.slots[i].Store(gone)
			return
		}
	}
}

// full reports whether an entry more would make probing slow.
func (x *index[V]) full() bool { return x == nil || 4*(x.used+1) > 3*len(x.slots) }

// insert adds e to the shard's index, which is made anew if it is full: twice as
// large as the entries of ring need.
func (t *Table[V]) insert(s *shard[V], h uint64, e *Entry[V]) {
	x := s.index.Load()
	if x.full() {
		n := leastSlots
		for n < 2*(len(s.ring)+1) {
			n *= 2
		}
		was := x
		x = newIndex[V](n)
		for i := 0; was != nil && i < len(was.slots); i++ {
			if o := was.slots[i].Load(); o != nil && o != &t.gone {
				x.add(was.marks[i].Load(), o, &t.gone)
			}
		}
	}
	x.add(markOf(h), e, &t.gone)
	s.index.Store(x)
}
