package table

// A near is an entry that is found without a hash of its key: most programs use few keys, and
// many of them one. It has a place in Table.near by the length of its key, which the first such
// key gets, and keeps until it is found that its entry was dropped. A near does not change, and
// has the key, too, so that a search for another key reads nothing that a use of this one writes.
type near[V any] struct {
	key   string
	entry *Entry[V]
}

// Near returns the entry of key if that is found without a hash; else nil, and then Seen or Glance
// may find it. The caller does not hold it: it calls Hold, or Visit.
func (t *Table[V]) Near(key string) *Entry[V] {
	if n := t.near[len(key)%len(t.near)].Load(); n != nil && n.key == key && !n.entry.dropped() {
		return n.entry
	}
	return nil
}

// Seen is Acquire for a key that has an entry; it returns nil if there is none.
func (t *Table[V]) Seen(key string) *Entry[V] {
	if e := t.Glance(key); e != nil && e.Hold() {
		return e
	}
	return nil
}

// Glance is Seen for callers that do not hold the entry: they call Visit and not Release. If no
// entry is near whose key is as long, it makes the entry that.
func (t *Table[V]) Glance(key string) *Entry[V] {
	e, _ := t.Search(key)
	return e
}

// Search is Glance that also returns the hash of key.
func (t *Table[V]) Search(key string) (e *Entry[V], h uint64) {
	h = t.hash(key)
	e = t.shardOf(h).index.Load().find(h, key)
	place := &t.near[len(key)%len(t.near)]
	if n := place.Load(); e != nil && (n == nil || n.entry.dropped()) {
		place.CompareAndSwap(n, &near[V]{e.Key, e})
	}
	return e, h
}
