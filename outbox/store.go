package outbox

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"github.com/weirhttp/weir/internal/plain"
)

// settle writes down what became of a parcel.
func (t *Transport) settle(p *parcel, v Verdict, cause *Error) error {
	var d delta
	if v == Later && cause.Status == 0 {
		return nil // nothing was learnt about the entry
	}
	err := t.file.write(func(tx *bolt.Tx) error {
		n := note{Tries: p.Tries, Status: p.Status}
		switch v {
		case Delivered:
			d = remove(tx, p.id)
		case Dead:
			n.Reason = reason(cause)
			d = move(tx, p.id, "pending", "dead", &n)
		default:
			d = delta{}
			if where, _ := find(tx, p.id); where == "pending" {
				d.err = putNote(tx, p.id, &n)
			}
		}
		return d.err
	})
	if err != nil || !t.apply(d) {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch v {
	case Delivered:
		t.stats.Delivered++
	case Dead:
		t.stats.SetAside++
	}
	return nil
}

func reason(e *Error) string {
	if e.Err == nil {
		return fmt.Sprintf("answer %d", e.Status)
	}
	return plain.Text(e.Err)
}

// delta is what a transaction did to the counts, to be applied once it is on
// the disk.
type delta struct {
	pending, dead int
	bytes         int64
	err           error
}

// apply reports whether there was anything to apply.
func (t *Transport) apply(d delta) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.Pending += d.pending
	t.stats.Dead += d.dead
	t.stats.Bytes += d.bytes
	return d != delta{}
}

func find(tx *bolt.Tx, id uint64) (where string, value []byte) {
	for _, where := range []string{"pending", "dead"} {
		if value := tx.Bucket([]byte(where)).Get(key(id)); value != nil {
			return where, value
		}
	}
	return "", nil
}

func remove(tx *bolt.Tx, id uint64) (d delta) {
	where, value := find(tx, id)
	switch where {
	case "":
		return d
	case "pending":
		d.pending--
	case "dead":
		d.dead--
	}
	d.bytes = -int64(len(value))
	d.err = errors.Join(tx.Bucket([]byte(where)).Delete(key(id)), putNote(tx, id, nil))
	return d
}

// move carries an entry from one bucket to another with a new note.
func move(tx *bolt.Tx, id uint64, from, to string, n *note) (d delta) {
	value := bytes.Clone(tx.Bucket([]byte(from)).Get(key(id)))
	if value == nil {
		return d
	}
	d.pending, d.dead = 1, -1
	if to == "dead" {
		d.pending, d.dead = -1, 1
	}
	d.err = errors.Join(tx.Bucket([]byte(from)).Delete(key(id)), tx.Bucket([]byte(to)).Put(key(id), value), putNote(tx, id, n))
	return d
}

func putNote(tx *bolt.Tx, id uint64, n *note) error {
	notes := tx.Bucket([]byte("notes"))
	if n == nil {
		return notes.Delete(key(id))
	}
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	return notes.Put(key(id), text)
}

// load reads one entry of a bucket; the record's body lies in the file.
func load(tx *bolt.Tx, id uint64, value []byte, dead bool) (*record, Entry, error) {
	rec, err := decode(value)
	if err != nil {
		return nil, Entry{}, corrupt(id, err)
	}
	var n note
	if text := tx.Bucket([]byte("notes")).Get(key(id)); text != nil {
		if err := json.Unmarshal(text, &n); err != nil {
			return nil, Entry{}, corrupt(id, err)
		}
	}
	return rec, rec.entry(id, n, dead), nil
}

// each calls fn with every entry and its size, the pending ones first.
func each(tx *bolt.Tx, fn func(e Entry, size int)) error {
	for _, where := range []string{"pending", "dead"} {
		err := tx.Bucket([]byte(where)).ForEach(func(k, value []byte) error {
			if len(k) != 8 {
				return fmt.Errorf("%w: a key of %d bytes", ErrCorrupt, len(k))
			}
			_, e, err := load(tx, binary.BigEndian.Uint64(k), value, where == "dead")
			if err == nil {
				fn(e, len(value))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// count checks all entries and sets the counters from them.
func (t *Transport) count() error {
	return t.file.view(func(tx *bolt.Tx) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		return each(tx, func(e Entry, size int) {
			t.stats.Bytes += int64(size)
			if e.Dead {
				t.stats.Dead++
			} else {
				t.stats.Pending++
			}
		})
	})
}

// last is the id of the youngest pending entry, or zero.
func (t *Transport) last() (id uint64, err error) {
	err = t.file.view(func(tx *bolt.Tx) error {
		if k, _ := tx.Bucket([]byte("pending")).Cursor().Last(); k != nil {
			id = binary.BigEndian.Uint64(k)
		}
		return nil
	})
	return id, err
}

// next is the first pending entry after one id and up to another whose host is
// not waiting, or nil.
func (t *Transport) next(after, last uint64, waiting map[string]bool) (p *parcel, err error) {
	err = t.file.view(func(tx *bolt.Tx) error {
		c := tx.Bucket([]byte("pending")).Cursor()
		for k, value := c.Seek(key(after + 1)); k != nil; k, value = c.Next() {
			id := binary.BigEndian.Uint64(k)
			if id > last {
				return nil
			}
			rec, e, err := load(tx, id, value, false)
			if err != nil {
				return err
			}
			if !waiting[e.Host] {
				rec.body = bytes.Clone(rec.body)
				p = &parcel{Entry: e, id: id, rec: rec}
				return nil
			}
		}
		return nil
	})
	return p, err
}

func corrupt(id uint64, err error) error {
	return fmt.Errorf("%w: entry %s: %v", ErrCorrupt, formatID(id), err)
}
