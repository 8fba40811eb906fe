package outbox

import (
	"errors"
	"os"
	"path/filepath"

	bolt "go.etcd.io/bbolt"
)

// shrinkFrom is the size below which a file is left as it is: more than it has
// to spare anyway.
const shrinkFrom = 2 << 20

// shrink writes the file anew, without its free and spare pages, if they are more than
// half of it. It is called before the file is used. If it cannot be done, for
// want of space, say, the file stays as it is; it is an error only if the file
// turns out to be corrupt, or can no longer be used.
func (f *file) shrink() error {
	var size int64
	stats := f.db.Stats()
	free := stats.FreePageN + stats.PendingPageN
	err := f.view(func(tx *bolt.Tx) error {
		size = tx.Size()
		if tx.Bucket([]byte(spareName)) != nil {
			free += sparePages
		}
		return nil
	})
	if err != nil {
		return err
	}
	if size < shrinkFrom || int64(free)*int64(f.db.Info().PageSize) <= size/2 {
		return nil
	}
	path, err := filepath.EvalSymlinks(f.path) // a link stays one
	if err != nil {
		return nil
	}
	made, err := f.copyTo(path)
	if err != nil {
		if errors.Is(err, ErrCorrupt) {
			return err
		}
		return nil
	}
	// Both are locked now, so nobody can have either when the name changes hands.
	if err := os.Rename(made.path, path); err != nil {
		made.close()
		os.Remove(made.path)
		return nil
	}
	syncDir(filepath.Dir(path))
	old := f.db
	f.db, f.os = made.db, made.os
	return old.Close()
}

// copyTo returns an open copy of f, beside path and on the disk, without the bucket
// spare.
func (f *file) copyTo(path string) (*file, error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.new")
	if err != nil {
		return nil, err
	}
	tmp.Close()
	made, err := open(tmp.Name())
	if err != nil {
		os.Remove(tmp.Name())
		return nil, err
	}
	err = f.guard(func() error {
		if err := f.db.Update(giveBack); err != nil {
			return err
		}
		for _, name := range buckets() { // Compact makes them itself
			if err := made.db.Update(func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte(name)) }); err != nil {
				return err
			}
		}
		made.db.NoSync = true
		if err := bolt.Compact(made.db, f.db, 1<<20); err != nil {
			return err
		}
		made.db.NoSync = false
		return made.db.Sync()
	})
	if err != nil {
		made.close()
		os.Remove(tmp.Name())
		return nil, err
	}
	return made, nil
}
