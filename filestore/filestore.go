// Package filestore keeps budgets in files. It is a [store.Store] for the processes
// of one machine, and for a budget that must survive a restart, such as that of a
// nightly job under a daily quota.
//
//	store, err := filestore.Open("/var/lib/job/budgets", filestore.Config{})
//	...
//	throttle.Config{Store: store, Fleet: throttle.FleetConfig{Members: 4, Deadline: time.Second}, ...}
//
// Each key is a file of its own. A call replaces the file as a whole, under a lock
// that all processes respect (flock, or LockFileEx on Windows). If a process dies
// at any point, the file is as it was before the call or after it, and no lock
// remains. The clock is the machine's. The directory must be on a local disk,
// because such locks do not work well on network file systems.
//
// If a file holds something that no Store writes, or that cannot be true, the call
// that finds it renames it to end in ".bad" and returns an error that says so. The
// next call begins the key anew, with what its process remembers.
//
// A file that is put back from a backup says that less was granted than really was.
// On Linux that is noticed: the key is not charged for a second, in which processes
// that remember more say so. On other systems it is noticed when one of them asks.
//
// How long a call takes depends on the file system, and with [Config.Sync] on the
// disk: tens of microseconds to tens of milliseconds. While another process holds
// the lock, the call tries again every millisecond. Set Fleet.Deadline to a second
// instead of its default of 50 ms. A call that hangs in the file system for longer
// than that is abandoned, and the units that it charges are lost to its requests.
package filestore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"github.com/weirhttp/weir/throttle/store"
)

// Config says how files are written.
type Config struct {
	// Sync makes every write wait until it is on the disk. Without it, a crash of
	// the machine (not of a process) may lose what was spent last, or a whole file,
	// whose budget then begins anew. Zero: do not wait.
	Sync bool
}

// A Store is a [store.Store] in a directory. It holds no file open between
// calls, so there is nothing to close. Two Stores of one directory, in one
// process or in two, share its budgets.
type Store struct {
	dir      string
	locks    string // where the locks are: dir
	sync     bool
	now      func() time.Time
	flush    func(dir string) error
	replaced func(path string, at time.Time) bool // the ledger's file, after it was written
	turns    [shards]chan struct{}                // this Store's own turn at a shard's lock
	overdue  atomic.Int64                         // calls that were left behind, see within
	swept    [shards]time.Time                    // when this Store last swept the shard; who has the lock may look
}

const (
	shards = 64 // directories of keys, each with a lock
	retry  = time.Millisecond

	// sweepEvery bounds what killed writers leave in a shard that is written to:
	// what is killed in an hour. A sweep reads one directory.
	sweepEvery = time.Hour
)

// Open returns the Store of dir, which it makes if need be. Files get mode 0600.
func Open(dir string, c Config) (*Store, error) {
	if dir == "" {
		return nil, errors.New("filestore: dir is empty")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("filestore: %w", err)
	}
	s := &Store{dir: dir, locks: dir, sync: c.Sync, now: time.Now, flush: syncDir}
	s.replaced = s.replacedFile
	for i := range s.turns {
		s.turns[i] = make(chan struct{}, 1)
	}
	return s, nil
}

// Book implements [store.Store]. With several keys, a process that dies
// between the writes has charged some of them: their units are lost, as after
// any booking whose reply was lost.
func (s *Store) Book(ctx context.Context, b store.Booking) (store.Booked, error) {
	return within(ctx, &s.overdue, func() (store.Booked, error) { return s.book(ctx, b) })
}

func (s *Store) book(ctx context.Context, b store.Booking) (store.Booked, error) {
	if err := b.Validate(); err != nil {
		return store.Booked{}, err
	}
	b = valid(b)
	files := make([]file, len(b.Draws))
	for i, d := range b.Draws {
		files[i] = s.file(d.Key)
	}
	unlock, err := s.lock(ctx, files...)
	if err != nil {
		return store.Booked{}, s.fail("book", b.Draws[0].Key, err)
	}
	defer unlock()
	ledgers := make([]store.Ledger, len(files))
	for i := range files {
		c, err := files[i].read()
		if err != nil {
			return store.Booked{}, s.fail("book", b.Draws[i].Key, files[i].aside(err))
		}
		ledgers[i] = s.of(files[i], c)
	}
	now := s.now()
	next, r := store.Book(now, ledgers, b)
	for i, l := range next {
		if l.Gen == 0 {
			continue // nothing to keep
		}
		if err := s.write(files[i], b.Draws[i].Key, l, now); err != nil {
			return store.Booked{}, s.fail("book", b.Draws[i].Key, err)
		}
	}
	return r, nil
}

// Refund implements [store.Store].
func (s *Store) Refund(ctx context.Context, r store.Refund) error {
	_, err := within(ctx, &s.overdue, func() (struct{}, error) { return struct{}{}, s.refund(ctx, r) })
	return err
}

func (s *Store) refund(ctx context.Context, r store.Refund) error {
	if err := r.Validate(); err != nil {
		return err
	}
	r.Limits = validIDs(r.Limits)
	return s.change(ctx, "refund", r.Key, func(l store.Ledger, now time.Time) store.Ledger {
		return l.AfterRefund(now, r)
	})
}

// Tell implements [store.Store].
func (s *Store) Tell(ctx context.Context, key string, n store.News) error {
	_, err := within(ctx, &s.overdue, func() (struct{}, error) { return struct{}{}, s.tell(ctx, key, n) })
	return err
}

func (s *Store) tell(ctx context.Context, key string, n store.News) error {
	if err := n.Validate(); err != nil {
		return err
	}
	n.Stated, n.Refill = slices.Clone(n.Stated), slices.Clone(n.Refill)
	for i := range n.Refill {
		n.Refill[i].ID = utf8(n.Refill[i].ID)
	}
	for i := range n.Stated {
		n.Stated[i].ID, n.Stated[i].Unit = utf8(n.Stated[i].ID), utf8(n.Stated[i].Unit)
	}
	return s.change(ctx, "tell", key, func(l store.Ledger, now time.Time) store.Ledger {
		return l.AfterNews(now, n)
	})
}

// change replaces the ledger of one key.
func (s *Store) change(ctx context.Context, op, key string, step func(store.Ledger, time.Time) store.Ledger) error {
	f := s.file(key)
	unlock, err := s.lock(ctx, f)
	if err != nil {
		return s.fail(op, key, err)
	}
	defer unlock()
	c, err := f.read()
	if err != nil {
		return s.fail(op, key, f.aside(err))
	}
	now := s.now()
	next := step(s.of(f, c), now)
	if next.Gen == 0 {
		return nil // nothing is known of the key
	}
	if err := s.write(f, key, next, now); err != nil {
		return s.fail(op, key, err)
	}
	return nil
}

// lock takes the locks of files' shards in ascending order, so that no two
// bookings wait for each other.
func (s *Store) lock(ctx context.Context, files ...file) (unlock func(), err error) {
	var order []int
	for _, f := range files {
		order = append(order, f.shard)
	}
	slices.Sort(order)
	order = slices.Compact(order)
	var held []func()
	unlock = func() {
		for _, f := range slices.Backward(held) {
			f()
		}
	}
	for _, i := range order {
		f, err := s.lockShard(ctx, i)
		if err != nil {
			unlock()
			return nil, err
		}
		held = append(held, f)
	}
	return unlock, nil
}

// lockShard lets this Store's callers take turns, so that only one of them
// tries the lock that is shared with others.
func (s *Store) lockShard(ctx context.Context, i int) (unlock func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case s.turns[i] <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l := flock.New(filepath.Join(s.locks, fmt.Sprintf("%02x.lock", i)), flock.SetPermissions(0o600))
	if _, err := l.TryLockContext(ctx, retry); err != nil {
		<-s.turns[i]
		return nil, err
	}
	return func() {
		_ = l.Unlock() // closing the file releases it, whatever Unlock says
		<-s.turns[i]
	}, nil
}

// fail says which key and where. A lock that did not come in time is that of a
// store that is alive.
func (s *Store) fail(op, key string, err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errCorrupt) {
		return fmt.Errorf("filestore: %s key %q in %s: %w: %w", op, key, s.dir, store.ErrBusy, err)
	}
	return fmt.Errorf("filestore: %s key %q in %s: %w", op, key, s.dir, err)
}

func (s *Store) file(key string) file {
	sum := sha256.Sum256([]byte(key))
	shard := int(sum[0]) % shards
	dir := filepath.Join(s.dir, fmt.Sprintf("%02x", shard))
	return file{dir: dir, path: filepath.Join(dir, hex.EncodeToString(sum[:16])+".json"), shard: shard}
}

// valid makes names what JSON can hold.
func valid(b store.Booking) store.Booking {
	b.Draws = slices.Clone(b.Draws)
	for i := range b.Draws {
		d := &b.Draws[i]
		d.Limits = validIDs(d.Limits)
		d.Units = slices.Clone(d.Units)
		for j := range d.Units {
			d.Units[j].Unit = utf8(d.Units[j].Unit)
		}
	}
	return b
}

func validIDs(ls []store.Limit) []store.Limit {
	ls = slices.Clone(ls)
	for i := range ls {
		ls[i].ID = utf8(ls[i].ID)
	}
	return ls
}

func utf8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
