// Package sqlstore keeps budgets in a table of an SQL database. It is written
// from the documentation of package throttle/store alone, as somebody would who
// has a database and no Redis, and shows that this documentation is enough.
//
// It is a test and an example, not a product: the clock is this process's, which
// several machines must not rely on, and a database takes its time for each
// request. With a server of SQL the clock would be its own, read by
// clock_timestamp() or the like after the rows are locked.
package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

const schema = `
CREATE TABLE IF NOT EXISTS budgets (key BLOB PRIMARY KEY, ledger BLOB NOT NULL, expires INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS idle ON budgets (expires)`

// A Store is a [store.Store] in a database whose transactions are serializable,
// as SQLite's that begin with BEGIN IMMEDIATE.
type Store struct {
	db  *sql.DB
	now func() time.Time
}

// New returns the Store in db, and makes its table if need be.
func New(ctx context.Context, db *sql.DB, now func() time.Time) (*Store, error) {
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, fmt.Errorf("sqlstore: %w", err)
	}
	return &Store{db, now}, nil
}

// Book implements [store.Store].
func (s *Store) Book(ctx context.Context, b store.Booking) (r store.Booked, err error) {
	if err := b.Validate(); err != nil {
		return store.Booked{}, err
	}
	err = s.within(ctx, func(tx *sql.Tx) error {
		ledgers := make([]store.Ledger, len(b.Draws))
		for i, d := range b.Draws {
			if ledgers[i], err = read(ctx, tx, d.Key); err != nil {
				return err
			}
		}
		now := s.now() // after the rows are ours
		next, booked := store.Book(now, ledgers, b)
		r = booked
		for i, l := range next {
			if err := write(ctx, tx, b.Draws[i].Key, l); err != nil {
				return err
			}
		}
		return sweep(ctx, tx, now)
	})
	if err != nil {
		return store.Booked{}, err
	}
	return r, nil
}

// Refund implements [store.Store].
func (s *Store) Refund(ctx context.Context, r store.Refund) error {
	if err := r.Validate(); err != nil {
		return err
	}
	return s.change(ctx, r.Key, func(l store.Ledger) store.Ledger { return l.AfterRefund(s.now(), r) })
}

// Tell implements [store.Store].
func (s *Store) Tell(ctx context.Context, key string, n store.News) error {
	if err := n.Validate(); err != nil {
		return err
	}
	return s.change(ctx, key, func(l store.Ledger) store.Ledger { return l.AfterNews(s.now(), n) })
}

func (s *Store) change(ctx context.Context, key string, step func(store.Ledger) store.Ledger) error {
	return s.within(ctx, func(tx *sql.Tx) error {
		l, err := read(ctx, tx, key)
		if err != nil {
			return err
		}
		return write(ctx, tx, key, step(l))
	})
}

// within runs f in a transaction. A failed commit may have been made or not:
// that is an error like all others, and nobody sends on it.
func (s *Store) within(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err == nil {
		if err = f(tx); err == nil {
			err = tx.Commit()
		}
		_ = tx.Rollback() // nothing, if it was committed
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case strings.Contains(err.Error(), "SQLITE_BUSY"):
		return fmt.Errorf("sqlstore: %w: %w", store.ErrBusy, err)
	}
	return fmt.Errorf("sqlstore: %w", err)
}

func read(ctx context.Context, tx *sql.Tx, key string) (l store.Ledger, err error) {
	var text []byte
	err = tx.QueryRowContext(ctx, `SELECT ledger FROM budgets WHERE key = ?`, []byte(key)).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return store.Ledger{}, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err == nil {
		err = l.Validate()
	}
	return l, err
}

// write keeps l, unless it is at rest.
func write(ctx context.Context, tx *sql.Tx, key string, l store.Ledger) error {
	if l.Gen == 0 {
		return nil
	}
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO budgets (key, ledger, expires) VALUES (?, ?, ?)
		ON CONFLICT (key) DO UPDATE SET ledger = excluded.ledger, expires = excluded.expires`, []byte(key), text, l.Expires)
	return err
}

// sweep deletes a few rows that are idle: with each booking more than it may have
// added, so that they cannot pile up.
func sweep(ctx context.Context, tx *sql.Tx, now time.Time) error {
	_, err := tx.ExecContext(ctx, `DELETE FROM budgets WHERE key IN (SELECT key FROM budgets WHERE expires <= ? LIMIT 32)`, now.UnixMicro())
	return err
}
