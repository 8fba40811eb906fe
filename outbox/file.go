package outbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

var (
	// ErrClosed is what the methods return after Close.
	ErrClosed = errors.New("outbox: closed")

	// ErrCorrupt is in the chain of errors that say the file cannot be
	// trusted: cut short, overwritten, or not an outbox. Nothing is repaired
	// or skipped by itself, because what is skipped is lost. The file may stay
	// locked until the process ends; one put in its place is not.
	ErrCorrupt = errors.New("file is corrupt")

	// ErrLocked is in the chain of New's error if the file is open elsewhere.
	ErrLocked = errors.New("file is in use by another process or outbox")
)

// lockWait is how long New waits for the file: a predecessor that was told to
// stop may still be closing.
const lockWait = time.Second

// The buckets. pending and dead hold records by id, which is eight bytes, big
// endian; notes holds notes by id; pending's sequence is the last id given. There
// may be a fourth, spare.
func buckets() []string { return []string{"pending", "dead", "notes"} }

// file is the bbolt database behind an outbox. Writes of concurrent callers
// share one transaction, and so one sync of the disk.
type file struct {
	path string
	db   *bolt.DB
	os   *os.File
	slot chan struct{} // held by who writes

	readers sync.RWMutex // held for writing by who needs the pages that readers may still see

	mu    sync.Mutex
	queue []*write

	closed atomic.Bool
	broken atomic.Pointer[error] // set once bbolt panicked: its locks may be held for ever
}

type write struct {
	fn    func(*bolt.Tx) error
	then  func() // called once it is on the disk, in the order of the writes; may be nil
	grows bool
	done  chan error // holds one
}

// openFile opens the file at path, or creates it: elsewhere first, so that a
// process killed meanwhile leaves no half of a file behind.
func openFile(path string) (*file, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if err := create(path); err != nil {
			return nil, (&file{path: path}).named(err)
		}
	}
	for {
		f, err := open(path)
		if err != nil {
			return nil, (&file{path: path}).named(err)
		}
		// While this one waited for the lock, another may have put a smaller
		// file in its place, and nobody would find what is kept in the old one.
		if f.isAt(path) {
			return f, nil
		}
		if err := f.close(); err != nil {
			return nil, f.named(err)
		}
	}
}

// isAt reports whether f is what others find at path.
func (f *file) isAt(path string) bool {
	ours, err := f.os.Stat()
	theirs, err2 := os.Stat(path)
	return err != nil || err2 != nil || os.SameFile(ours, theirs)
}

func create(path string) error {
	dir, name := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	made, err := os.CreateTemp(dir, name+".*.new") // mode 0600
	if err != nil {
		return err
	}
	made.Close()
	defer os.Remove(made.Name())
	f, err := open(made.Name())
	if err != nil {
		return err
	}
	if err := f.close(); err != nil {
		return err
	}
	// Unlike Rename, Link never replaces what another process made meanwhile.
	err = os.Link(made.Name(), path)
	if _, missing := os.Lstat(path); err != nil && missing != nil {
		err = os.Rename(made.Name(), path) // a file system without links
	} else if missing == nil {
		err = nil
	}
	if err == nil {
		syncDir(dir)
	}
	return err
}

// syncDir puts the names in a directory on the disk, where the system can.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		d.Close()
	}
}

func open(path string) (*file, error) {
	f := &file{path: path, slot: make(chan struct{}, 1)}
	options := &bolt.Options{Timeout: lockWait, FreelistType: bolt.FreelistMapType, OpenFile: f.openOS, NoFreelistSync: true}
	err := f.guard(func() (err error) {
		if f.db, err = bolt.Open(path, 0o600, options); err != nil {
			return err
		}
		f.db.NoFreelistSync = false // only Open was not to write a list that squeeze left out: it may not fit
		var info os.FileInfo
		if info, err = f.os.Stat(); err != nil {
			return err
		}
		missing := false
		err = f.db.View(func(tx *bolt.Tx) error {
			if info.Size() < tx.Size() {
				return fmt.Errorf("%w: cut short: %d bytes of %d", ErrCorrupt, info.Size(), tx.Size())
			}
			for _, name := range buckets() {
				missing = missing || tx.Bucket([]byte(name)) == nil
			}
			return nil
		})
		if err != nil || !missing { // nothing is written, so that a file on a full disk opens
			return err
		}
		return f.db.Update(func(tx *bolt.Tx) error {
			for _, name := range buckets() {
				if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		f.close()
		return nil, sayWhat(err)
	}
	return f, nil
}

func (f *file) openOS(name string, flag int, mode os.FileMode) (*os.File, error) {
	file, err := os.OpenFile(name, flag, mode)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err == nil && info.Mode().Perm()&0o077 != 0 {
		if err := file.Chmod(0o600); err != nil {
			file.Close()
			return nil, err
		}
	}
	f.os = file
	return file, nil
}

func sayWhat(err error) error {
	for _, bad := range []error{berrors.ErrInvalid, berrors.ErrVersionMismatch, berrors.ErrChecksum, berrors.ErrIncompatibleValue} {
		if errors.Is(err, bad) {
			return fmt.Errorf("%w: %v", ErrCorrupt, err)
		}
	}
	if errors.Is(err, berrors.ErrTimeout) {
		return ErrLocked
	}
	return err
}

// guard calls into bbolt, which panics on pages that make no sense and faults
// on pages that are not there. After that it is not called again.
func (f *file) guard(fn func() error) (err error) {
	if f.closed.Load() {
		return ErrClosed
	}
	if p := f.broken.Load(); p != nil {
		return *p
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if errors.Is(err, berrors.ErrDatabaseNotOpen) {
			err = ErrClosed // between the look above and the transaction
		}
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", ErrCorrupt, p)
			f.broken.Store(&err)
		}
	}()
	return fn()
}

// named says which file an error is about, unless the file is not to blame.
func (f *file) named(err error) error {
	if err == nil || errors.Is(err, ErrClosed) || errors.Is(err, ErrUnknown) {
		return err
	}
	return fmt.Errorf("outbox: %s: %w", f.path, err)
}

// view runs fn in a transaction that reads. fn must not call user code.
func (f *file) view(fn func(*bolt.Tx) error) error {
	f.readers.RLock()
	defer f.readers.RUnlock()
	return f.named(f.guard(func() error { return f.db.View(fn) }))
}

// write runs fn in one transaction with the writes of other callers. It returns when
// the transaction is on the disk and then was called. If the transaction fails, each
// write is tried in a transaction of its own, so that one that finds no room, say, does
// not stop another that makes some. fn may be called several times for that.
func (f *file) write(fn func(*bolt.Tx) error, then func()) error {
	return f.submit(&write{fn: fn, then: then, done: make(chan error, 1)})
}

// grow is write for what makes the file larger.
func (f *file) grow(fn func(*bolt.Tx) error, then func()) error {
	return f.submit(&write{fn: fn, then: then, grows: true, done: make(chan error, 1)})
}

func (f *file) submit(w *write) error {
	f.mu.Lock()
	f.queue = append(f.queue, w)
	f.mu.Unlock()
	select {
	case f.slot <- struct{}{}:
		f.commit()
		<-f.slot
		return <-w.done // by us, or by who had the slot before
	case err := <-w.done:
		return err
	}
}

// commit writes what is queued; the caller holds the slot.
func (f *file) commit() {
	f.mu.Lock()
	queue := f.queue
	f.queue = nil
	f.mu.Unlock()
	fits, err := f.transact(queue)
	if err == nil {
		f.finish(queue, nil)
		return
	}
	for i := range queue {
		one := queue[i : i+1]
		if len(queue) > 1 {
			fits, err = f.transact(one)
		}
		if !fits && !one[0].grows {
			err = f.squeeze(one)
		}
		f.finish(one, err)
	}
}

// transact writes all of queue in one transaction. If it fails, fits says whether that
// is due to a write of queue, and not to the disk.
func (f *file) transact(queue []*write) (fits bool, err error) {
	fits = true
	if len(queue) == 0 {
		return fits, nil
	}
	err = f.named(f.guard(func() error {
		return f.db.Update(func(tx *bolt.Tx) error {
			if slices.ContainsFunc(queue, func(w *write) bool { return w.grows }) {
				if err := setAside(tx); err != nil {
					return err
				}
			}
			for _, w := range queue {
				if err := w.fn(tx); err != nil {
					return err
				}
			}
			fits = false // if what follows fails
			return nil
		})
	}))
	return fits || err == nil, err
}

func (f *file) finish(queue []*write, err error) {
	for _, w := range queue {
		if err == nil && w.then != nil {
			w.then()
		}
	}
	for _, w := range queue {
		w.done <- err
	}
}

// close waits for transactions that run. It may be called again.
func (f *file) close() error {
	f.slot <- struct{}{}
	defer func() { <-f.slot }()
	if f.closed.Swap(true) {
		return nil
	}
	if f.broken.Load() != nil || f.db == nil {
		if f.os != nil {
			return f.os.Close() // the mapping stays, and with it the lock
		}
		return nil
	}
	return f.db.Close()
}

func key(id uint64) []byte { return binary.BigEndian.AppendUint64(nil, id) }
