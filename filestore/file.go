package filestore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// file is where a key's ledger is.
type file struct {
	dir, path string
	shard     int
}

// content is what a file holds. Key is for people.
type content struct {
	Key    string       `json:"key"`
	Era    int64        `json:"era,omitempty"` // see store.Ledger; zero until the file is put back
	Ledger store.Ledger `json:"ledger"`
}

const (
	unfinished = ".new-" // begins the names of files that are not whole yet
	bad        = ".bad"  // ends the names of those that were corrupt, the last one of each key
)

// errCorrupt says that no Store wrote what a file holds, or that it cannot be
// true. One that the machine's crash has emptied says nothing, and stands in
// nobody's way.
var errCorrupt = errors.New("it does not hold a valid budget")

// aside renames a corrupt file, so that somebody can look at it, and says so.
// The next call begins anew, with what its process remembers: a budget that
// nobody can use until somebody looks is worse.
func (f file) aside(err error) error {
	if !errors.Is(err, errCorrupt) {
		return err
	}
	if e := os.Rename(f.path, f.path+bad); e != nil {
		return errors.Join(err, e)
	}
	return fmt.Errorf("%w; it was renamed to %s, and the next call begins the key anew", err, f.path+bad)
}

func (f file) read() (c content, err error) {
	data, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return content{}, nil
	}
	if err != nil {
		return content{}, err
	}
	if n := len(data); n == 0 || data[n-1] == 0 { // file systems know names and sizes before bytes
		return content{}, nil
	}
	err = json.Unmarshal(data, &c)
	if err == nil {
		err = c.Ledger.Validate()
	}
	if err == nil && (c.Era < 0 || c.Era > mostEra) {
		err = fmt.Errorf("the number of its era, %d, is out of range", c.Era)
	}
	if err != nil {
		return content{}, fmt.Errorf("%s: %w: %w", f.path, errCorrupt, err)
	}
	return c, nil
}

// write replaces f by a new file of the same directory, which others see whole
// or not at all. A file of a process that died in between is never read, and is
// swept up by the next new key of the shard, the first write of a process to it,
// or a later one: see sweepEvery.
func (s *Store) write(f file, key string, l store.Ledger, now time.Time) error {
	data, err := json.Marshal(content{strconv.QuoteToASCII(key), l.Era, l})
	if err != nil {
		return err
	}
	_, err = os.Lstat(f.path)
	fresh := errors.Is(err, fs.ErrNotExist)
	if since := now.Sub(s.swept[f.shard]); fresh || since >= sweepEvery || since < 0 {
		s.sweep(f, now)
		s.swept[f.shard] = now
	}
	if fresh {
		if err := os.MkdirAll(f.dir, 0o700); err != nil {
			return err
		}
		if s.sync {
			if err := s.flush(s.dir); err != nil { // f.dir may be new
				return err
			}
		}
	}
	tmp, err := os.CreateTemp(f.dir, unfinished)
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err == nil && s.sync {
		err = tmp.Sync()
	}
	if e := tmp.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(tmp.Name(), f.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	if s.sync {
		return s.flush(f.dir)
	}
	return nil
}

// syncDir makes the names in a directory last. Not every system can.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync()
	return d.Close()
}

// sweep removes what was left in the shard by processes that died, and idle
// ones of two other keys, so that neither can pile up. The shard's lock is held,
// which every process holds while it writes: nobody is still writing there.
func (s *Store) sweep(f file, now time.Time) {
	entries, _ := os.ReadDir(f.dir) // by name: the unfinished come first
	for len(entries) > 0 && strings.HasPrefix(entries[0].Name(), unfinished) {
		_ = os.Remove(filepath.Join(f.dir, entries[0].Name()))
		entries = entries[1:]
	}
	for range min(2, len(entries)) {
		path := filepath.Join(f.dir, entries[rand.IntN(len(entries))].Name())
		if path == f.path {
			continue // it is about to be written
		}
		if c, err := (file{path: path}).read(); err == nil && c.Ledger.Idle(now) {
			_ = os.Remove(path)
		}
	}
}
