package outbox

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	bolt "go.etcd.io/bbolt"
)

// What the outbox adds to a request that succeeds.
func BenchmarkSuccess(b *testing.B) {
	answer := &http.Response{StatusCode: 200, Body: http.NoBody}
	o := box(b, tripper(func(*http.Request) (*http.Response, error) { return answer, nil }), Config{Patterns: []string{"api.example"}})
	for name, url := range map[string]string{"named": "http://api.example/", "unnamed": "http://other.example/"} {
		b.Run(name, func(b *testing.B) {
			r, _ := http.NewRequest("POST", url, strings.NewReader("body"))
			r.Header.Set("Content-Type", "text/plain")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := o.RoundTrip(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// many makes a file with n entries in 12 queues, in one commit.
func many(tb testing.TB, n int) Config {
	tb.Helper()
	c := Config{Path: filepath.Join(tb.TempDir(), "outbox.db"), Patterns: []string{}, MaxEntries: 1 << 30, MaxBytes: 1 << 40}
	o, err := New(nil, c)
	if err != nil {
		tb.Fatal(err)
	}
	body := bytes.Repeat([]byte("x"), 300)
	err = o.file.write(func(tx *bolt.Tx) error {
		b := pending.bucket(tx)
		b.FillPercent = 1
		for i := range n {
			r, _ := http.NewRequest("POST", fmt.Sprintf("http://h%d.example/events/%d", i%12, i), nil)
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Idempotency-Key", fmt.Sprint(i))
			value, err := o.s.newRecord(r, body, time.Now()).encode()
			if err != nil {
				return err
			}
			id, err := b.NextSequence()
			if err != nil {
				return err
			}
			if err := b.Put(key(id), value); err != nil {
				return err
			}
		}
		return nil
	}, nil)
	if err != nil {
		tb.Fatal(err)
	}
	if err := o.Close(); err != nil {
		tb.Fatal(err)
	}
	return c
}

// Opening a file with 100000 entries, and draining it to servers that take no
// time, of which the disk is then the limit.
func BenchmarkMany(b *testing.B) {
	const n = 100000
	c := many(b, n)
	data, err := os.ReadFile(c.Path)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			o, err := New(nil, c)
			if err != nil || o.Stats().Pending != n {
				b.Fatal(err)
			}
			o.Close()
		}
	})
	b.Run("drain", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			if err := os.WriteFile(c.Path, data, 0o600); err != nil {
				b.Fatal(err)
			}
			o, err := New(&server{forgets: true}, c)
			if err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			if sent, err := o.Drain(b.Context()); sent != n || err != nil {
				b.Fatal(sent, err)
			}
			o.Close()
		}
		b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "entries/s")
	})
}

// What it costs to keep a request: a sync of the disk, which callers that come
// together share.
func BenchmarkKeep(b *testing.B) {
	for name, callers := range map[string]int{"1": 1, "64": 64} {
		b.Run(name, func(b *testing.B) {
			o := box(b, &server{down: true}, Config{MaxEntries: 1 << 30, MaxBytes: 1 << 40})
			b.SetParallelism(callers)
			keep := func() {
				if id, err := post(b, o, "http://api.example/", "body"); id == "" {
					b.Error(err)
				}
			}
			if callers == 1 {
				for b.Loop() {
					keep()
				}
				return
			}
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					keep()
				}
			})
		})
	}
}

// What an open outbox holds in memory does not grow with what is in the file by
// more than the place of each entry.
func TestMemoryOfMany(t *testing.T) {
	const n = 10000
	c := many(t, n)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	o := box(t, nil, c)
	if got := heap() - before; got > 50*n+1<<18 {
		t.Errorf("%d bytes for %d entries", got, n)
	}
	got := 0
	for e, err := range o.All() {
		if got++; err != nil || e.ID != formatID(uint64(got)) {
			t.Fatalf("%v, %v", e, err)
		}
	}
	if got != n {
		t.Errorf("All gave %d entries of %d", got, n)
	}
}

// A queue does not wait for the disk after each entry: while one sync is under
// way it goes on, up to what may be sent again after a crash, and the next sync
// is for all of these.
func TestOneSyncForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		o := box(t, s, Config{Patterns: []string{}})
		for i := range maxSettling + 1 {
			enqueue(t, o, "http://a/", fmt.Sprint(i))
		}
		commits := func() (id int) {
			if err := o.file.view(func(tx *bolt.Tx) error { id = tx.ID(); return nil }); err != nil {
				t.Fatal(err)
			}
			return id
		}
		before := commits()
		o.file.slot <- struct{}{} // the disk is busy
		done := make(chan struct{})
		go func() {
			defer close(done)
			mustDrain(t, o, maxSettling+1)
		}()
		synctest.Wait()
		if n := len(s.requests()); n != maxSettling || commits() != before {
			t.Errorf("%d sent during %d syncs, want %d", n, commits()-before, maxSettling)
		}
		<-o.file.slot
		<-done
		if n := commits() - before; n != 2 {
			t.Errorf("%d syncs, want one for %d entries and one for the last", n, maxSettling)
		}
	})
}
