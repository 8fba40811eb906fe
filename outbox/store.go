package outbox

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
)

// settle writes down what became of a parcel. It reports whether that emptied
// a queue that had a backlog, and since when it had.
func (t *Transport) settle(p *parcel, v Verdict, cause *Error) (behind time.Time, err error) {
	n := note{Tries: p.Tries, Status: p.Status, Requeued: p.requeued}
	if v == Later {
		if cause.Status == 0 {
			return behind, nil // nothing was learnt about the entry
		}
		return behind, t.file.write(func(tx *bolt.Tx) error {
			if where, _ := find(tx, p.id); where == pending {
				return putNote(tx, p.id, &n)
			}
			return nil
		}, nil)
	}
	var c change
	err = t.file.write(func(tx *bolt.Tx) (err error) {
		if v == Delivered {
			c, err = remove(tx, p.id)
			return err
		}
		n.Reason = cause.why()
		c, err = move(tx, p.id, pending, dead, n)
		return err
	}, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if q := t.queues[p.Queue]; q != nil {
			behind = q.behind
		}
		q := t.apply(c)
		switch {
		case q == nil:
			behind = time.Time{}
			return // it was discarded meanwhile
		case v == Delivered:
			t.stats.Delivered++
			q.delivered++
		default:
			t.stats.SetAside++
			q.setAside++
		}
		if len(q.pending) > 0 {
			behind = time.Time{}
		}
	})
	return behind, err
}

// bucket is where entries of a kind lie.
func (w where) bucket(tx *bolt.Tx) *bolt.Bucket {
	return tx.Bucket([]byte([]string{pending: "pending", dead: "dead"}[w]))
}

func find(tx *bolt.Tx, id uint64) (where, []byte) {
	for _, w := range []where{pending, dead} {
		if value := get(w.bucket(tx), id); value != nil {
			return w, value
		}
	}
	return nowhere, nil
}

// remove deletes an entry, wherever it is.
func remove(tx *bolt.Tx, id uint64) (c change, err error) {
	from, value := find(tx, id)
	if from == nowhere {
		return c, nil
	}
	kept, queue, err := place(value)
	if err != nil {
		return c, corrupt(id, err)
	}
	c = change{id: id, queue: queue, kept: kept, size: int64(len(value)), from: from}
	return c, errors.Join(drop(from.bucket(tx), id), tx.Bucket([]byte("notes")).Delete(key(id)))
}

// move carries an entry from one bucket to another with a new note.
func move(tx *bolt.Tx, id uint64, from, to where, n note) (c change, err error) {
	value := get(from.bucket(tx), id)
	if value == nil {
		return c, nil
	}
	kept, queue, err := place(value)
	if err != nil {
		return c, corrupt(id, err)
	}
	if !n.Requeued.IsZero() {
		kept = n.Requeued.UnixNano()
	}
	c = change{id: id, queue: queue, kept: kept, size: int64(len(value)), from: from, to: to}
	a, b := from.bucket(tx), to.bucket(tx)
	if a.Bucket(key(id)) != nil {
		err = tx.MoveBucket(key(id), a, b)
	} else {
		value = bytes.Clone(value)
		err = errors.Join(a.Delete(key(id)), put(b, id, value))
	}
	return c, errors.Join(err, putNote(tx, id, &n))
}

// put writes a record. One that is longer than a quarter of a page gets a bucket of
// its own, so that its pages are neither shared with another record nor written again
// when a neighbour is added or removed. (bbolt writes a node anew as a whole, puts at
// least two records into it, and joins one that is left with a single record to the
// next: each removal could write several long records, and in one piece.) Earlier
// versions wrote all records as values.
func put(b *bolt.Bucket, id uint64, value []byte) error {
	if len(value) <= quarter(b.Tx()) {
		return b.Put(key(id), value)
	}
	own, err := b.CreateBucket(key(id))
	if err != nil {
		return err
	}
	return own.Put([]byte("record"), value)
}

// get returns a record, or nil. It lies in the file.
func get(b *bolt.Bucket, id uint64) []byte {
	if value := b.Get(key(id)); value != nil {
		return value
	}
	if own := b.Bucket(key(id)); own != nil {
		return own.Get([]byte("record"))
	}
	return nil
}

// drop deletes a record.
func drop(b *bolt.Bucket, id uint64) error {
	if b.Bucket(key(id)) != nil {
		return b.DeleteBucket(key(id))
	}
	return b.Delete(key(id))
}

func putNote(tx *bolt.Tx, id uint64, n *note) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return tx.Bucket([]byte("notes")).Put(key(id), text)
}

func getNote(tx *bolt.Tx, id uint64) (n note, err error) {
	if text := tx.Bucket([]byte("notes")).Get(key(id)); text != nil {
		if err := json.Unmarshal(text, &n); err != nil {
			return n, corrupt(id, err)
		}
	}
	return n, nil
}

// read reads one entry of a bucket; the record's body lies in the file.
func read(tx *bolt.Tx, id uint64, value []byte, w where) (*record, Entry, note, error) {
	rec, err := decode(value)
	if err != nil {
		return nil, Entry{}, note{}, corrupt(id, err)
	}
	n, err := getNote(tx, id)
	if err != nil {
		return nil, Entry{}, n, err
	}
	return rec, rec.entry(id, n, w == dead), n, nil
}

// load checks all entries and fills the queues from them.
func (t *Transport) load() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.file.view(func(tx *bolt.Tx) error {
		for _, w := range []where{pending, dead} {
			b := w.bucket(tx)
			err := b.ForEach(func(k, value []byte) error {
				if len(k) != 8 {
					return fmt.Errorf("%w: a key of %d bytes", ErrCorrupt, len(k))
				}
				id := binary.BigEndian.Uint64(k)
				if value == nil {
					value = get(b, id)
				}
				kept, queue, err := place(value)
				if err != nil {
					return corrupt(id, err)
				}
				n, err := getNote(tx, id)
				if err != nil {
					return err
				}
				if !n.Requeued.IsZero() {
					kept = n.Requeued.UnixNano()
				}
				q := t.apply(change{id: id, queue: queue, kept: kept, size: int64(len(value)), to: w})
				if w == pending && q.behind.IsZero() {
					q.behind = time.Now()
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// parcel reads a pending entry that is to be sent, or returns nil if it is gone.
func (t *Transport) parcel(s slot) (p *parcel, err error) {
	err = t.file.view(func(tx *bolt.Tx) error {
		value := get(pending.bucket(tx), s.id)
		if value == nil {
			return nil
		}
		rec, e, n, err := read(tx, s.id, value, pending)
		if err != nil {
			return err
		}
		rec.body = bytes.Clone(rec.body)
		p = &parcel{Entry: e, slot: s, rec: rec, requeued: n.Requeued}
		return nil
	})
	return p, err
}

func corrupt(id uint64, err error) error {
	return fmt.Errorf("%w: entry %s: %v", ErrCorrupt, formatID(id), err)
}
