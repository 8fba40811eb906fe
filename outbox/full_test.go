//go:build unix

package outbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
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
