// Package real drives weir against servers that nobody here wrote, and counts
// what happens on the way.
package real

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhttp/weir"
)

// Counter is a base that counts answers by what they are.
type Counter struct {
	Base    http.RoundTripper
	Sent    atomic.Int64
	Refused atomic.Int64 // 429, 403 and 503
	Last    atomic.Int64 // when the last accepted answer came, in ns since Start
	Start   time.Time
}

func (c *Counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.Sent.Add(1)
	resp, err := c.Base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusForbidden, http.StatusServiceUnavailable:
		c.Refused.Add(1)
	default:
		c.Last.Store(int64(time.Since(c.Start)))
	}
	return resp, nil
}

// Func is a base in one function.
type Func func(*http.Request) (*http.Response, error)

func (f Func) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Chain is weir.New, and closed when the test ends.
func Chain(t testing.TB, base http.RoundTripper, c weir.Config) *weir.Transport {
	t.Helper()
	rt, err := weir.New(base, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	return rt
}

// From returns a transport whose connections come from the given loopback
// address: limiters that count by address see a client of its own.
func From(a, b byte) *http.Transport {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 9, a, b)}}
	return &http.Transport{DialContext: d.DialContext, MaxIdleConnsPerHost: 64}
}

// A Run is 50 goroutines that share calls GETs of one URL, through a weir
// that is told nothing.
type Run struct {
	Name      string
	From      http.RoundTripper
	As        func(http.RoundTripper) http.RoundTripper // between weir and From; nil: nothing
	Config    weir.Config                               // zero: weir is told nothing
	URL       string
	Crowd     int // calls at once, before, of a neighbour without weir behind the same address
	Calls     int
	Ideal     time.Duration // (calls - burst) / rate, or whole windows
	MayRefuse float64       // refusals per call
	MayFail   int64         // calls that may end with the server's refusal
}

// OneInTwenty is how many calls a server may refuse that states its limit.
// Time is real with most of them, and a slow machine only makes waits longer:
// each window begins with one request that asks, so that even if every window
// were taken to begin too early there would be one refusal for each 20 calls.
const OneInTwenty = 0.05

// Together makes all runs at once, as they only wait, and judges each in a
// test of its own: no call may fail. It takes half a minute of real time.
func Together(t *testing.T, runs []Run) {
	if testing.Short() {
		t.Skip("real limiters take real time")
	}
	results := make([]Result, len(runs))
	var wg sync.WaitGroup
	for i, r := range runs {
		wg.Go(func() { results[i] = r.drive(t) })
	}
	wg.Wait()
	for i, r := range runs {
		t.Run(r.Name, func(t *testing.T) { r.judge(t, results[i]) })
	}
	t.Log(table(runs, results))
}

// Alone makes one run, in real time or in a bubble, and judges it.
func (r *Run) Alone(t *testing.T) Result {
	t.Helper()
	got := r.drive(t)
	r.judge(t, got)
	t.Log(table([]Run{*r}, []Result{got}))
	return got
}

// judge fails t where results are not as they must be.
func (r *Run) judge(t *testing.T, got Result) {
	t.Helper()
	if got.Failed > r.MayFail {
		t.Errorf("%d calls failed, the first: %v", got.Failed, got.First)
	}
	if n := float64(got.Refused) / float64(r.Calls); n > r.MayRefuse {
		t.Errorf("%.3f refusals per call, more than %.2f", n, r.MayRefuse)
	}
}

// table is what runs came to.
func table(runs []Run, results []Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-62s %5s  %9s  %8s  %8s  %6s\n", "limiter", "calls", "time", "of ideal", "refusals", "failed")
	for i, r := range runs {
		got := results[i]
		fmt.Fprintf(&b, "%-62s %5d  %7.2f s  %8.2f  %8d  %6d\n",
			r.Name, r.Calls, got.Took.Seconds(), got.Took.Seconds()/r.Ideal.Seconds(), got.Refused, got.Failed)
	}
	return b.String()
}

// Result is what a Run came to.
type Result struct {
	Failed, Refused int64
	First           error
	Took            time.Duration // from the first call to the last accepted answer
}

func (r *Run) drive(t *testing.T) (got Result) {
	count := &Counter{Base: r.From}
	var base http.RoundTripper = count
	if r.As != nil {
		base = r.As(count)
	}
	rt := Chain(t, base, r.Config)
	client := &http.Client{Transport: rt}
	var crowd sync.WaitGroup
	for range r.Crowd {
		crowd.Go(func() { call(&http.Client{Transport: r.From}, r.URL) }) // refused, most of them
	}
	crowd.Wait()
	count.Start = time.Now()
	var next, failed atomic.Int64
	var first atomic.Pointer[error]
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for next.Add(1) <= int64(r.Calls) {
				if err := call(client, r.URL); err != nil {
					failed.Add(1)
					first.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	wg.Wait()
	client.CloseIdleConnections()
	got = Result{Failed: failed.Load(), Refused: count.Refused.Load(), Took: time.Duration(count.Last.Load())}
	if err := first.Load(); err != nil {
		got.First = *err
	}
	return got
}

func call(client *http.Client, url string) error {
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

// Need skips, loudly, where a program is missing; with CI=true it fails.
func Need(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err == nil {
			continue
		}
		if _, err := os.Stat(filepath.Join("/usr/sbin", p)); err == nil {
			continue
		}
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is not installed: make test installs it as root", p)
		}
		t.Skipf("NOT TESTED: %s is not installed", p)
	}
}

// ports finds n ports on loopback that are free now.
func ports(t testing.TB, n int) (free []int) {
	t.Helper()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		free = append(free, l.Addr().(*net.TCPAddr).Port)
	}
	return free
}

// Start runs a program until the test ends and waits until it listens on all of
// n ports, for which command gives its command line. Another process may take
// one of them first: then it is tried again with others.
func Start(t testing.TB, n int, command func(ports []int) []string) (listening []int) {
	t.Helper()
	for try := 1; ; try++ {
		free := ports(t, n)
		err := start(t, free, command(free))
		if err == nil {
			return free
		}
		if try == 5 {
			t.Fatal(err)
		}
		t.Log(err)
	}
}

func start(t testing.TB, ports []int, command []string) error {
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		cmd.Wait()
	}()
	end := func() {
		cancel()
		<-done
	}
	for _, port := range ports {
		if err := listens(port, done); err != nil {
			end()
			return fmt.Errorf("%s: %w", command[0], err)
		}
	}
	t.Cleanup(end)
	return nil
}

func listens(port int, done <-chan struct{}) error {
	for range 1200 {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return conn.Close()
		}
		select {
		case <-done:
			return fmt.Errorf("ended before it listened on port %d", port)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return fmt.Errorf("does not listen on port %d after a minute", port)
}
