package outbox

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	bolt "go.etcd.io/bbolt"
)

// ErrUnknown is in the chain of errors about an id that the outbox does not
// hold: it was delivered, discarded, or never given.
var ErrUnknown = errors.New("no such entry")

// List returns the entries: the pending ones by id, in which order those of a
// queue are sent, then the dead ones by id. All does so without holding them in
// memory together.
func (t *Transport) List() ([]Entry, error) {
	var entries []Entry
	for e, err := range t.All() {
		if err != nil {
			return entries, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// DeadLetters returns the entries that were set aside, by id.
func (t *Transport) DeadLetters() ([]Entry, error) {
	var entries []Entry
	for e, err := range t.from(dead) {
		if err != nil {
			return entries, err
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// pageful is how many entries All reads at a time.
const pageful = 256

// All goes through the entries as List does. The outbox may be used meanwhile,
// also by the loop's body: an entry that is delivered, set aside or requeued
// while All runs may be missed or come twice. An error ends it.
func (t *Transport) All() iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for _, w := range []where{pending, dead} {
			for e, err := range t.from(w) {
				if !yield(e, err) || err != nil {
					return
				}
			}
		}
	}
}

// from goes through one bucket, without a transaction open while it yields.
func (t *Transport) from(w where) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for after := uint64(0); ; {
			page, err := t.page(w, after)
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if len(page) < pageful {
				return
			}
			after, _ = parseID(page[len(page)-1].ID)
		}
	}
}

func (t *Transport) page(w where, after uint64) (entries []Entry, err error) {
	err = t.file.view(func(tx *bolt.Tx) error {
		b := w.bucket(tx)
		c := b.Cursor()
		for k, value := c.Seek(key(after + 1)); k != nil && len(entries) < pageful; k, value = c.Next() {
			id := binary.BigEndian.Uint64(k)
			if value == nil {
				value = get(b, id)
			}
			_, e, _, err := read(tx, id, value, w)
			if err != nil {
				return err
			}
			entries = append(entries, e)
		}
		return nil
	})
	return entries, err
}

// Request builds the request of an entry as Drain would send it, before
// Prepare; its context is ctx.
func (t *Transport) Request(ctx context.Context, id string) (*http.Request, error) {
	n, err := parseID(id)
	if err != nil {
		return nil, err
	}
	var rec *record
	err = t.file.view(func(tx *bolt.Tx) error {
		_, value := find(tx, n)
		if value == nil {
			return unknown(id)
		}
		if rec, err = decode(value); err != nil {
			return corrupt(n, err)
		}
		rec.body = bytes.Clone(rec.body)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return rec.request(ctx)
}

// Discard removes an entry, pending or dead. One that Drain is just sending
// may have been delivered all the same.
func (t *Transport) Discard(id string) error {
	return t.change(id, remove)
}

// Requeue makes a dead entry pending again, with all its tries before it, and
// its age counts anew. It keeps its id, and so goes before those of its queue
// that are younger.
func (t *Transport) Requeue(id string) error {
	return t.change(id, func(tx *bolt.Tx, id uint64) (change, error) {
		return move(tx, id, dead, pending, note{Requeued: time.Now().UTC()})
	})
}

// change does something to one entry, in the file and then in its queue.
func (t *Transport) change(id string, fn func(*bolt.Tx, uint64) (change, error)) error {
	n, err := parseID(id)
	if err != nil {
		return err
	}
	var c change
	err = t.file.write(func(tx *bolt.Tx) (err error) {
		c, err = fn(tx, n)
		return err
	}, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.apply(c)
		t.signal()
	})
	if err == nil && c == (change{}) {
		return unknown(id)
	}
	return err
}

func unknown(id string) error { return fmt.Errorf("outbox: %s: %w", id, ErrUnknown) }
