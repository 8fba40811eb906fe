package filestore

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// A file that is put back from a backup is not charged for a second, whoever comes
// first, so that one that remembers more can say so. After that it is as any other.
func TestFilesThatArePutBackAreHealed(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the system does not say when a file was changed")
	}
	s, err := Open(t.TempDir(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	day := store.Limit{ID: "l", Kind: store.LogLimit, Size: 10, Per: 24 * time.Hour}
	book := func(n int64, seen store.Seen, want store.Outcome) store.Booked {
		t.Helper()
		b := request("k", n, day)
		b.Draws[0].Seen = seen
		r, err := s.Book(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		if r.Outcome != want {
			t.Fatalf("outcome %d after %v, want %d", r.Outcome, r.Wait, want)
		}
		return r
	}
	s.now = func() time.Time { return time.Now().Add(-time.Hour) }
	book(4, store.Seen{}, store.BookedAll)
	names, _ := filepath.Glob(filepath.Join(s.dir, "*", "*.json"))
	backup, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	last := book(3, store.Seen{}, store.BookedAll)
	if err := os.WriteFile(names[0], backup, 0o600); err != nil {
		t.Fatal(err)
	}

	s.now = time.Now
	if r := book(1, store.Seen{}, store.Refused); r.Wait > store.Ahead {
		t.Errorf("a newcomer is to wait %v", r.Wait)
	}
	book(1, store.Seen{Standing: last.Keys[0], Age: time.Hour}, store.Refused)
	s.now = func() time.Time { return time.Now().Add(store.Ahead) }
	book(2, store.Seen{}, store.BookedAll)
	book(1, store.Seen{}, store.BookedAll)
	if r := book(1, store.Seen{}, store.Refused); r.Wait < time.Hour {
		t.Errorf("what is spent comes back in %v", r.Wait)
	}
}
