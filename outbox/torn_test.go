package outbox

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

const (
	pageSize   = 4096
	sectorSize = 512
)

// A commit that is only partly on the disk, whichever sectors of it, leaves what
// the commit before it promised, and an outbox that goes on.
func TestTornWrites(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	path := filepath.Join(t.TempDir(), "outbox.db")
	empty := must(bolt.Open(path, 0o600, &bolt.Options{PageSize: pageSize})) // the system's pages may be larger
	if err := empty.Close(); err != nil {
		t.Fatal(err)
	}
	o := box(t, &server{}, Config{Path: path, Patterns: []string{}})
	commits := func() (id int) {
		if err := o.file.view(func(tx *bolt.Tx) error { id = tx.ID(); return nil }); err != nil {
			t.Fatal(err)
		}
		return id
	}
	var ids []string
	for i := range 28 {
		before, want, first := must(os.ReadFile(path)), mustList(t, o), commits()
		if i%4 == 3 {
			k := random.IntN(len(ids))
			if err := o.Discard(ids[k]); err != nil {
				t.Fatal(err)
			}
			ids = append(ids[:k], ids[k+1:]...)
		} else {
			body := strings.NewReader(strings.Repeat("x", random.IntN(20000)))
			ids = append(ids, must(o.Enqueue(must(http.NewRequest("POST", fmt.Sprintf("http://h%d/", i%3), body)))))
		}
		after, now := must(os.ReadFile(path)), mustList(t, o)
		if commits() != first+1 {
			t.Fatalf("%d commits for one change", commits()-first)
		}
		for range 3 {
			opensWith(t, tear(random, before, after), want)
		}
		if data := bytes.Clone(after); i > 0 {
			copy(data, before[:2*pageSize]) // all but the page that makes it count
			opensWith(t, data, want)
			opensWith(t, after, now)
		}
	}
}

// tear is the file before, with some of the sectors written that make it after,
// but not the page that says so, which is written when all others are on the disk.
func tear(random *rand.Rand, before, after []byte) []byte {
	torn := make([]byte, len(before), len(after))
	copy(torn, before)
	if random.IntN(2) == 0 {
		torn = torn[:len(after)]
	}
	share := random.Float64()
	for at := 2 * pageSize; at < len(torn); at += sectorSize {
		end := min(at+sectorSize, len(torn))
		if random.Float64() < share {
			copy(torn[at:end], after[at:])
		}
	}
	return torn
}

func opensWith(t *testing.T, data []byte, want []Entry) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "torn.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	o := box(t, &server{}, Config{Path: path, Patterns: []string{}})
	if got := mustList(t, o); !reflect.DeepEqual(got, want) {
		t.Fatalf("opens with %v, want %v", got, want)
	}
	mustDrain(t, o, len(want))
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

// A page that says which commit counts, torn at any byte, counts as not written,
// or as whole.
func TestTornMeta(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outbox.db")
	o := box(t, &server{}, Config{Path: path, Patterns: []string{}})
	enqueue(t, o, "http://h/", "1")
	before, want := must(os.ReadFile(path)), mustList(t, o)
	enqueue(t, o, "http://h/", "2")
	after, now := must(os.ReadFile(path)), mustList(t, o)
	for cut := 0; cut <= 100; cut += 4 { // what is said there fits into 80 bytes
		data := bytes.Clone(after)
		for page := 0; page < 2*pageSize; page += pageSize {
			copy(data[page+cut:page+pageSize], before[page+cut:])
		}
		if err := os.WriteFile(path+".torn", data, 0o600); err != nil {
			t.Fatal(err)
		}
		torn := box(t, nil, Config{Path: path + ".torn", Patterns: []string{}})
		if got := mustList(t, torn); !reflect.DeepEqual(got, want) && !reflect.DeepEqual(got, now) {
			t.Errorf("cut at %d: %v", cut, got)
		}
		torn.Close()
	}
}

// A file of the first format opens as it is, keeps its order and what is known
// of its entries, and takes new ones.
func TestVersion1(t *testing.T) {
	z := must(gzip.NewReader(must(os.Open(filepath.Join("testdata", "version1.db.gz")))))
	path := filepath.Join(t.TempDir(), "outbox.db")
	if err := os.WriteFile(path, must(io.ReadAll(z)), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &server{}
	c := Config{Path: path, Patterns: []string{}}
	o := box(t, s, c)
	var got []string
	for _, e := range mustList(t, o) {
		got = append(got, fmt.Sprintf("%v %s %d %d %s", e, e.Queue, e.Tries, e.Status, e.Reason))
	}
	want := []string{
		"0000000000000001 POST a.example a.example 1 500 ",
		"0000000000000002 POST b.example:8080 b.example:8080 1 500 ",
		"0000000000000003 POST a.example a.example 0 0 ",
		"0000000000000005 POST a.example a.example 0 0 ",
		"0000000000000004 POST dead.example dead.example 0 410 answer 410",
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got  %q\nwant %q", got, want)
	}
	if id := enqueue(t, o, "http://a.example/6", "six")[0]; id != formatID(6) {
		t.Errorf("the next id is %s", id)
	}
	if err := o.Requeue(formatID(4)); err != nil {
		t.Error(err)
	}
	o.Close()
	o = box(t, s, c) // now with entries of both formats
	mustDrain(t, o, 6)
	if got := ofHost(s, "a.example"); !reflect.DeepEqual(got, []string{"one", "three", "five", "six"}) {
		t.Errorf("a.example got %q", got)
	}
	if st := o.Stats(); st.Pending != 0 || st.Bytes != 0 {
		t.Errorf("%+v", st)
	}
}
