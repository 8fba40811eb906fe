//go:build unix

package faults

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/interop/real"
	"github.com/weirhttp/weir/retry"
)

const (
	standstillServer = "WEIR_STANDSTILL_SERVER" // says to a child process whom to call
	standstillReport = 100                      // calls
	standstillFor    = 2500 * time.Millisecond
)

// A process that is stopped while many of its calls are under way, for longer
// than they may take, loses none of them when it goes on, and holds nothing
// against their host: the answers are there.
func TestStandstill(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(200 * time.Millisecond):
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	for _, stop := range []bool{false, true} {
		t.Run(fmt.Sprintf("stopped=%v", stop), func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.run=^TestStandstillChild$", "-test.v")
			child.Env = append(os.Environ(), standstillServer+"="+server.URL)
			child.Stderr = os.Stderr
			in, err1 := child.StdinPipe()
			out, err2 := child.StdoutPipe()
			if err := errors.Join(err1, err2, child.Start()); err != nil {
				t.Fatal(err)
			}
			defer child.Wait()
			defer in.Close() // ends it
			lines := bufio.NewScanner(out)
			until(t, lines, "calls")
			if stop {
				child.Process.Signal(syscall.SIGSTOP)
				time.Sleep(standstillFor) // the one thing here that takes real time
				child.Process.Signal(syscall.SIGCONT)
			}
			for range 3 { // the rest of the first hundred may be from before
				until(t, lines, "calls")
			}
			in.Close()
			var calls, lost, circuits int
			var stalled time.Duration
			fmt.Sscan(until(t, lines, "result"), &calls, &lost, &circuits, (*int64)(&stalled))
			t.Logf("%d calls, %d lost; stood still for %v", calls, lost, stalled)
			if stop && stalled < standstillFor/2 {
				t.Errorf("stood still for %v only", stalled)
			}
			if calls == 0 || lost > 0 || circuits > 0 {
				t.Errorf("%d of %d calls lost; %d circuits have something against their hosts", lost, calls, circuits)
			}
		})
	}
}

// until returns what follows a word with which the child begins a line.
func until(t *testing.T, lines *bufio.Scanner, word string) string {
	t.Helper()
	for lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), word+" "); ok {
			return rest
		}
		t.Log(lines.Text())
	}
	t.Fatalf("the child has ended: %v", lines.Err())
	return ""
}

// TestStandstillChild is the process that TestStandstill stops.
func TestStandstillChild(t *testing.T) {
	url := os.Getenv(standstillServer)
	if url == "" {
		t.Skip("run by TestStandstill")
	}
	over := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(over)
	}()
	var stalls real.Stalls
	defer stalls.Watch()()
	rt, err := weir.New(http.DefaultTransport, weir.Config{Retry: retry.Config{AttemptTimeout: time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	calls, lost := 0, 0
	count := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if calls++; calls%standstillReport == 0 {
			fmt.Println("calls", calls)
		}
		if err != nil {
			lost++
			fmt.Println("lost:", err)
		}
	}
	client := &http.Client{Transport: rt}
	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				resp, err := client.Get(url)
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				count(err)
				if err != nil {
					time.Sleep(50 * time.Millisecond)
				}
			}
		})
	}
	wg.Wait()
	fmt.Println("result", calls, lost, len(rt.Stats().Breaker.Circuits), int64(stalls.Since(time.Time{})))
}
