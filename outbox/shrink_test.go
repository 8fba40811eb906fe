package outbox

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// mostlyFree is the path of a closed file that is due to shrink, what is in it,
// and its size.
func mostlyFree(t *testing.T) (path string, entries []Entry, size int64) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "outbox.db")
	o := box(t, nil, Config{Path: path, Patterns: []string{}})
	ids := make([]string, 60)
	for i := range ids {
		body := fmt.Sprintf("for event%d", i) + strings.Repeat("x", 1<<16)
		r := must(http.NewRequest("POST", fmt.Sprintf("http://h%d/event%d", i%3, i), strings.NewReader(body)))
		ids[i] = must(o.Enqueue(r))
	}
	var wg sync.WaitGroup
	for i, id := range ids {
		if i%6 > 0 {
			wg.Go(func() { must(id, o.Discard(id)) })
		}
	}
	wg.Wait()
	entries = mustList(t, o)
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
	return path, entries, must(os.Stat(path)).Size()
}

// A file that is mostly free pages is small after New, with the same in it and
// the same id to come; a link to it stays one, and nothing else is left behind.
func TestFileShrinks(t *testing.T) {
	path, want, before := mostlyFree(t)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		if runtime.GOOS != "windows" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	o := box(t, nil, Config{Path: link, Patterns: []string{}})
	if got := mustList(t, o); !reflect.DeepEqual(got, want) || len(got) != 10 {
		t.Errorf("%d entries, want %d", len(got), len(want))
	}
	info := must(os.Stat(path))
	if info.Size() > before/3 || info.Mode().Perm() != 0o600 {
		t.Errorf("%d bytes of %d, mode %v", info.Size(), before, info.Mode())
	}
	if id := must(o.Enqueue(must(http.NewRequest("POST", "http://h/", nil)))); id != formatID(61) {
		t.Errorf("the next id is %s", id)
	}
	if err := o.Discard(formatID(61)); err != nil {
		t.Error(err)
	}
	if info := must(os.Lstat(link)); info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced")
	}
	if files := must(os.ReadDir(filepath.Dir(path))); len(files) != 1 {
		t.Errorf("left behind: %v", files)
	}
	o.Close()
	o = box(t, nil, Config{Path: path, Patterns: []string{}}) // not again: it has no more to give
	if again := must(os.Stat(path)); !os.SameFile(info, again) || !reflect.DeepEqual(mustList(t, o), want) {
		t.Errorf("written anew, %d bytes of %d", again.Size(), info.Size())
	}
}

// Killed while New writes the file anew, it is still there, whole.
func TestKillWhileShrinking(t *testing.T) {
	source, entries, _ := mostlyFree(t)
	data := must(os.ReadFile(source))
	for i := range 20 {
		path := filepath.Join(t.TempDir(), "outbox.db")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		l := newLedger()
		for _, e := range entries {
			event := e.URL[strings.LastIndexByte(e.URL, '/')+1:]
			l.kept[event], l.ids[e.ID] = e.ID, event
		}
		l.killOne(t, path, false, 1, time.Duration(i)*time.Millisecond)
		l.survives(t, path)
	}
}

// survives checks that what was kept is in the file, or was delivered.
func (l *ledger) survives(t *testing.T, path string) {
	t.Helper()
	left := map[string]bool{}
	for _, e := range mustList(t, box(t, nil, Config{Path: path, Patterns: []string{}})) {
		left[e.ID] = true
	}
	for event, id := range l.kept {
		if !left[id] && l.delivered[event] == 0 {
			t.Errorf("entry %s is lost", id)
		}
	}
}

// Who waited for a file while it was put aside for a smaller one does not get
// the one that nobody will find again.
func TestNotTheFilePutAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "outbox.db")
		old := box(t, nil, Config{Path: path, Patterns: []string{}})
		done := make(chan *Transport)
		go func() { done <- must(New(nil, Config{Path: path, Patterns: []string{}})) }()
		synctest.Wait() // it waits for the lock
		other := filepath.Join(t.TempDir(), "other.db")
		made := box(t, nil, Config{Path: other, Patterns: []string{}})
		must(made.Enqueue(must(http.NewRequest("POST", "http://h/", nil))))
		made.Close()
		if err := os.Rename(other, path); err != nil {
			t.Fatal(err)
		}
		old.Close()
		o := <-done
		defer o.Close()
		if n := len(mustList(t, o)); n != 1 {
			t.Errorf("%d entries, want those of the file at the path", n)
		}
	})
}

// Shrinking that fails leaves the file as it is and is no error.
func TestShrinkFails(t *testing.T) {
	short, want, before := mostlyFree(t)
	path := filepath.Join(filepath.Dir(short), strings.Repeat("x", 250)) // no name of a file beside it would fit
	if err := os.Rename(short, path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("the file system takes no such names: ", err)
	}
	o := box(t, nil, Config{Path: path, Patterns: []string{}})
	if got := mustList(t, o); !reflect.DeepEqual(got, want) || must(os.Stat(path)).Size() != before {
		t.Errorf("%d entries, want %d", len(got), len(want))
	}
}
