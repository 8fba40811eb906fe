//go:build unix

package outbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

const fullEnv = "WEIR_OUTBOX_FULL"

// fullChild is a process whose files cannot grow beyond 4 MiB: to them the disk
// is full. It keeps what it can, drains half, keeps again, and dies.
func fullChild(path string) {
	signal.Ignore(syscall.SIGXFSZ)
	limit := syscall.Rlimit{Cur: 4 << 20, Max: 4 << 20}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		fmt.Println("wrong Setrlimit:", err)
		os.Exit(1)
	}
	down := true
	delivered := 0
	o, err := New(tripper(func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			r.Body.Close()
		}
		if down {
			return nil, errDown
		}
		fmt.Println("delivered", r.URL.Path[1:], r.Header.Get("Idempotency-Key"), r.URL.Host)
		if delivered++; delivered > 100 {
			down = true
		}
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}), Config{Path: path, Patterns: []string{"*"}, Concurrency: 1})
	if err != nil {
		fmt.Println("wrong New:", err)
		os.Exit(1)
	}
	first := fill(o, "a")
	if first > 2000 {
		fmt.Println("wrong: the disk did not fill")
	}
	// It sends first, so where nothing waits the caller gets the base's error.
	if _, err := o.RoundTrip(must(http.NewRequest("POST", "http://other/x", strings.NewReader(strings.Repeat("x", 64<<10))))); !errors.Is(err, errDown) {
		fmt.Println("wrong error for a request that was sent first:", err)
	}
	down = false
	if n, err := o.Drain(context.Background()); n != 101 || !errors.Is(err, errDown) {
		fmt.Println("wrong Drain:", n, err)
	}
	if fill(o, "b") == 0 {
		fmt.Println("wrong: no room after a drain")
	}
	os.Exit(0) // without Close
}

// fill enqueues until the file takes no more, and returns how many it took.
func fill(o *Transport, name string) int {
	for i := range 10000 {
		event := fmt.Sprint(name, i)
		r := must(http.NewRequest("POST", "http://h/"+event, strings.NewReader(strings.Repeat("x", 8<<10))))
		id, err := o.Enqueue(r)
		if err != nil {
			if errors.Is(err, ErrFull) || !strings.Contains(err.Error(), syscall.EFBIG.Error()) { // which bbolt does not wrap
				fmt.Println("wrong error of Enqueue:", err)
			}
			return i
		}
		fmt.Println("kept", event, id)
	}
	return 10000
}

// A full disk is an error of Enqueue, costs nothing that was promised, does not
// keep what is there from being delivered, and is over when that made room.
func TestDiskFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outbox.db")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+path, fullEnv+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	l := newLedger()
	l.turn = map[string][]string{}
	for in := bufio.NewScanner(bytes.NewReader(out)); in.Scan(); {
		l.line(t, in.Text())
	}
	l.ordered(t)
	if len(l.kept) < 200 || len(l.delivered) != 101 {
		t.Errorf("%d kept, %d delivered: nothing was tested", len(l.kept), len(l.delivered))
	}
	l.reckon(t, path)
}

// full has o's file grow no more than to pages pages, without waiting for the disk.
func full(o *Transport, pages int) {
	db := o.file.db
	db.NoSync, db.AllocSize, db.MaxSize = true, 0, pages*db.Info().PageSize
}

// What a full file holds can be delivered, set aside, noted and discarded, in
// whatever order, however long the entries are and whoever reads meanwhile. Then
// there is room again.
func TestFullFile(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { fullFile(t, rand.New(rand.NewPCG(seed, 0))) })
	}
}

func fullFile(t *testing.T, random *rand.Rand) {
	longest := []int{600, 3000, 9000, 40000, 200000}[random.IntN(5)]
	queues := []int{1, 3, 10, 1000}[random.IntN(4)]
	bad := max(0, random.IntN(200)-100) // of a hundred entries
	s := &server{forgets: true}
	var mu sync.Mutex
	base := tripper(func(r *http.Request) (*http.Response, error) {
		resp, err := s.RoundTrip(r)
		mu.Lock()
		defer mu.Unlock()
		if err == nil && random.IntN(100) < bad {
			resp.StatusCode = []int{http.StatusGone, http.StatusInternalServerError}[random.IntN(2)]
		}
		return resp, err
	})
	o := box(t, base, Config{Patterns: []string{}, Concurrency: 1 + random.IntN(20), MaxTries: 3})
	full(o, 400+random.IntN(400))
	defer reading(t, o)()
	for range 2 {
		empty := o.Stats().Bytes == 0
		if n := fillUp(t, o, random, longest, queues); n == 0 && empty {
			t.Fatal("no room")
		}
		most := max(0, random.IntN(200)-100) // of a hundred entries, to discard
		for _, e := range mustList(t, o) {
			if random.IntN(100) < most {
				if err := o.Discard(e.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		if random.IntN(2) == 0 {
			continue
		}
		for o.Stats().Pending > 0 {
			if _, err := o.Drain(t.Context()); err != nil && !errors.As(err, new(*Error)) {
				t.Fatalf("Drain: %v; %+v", err, o.Stats())
			}
		}
		for _, e := range mustList(t, o) {
			if err := o.Discard(e.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	err := o.file.view(func(tx *bolt.Tx) error {
		for err := range tx.Check() {
			t.Error(err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// reading has somebody read all the time until the function it returns is called.
func reading(t *testing.T, o *Transport) (end func()) {
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				err := o.file.view(func(*bolt.Tx) error { runtime.Gosched(); return nil })
				if err != nil {
					t.Error(err)
				}
			}
		}
	})
	return func() { close(over); wg.Wait() }
}

// fillUp enqueues, some at a time, until the file takes no more, however short, and
// returns how many it took.
func fillUp(t *testing.T, o *Transport, random *rand.Rand, longest, queues int) (n int) {
	t.Helper()
	for {
		var wg sync.WaitGroup
		errs := make([]error, 1+random.IntN(3))
		for i := range errs {
			body := strings.Repeat("x", random.IntN(longest))
			r := must(http.NewRequest("POST", fmt.Sprintf("http://h%d/", random.IntN(queues)), strings.NewReader(body)))
			wg.Go(func() { _, errs[i] = o.Enqueue(r) })
		}
		wg.Wait()
		for _, err := range errs {
			if err == nil {
				n++
			} else if !errors.Is(err, berrors.ErrMaxSizeReached) {
				t.Fatalf("Enqueue: %v", err)
			}
		}
		if errors.Join(errs...) != nil {
			if longest == 1 {
				return n
			}
			longest = max(1, longest/8)
		}
	}
}

// What is learnt about entries makes a full file larger. It is written down all the
// same, in the pages set aside for that, and nothing more is kept until they can be
// set aside again.
func TestSparePages(t *testing.T) {
	s := &server{status: func(*http.Request, string) int { return http.StatusInternalServerError }}
	o := box(t, s, Config{Patterns: []string{}, MaxTries: -1})
	full(o, 2*sparePages)
	random := rand.New(rand.NewPCG(1, 2))
	n := fillUp(t, o, random, 1, 10000)
	if _, err := o.Drain(t.Context()); !errors.As(err, new(*Error)) {
		t.Fatal(err)
	}
	tried := 0
	for _, e := range mustList(t, o) {
		tried += e.Tries
	}
	if queues := len(o.Queues()); tried != queues || queues < 1000 {
		t.Errorf("%d tries are in the file, of %d queues", tried, queues)
	}
	if has(t, o, spareName) {
		t.Error("no spare page was needed: nothing was tested")
	}
	o.file.db.NoFreelistSync = true // as it is when the list does not fit
	id := mustList(t, o)[0].ID
	if err := o.Discard(id); err != nil {
		t.Error(err)
	}
	o.file.db.NoFreelistSync = false
	opensWith(t, must(os.ReadFile(o.s.Path)), mustList(t, o))
	if _, err := o.Enqueue(must(http.NewRequest("POST", "http://h/", nil))); !errors.Is(err, berrors.ErrMaxSizeReached) {
		t.Errorf("Enqueue: %v", err)
	}
	s.status = nil
	mustDrain(t, o, n-1)
	enqueue(t, o, "http://h/", "x")
	if !has(t, o, spareName) {
		t.Error("an entry was kept without pages to spare")
	}
}

// has reports whether the file has a bucket of that name.
func has(t *testing.T, o *Transport, name string) (is bool) {
	t.Helper()
	err := o.file.view(func(tx *bolt.Tx) error { is = tx.Bucket([]byte(name)) != nil; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return is
}
