package outbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	bolt "go.etcd.io/bbolt"
)

// ErrUnknown is in the chain of errors about an id that the outbox does not
// hold: it was delivered, discarded, or never given.
var ErrUnknown = errors.New("no such entry")

// List returns the entries: the pending ones in the order in which Drain sends
// them, then the dead ones by id.
func (t *Transport) List() ([]Entry, error) {
	var entries []Entry
	err := t.file.view(func(tx *bolt.Tx) error {
		return each(tx, func(e Entry, _ int) { entries = append(entries, e) })
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
	n, err := parseID(id)
	if err != nil {
		return err
	}
	var d delta
	err = t.file.write(func(tx *bolt.Tx) error {
		d = remove(tx, n)
		return d.err
	})
	if err != nil {
		return err
	}
	if !t.apply(d) {
		return unknown(id)
	}
	return nil
}

// Requeue makes a dead entry pending again, with all its tries before it. It
// keeps its id, and so goes before those of its host that are younger.
func (t *Transport) Requeue(id string) error {
	n, err := parseID(id)
	if err != nil {
		return err
	}
	var d delta
	err = t.file.write(func(tx *bolt.Tx) error {
		d = move(tx, n, "dead", "pending", nil)
		return d.err
	})
	if err != nil {
		return err
	}
	if !t.apply(d) {
		return unknown(id)
	}
	return nil
}

func unknown(id string) error { return fmt.Errorf("outbox: %s: %w", id, ErrUnknown) }
