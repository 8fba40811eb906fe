package table

import "sync/atomic"

// index finds the entries of a shard by their keys' hashes. It is read without
// a lock, so that calls to many hosts write nothing in common; whoever changes
// it holds the shard's. Slots are probed one after the other, up to an empty one.
// That of a dropped entry is not empty, as others may stand behind it: it holds
// Table.gone until it is used again.
type index[V any] struct {
	slots []atomic.Pointer[Entry[V]] // as many as a power of two
	used  int                        // that are not nil
}

const leastSlots = 8

// find returns the entry of key, or nil. It may have been dropped: Hold tells.
func (x *index[V]) find(h uint64, key string) *Entry[V] {
	if x == nil {
		return nil
	}
	mask := uint64(len(x.slots) - 1)
	for i := place(h) & mask; ; i = (i + 1) & mask {
		e := x.slots[i].Load()
		if e == nil || e.Key == key && !e.dropped() {
			return e
		}
	}
}

// place is where the entry of a key with hash h stands if the slot is free. The
// lowest bits of h have chosen the shard.
func place(h uint64) uint64 { return h >> 16 }

// add puts e in, whose key is not there.
func (x *index[V]) add(h uint64, e *Entry[V]) {
	mask := uint64(len(x.slots) - 1)
	for i := place(h) & mask; ; i = (i + 1) & mask {
		switch old := x.slots[i].Load(); {
		case old == nil:
			x.used++
		case !old.dropped():
			continue
		}
		x.slots[i].Store(e)
		return
	}
}

// remove takes e out, in whose place gone stands from now on.
func (x *index[V]) remove(h uint64, e, gone *Entry[V]) {
	mask := uint64(len(x.slots) - 1)
	for i := place(h) & mask; ; i = (i + 1) & mask {
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
		x = &index[V]{slots: make([]atomic.Pointer[Entry[V]], n)}
		for _, o := range s.ring {
			x.add(t.hash(o.Key), o)
		}
	}
	x.add(h, e)
	s.index.Store(x)
}
