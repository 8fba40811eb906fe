package outbox

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"
)

func TestRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outbox.db")
	s := &server{down: true}
	var want []Entry
	for i := range 4 {
		o := box(t, s, Config{Path: path})
		if got := mustList(t, o); !reflect.DeepEqual(got, want) {
			t.Errorf("opened for the %d. time: %+v\nwant %+v", i+1, got, want)
		}
		mustKeep(t, o, "http://api.example/?q=1", "body")
		want = mustList(t, o)
		if err := o.Close(); err != nil {
			t.Fatal(err)
		}
	}
	e := want[3]
	e.Kept, e.Key = time.Time{}, ""
	if got := (Entry{ID: "0000000000000004", Method: "POST", URL: "http://api.example/?q=1", Host: "api.example", Queue: "api.example", Body: 4}); e != got {
		t.Errorf("got %+v, want %+v", e, got)
	}
}

// An id is never given again, even if its entry is gone before a restart.
func TestIDsAreNotReused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outbox.db")
	s := &server{down: true}
	last := ""
	for range 3 {
		o := box(t, s, Config{Path: path})
		id := mustKeep(t, o, "http://api.example/", "")
		if id <= last {
			t.Errorf("%s after %s", id, last)
		}
		last = id
		if err := o.Discard(id); err != nil {
			t.Fatal(err)
		}
		o.Close()
	}
}

func TestFileMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are Unix's")
	}
	path := filepath.Join(t.TempDir(), "outbox.db")
	for _, mode := range []os.FileMode{0, 0o644} {
		if mode != 0 {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		o := box(t, nil, Config{Path: path})
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
		}
		o.Close()
	}
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(files) != 1 {
		t.Errorf("left behind: %v, %v", files, err)
	}
}

// Two cannot have one file.
func TestLocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "outbox.db")
		o := box(t, nil, Config{Path: path})
		if _, err := New(nil, Config{Path: path, Patterns: []string{"h"}}); !errors.Is(err, ErrLocked) {
			t.Errorf("%v, want %v", err, ErrLocked)
		}
		o.Close()
		box(t, nil, Config{Path: path})
	})
}

func TestNoDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "outbox.db")
	if _, err := New(nil, Config{Path: path, Patterns: []string{"h"}}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want %v", err, os.ErrNotExist)
	}
}

// filled is the path of a closed outbox with some entries, and its bytes.
func filled(t *testing.T) (string, []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "outbox.db")
	o := box(t, &server{down: true}, Config{Path: path})
	for range 20 {
		mustKeep(t, o, "http://api.example/", string(bytes.Repeat([]byte("payload "), 1000)))
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, data
}

// replace puts another file in the place of the one at path.
func replace(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A file that was cut short is an error wherever it was cut, never a panic, and
// another can be put in its place.
func TestTornFile(t *testing.T) {
	path, data := filled(t)
	for cut := 4096 / 2; cut < len(data); cut += 4096 * 5 / 2 {
		replace(t, path, data[:cut])
		o, err := New(nil, Config{Path: path, Patterns: []string{"h"}})
		if err == nil { // bbolt makes files longer than it needs
			if n := len(mustList(t, o)); n != 20 {
				t.Errorf("cut at %d of %d: opens with %d entries", cut, len(data), n)
			}
			o.Close()
			continue
		}
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut at %d of %d: %v", cut, len(data), err)
		}
	}
	replace(t, path, data)
	if n := len(mustList(t, box(t, nil, Config{Path: path}))); n != 20 {
		t.Errorf("restored with %d entries", n)
	}
}

// A byte that changed in an entry, wherever, is found when the file is opened.
func TestCorruptEntry(t *testing.T) {
	path, data := filled(t)
	for marker, at := range map[string]int{"payload payload": 0, `"Kept":`: 12} {
		bad := bytes.Clone(data)
		for i := 0; ; i++ { // all copies: some lie in free pages
			next := bytes.Index(data[i:], []byte(marker))
			if next < 0 {
				break
			}
			i += next
			bad[i+at] ^= 1
		}
		replace(t, path, bad)
		if _, err := New(nil, Config{Path: path, Patterns: []string{"h"}}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%v, want %v", err, ErrCorrupt)
		}
	}
}

// A file that is something else is not overwritten.
func TestForeignFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outbox.db")
	text := bytes.Repeat([]byte("not a database\n"), 1000)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(nil, Config{Path: path, Patterns: []string{"h"}}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%v, want %v", err, ErrCorrupt)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, text) {
		t.Errorf("the file was changed: %v", err)
	}
}

// Once bbolt has panicked it is not called again: nothing hangs on its locks,
// requests get the base's error or, where older ones wait, that of the file, and
// what had been kept is still in the file.
func TestBrokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outbox.db")
	o := box(t, &server{down: true}, Config{Path: path})
	id := mustKeep(t, o, "http://api.example/", "x")
	err := o.file.write(func(tx *bolt.Tx) error { panic("page 7 already freed") }, nil)
	if !errors.Is(err, ErrCorrupt) {
		t.Errorf("%v, want %v", err, ErrCorrupt)
	}
	if _, err := post(t, o, "http://api.example/", "y"); !errors.Is(err, ErrCorrupt) {
		t.Errorf("behind another: %v, want %v", err, ErrCorrupt)
	}
	if _, err := post(t, o, "http://other.api.example/", "y"); err != errDown {
		t.Errorf("%v, want %v", err, errDown)
	}
	if got := o.Stats(); got.Errors != 2 || got.Pending != 1 {
		t.Errorf("%+v", got)
	}
	for what, err := range map[string]error{
		"List":    second(o.List()),
		"Discard": o.Discard(id),
		"Requeue": o.Requeue(id),
		"Drain":   second(o.Drain(t.Context())),
		"Run":     o.Run(t.Context(), 0),
		"Request": second(o.Request(t.Context(), id)),
	} {
		if !errors.Is(err, ErrCorrupt) || !strings.HasPrefix(err.Error(), "outbox: "+path+": file is corrupt: page 7") {
			t.Errorf("%s: %v, want %v", what, err, ErrCorrupt)
		}
	}
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	replace(t, path, data)
	if n := len(mustList(t, box(t, nil, Config{Path: path}))); n != 1 {
		t.Errorf("reopened with %d entries", n)
	}
}

func second[T any](_ T, err error) error { return err }

// After Close requests pass and methods say so.
func TestClosed(t *testing.T) {
	o := box(t, &server{down: true}, Config{})
	id := mustKeep(t, o, "http://api.example/", "x")
	for range 2 {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := post(t, o, "http://api.example/", "y"); err != errDown {
		t.Errorf("%v, want %v", err, errDown)
	}
	for what, err := range map[string]error{
		"List":    second(o.List()),
		"Discard": o.Discard(id),
		"Drain":   second(o.Drain(t.Context())),
		"Run":     o.Run(t.Context(), 0),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v, want %v", what, err, ErrClosed)
		}
	}
}

func TestUnknownIDs(t *testing.T) {
	o := box(t, &server{down: true}, Config{})
	id := mustKeep(t, o, "http://api.example/", "x")
	for _, call := range []func(string) error{o.Discard, o.Requeue, func(id string) error { return second(o.Request(t.Context(), id)) }} {
		if err := call("00000000000000ff"); !errors.Is(err, ErrUnknown) {
			t.Errorf("%v, want %v", err, ErrUnknown)
		}
		for _, bad := range []string{"", "1", "x", "00000000000000FF", "-000000000000001"} {
			if err := call(bad); err == nil || errors.Is(err, ErrUnknown) {
				t.Errorf("%q: %v, want it refused as no id", bad, err)
			}
		}
	}
	if err := o.Requeue(id); !errors.Is(err, ErrUnknown) {
		t.Errorf("Requeue of a pending entry: %v", err)
	}
	if r, err := o.Request(t.Context(), id); err != nil || r.Method != http.MethodPost || r.ContentLength != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}
