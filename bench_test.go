package weir_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// fixed is a base that costs next to nothing.
type fixed struct{ resp *http.Response }

func (f *fixed) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	resp := *f.resp
	resp.Request = r
	return &resp, nil
}

func newFixed() *fixed {
	return &fixed{&http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/plain"}}, Body: http.NoBody}}
}

// handMade is what many programs have: a limiter's Wait and a breaker's
// Execute around the base.
type handMade struct {
	base    http.RoundTripper
	limit   *rate.Limiter
	breaker *gobreaker.CircuitBreaker[*http.Response]
}

func (h *handMade) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := h.limit.Wait(r.Context()); err != nil {
		return nil, err
	}
	return h.breaker.Execute(func() (*http.Response, error) { return h.base.RoundTrip(r) })
}

// least is what a chain does at least for each request, without any policy: the
// request that leaves carries what Settle finds, the account of its host is
// locked when it is granted and when it is answered, at a time read from the
// clock, and the answer's headers are looked through.
type least struct {
	base  http.RoundTripper
	epoch time.Time

	mu    sync.Mutex
	hosts map[string]*leastHost
}

type leastHost struct {
	under, said int
	took        time.Duration
}

// leastTrip is the context of a request, and its copy.
type leastTrip struct {
	context.Context
	r       http.Request
	granted time.Duration
}

type leastKey struct{}

func (t *leastTrip) Value(key any) any {
	if key == (leastKey{}) {
		return t
	}
	return t.Context.Value(key)
}

func (l *least) RoundTrip(r *http.Request) (*http.Response, error) {
	t := &leastTrip{Context: r.Context()}
	t.r = *r.WithContext(t)
	l.mu.Lock()
	h := l.hosts[r.URL.Host]
	t.granted = time.Since(l.epoch)
	h.under++
	l.mu.Unlock()
	resp, err := l.base.RoundTrip(&t.r)
	l.mu.Lock()
	defer l.mu.Unlock()
	h.under--
	h.took += time.Since(l.epoch) - t.granted
	if err != nil {
		return nil, err
	}
	for name := range resp.Header {
		if name == "X-Ratelimit-Remaining" {
			h.said++
		}
	}
	return resp, nil
}

func newLeast() *least {
	return &least{base: newFixed(), epoch: time.Now(), hosts: map[string]*leastHost{"api.example.com": {}}}
}

func budget() throttle.Budget { return throttle.MustParseBudget("100000000/s") }

// BenchmarkStub compares the happy path of the whole chain with a hand-made
// stack over the same base.
func BenchmarkStub(b *testing.B) {
	off := weir.Config{
		Throttle: throttle.Config{Default: budget()},
		Retry:    retry.Config{AttemptTimeout: -1, StallTimeout: -1},
	}
	on := weir.Config{Throttle: throttle.Config{Default: budget()}}
	run := func(name string, rt http.RoundTripper) {
		b.Run(name, func(b *testing.B) {
			r := get(b, "http://api.example.com/")
			b.ReportAllocs()
			for b.Loop() {
				send(b, rt, r)
			}
		})
	}
	run("base", newFixed())
	run("hand-made", &handMade{newFixed(), rate.NewLimiter(1e8, 1e8), gobreaker.NewCircuitBreaker[*http.Response](gobreaker.Settings{})})
	run("least", newLeast())
	run("weir", must(weir.New(newFixed(), on))(b))
	run("weir, timeouts off", must(weir.New(newFixed(), off))(b))
	post := func(name string, rt http.RoundTripper) {
		b.Run(name, func(b *testing.B) {
			r, data := kibibyte(b)
			b.ReportAllocs()
			for b.Loop() {
				data.Seek(0, io.SeekStart)
				send(b, rt, r)
			}
		})
	}
	post("POST, base", newFixed())
	post("POST, weir", must(weir.New(newFixed(), on))(b))
	post("POST, weir, timeouts off", must(weir.New(newFixed(), off))(b))
}

// liveHeap is what BenchmarkScale keeps alive beside the Transport: about as
// much as a small program has.
const liveHeap = 64 << 20

// BenchmarkScale is a call with the default Config while as many goroutines call
// as there are processors, each in turns over all hosts: run with -cpu 1,2 it
// shows what calls to other hosts, or to the same, cost one another.
//
// It keeps liveHeap alive. A benchmark without it has a heap of 4 MB, the least
// there is, which is collected every few milliseconds: most of what a second
// processor does then is to collect, whatever is called. "bare" allocates as much
// as a call does and computes, with nothing shared: two processors can hardly do
// better than there.
func BenchmarkScale(b *testing.B) {
	var spent atomic.Uint64
	ballast := make([]byte, liveHeap) // without pointers: nothing to follow
	defer runtime.KeepAlive(ballast)
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			x, keep := uint64(1), new([4]*[240]byte)
			for pb.Next() {
				for i := range keep {
					keep[i] = new([240]byte)
				}
				for range 500 {
					x = x*6364136223846793005 + 1442695040888963407
				}
			}
			spent.Add(x + uint64(len(keep[0])))
		})
	})
	for _, n := range []int{1, 64, 10000} {
		rt := must(weir.New(newFixed(), weir.Config{}))(b)
		calls := make([]*http.Request, n)
		for i := range calls {
			calls[i] = get(b, "http://h"+strconv.Itoa(i)+".example.com/")
			for range 8 { // the host is known
				send(b, rt, calls[i])
			}
		}
		b.Run(strconv.Itoa(n)+" hosts", func(b *testing.B) {
			var goroutines atomic.Int64
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				i := int(goroutines.Add(1)) * n * 3 / 8 // not in step with others
				for ; pb.Next(); i++ {
					send(b, rt, calls[i%n])
				}
			})
		})
	}
}

func send(t testing.TB, rt http.RoundTripper, r *http.Request) {
	resp, err := rt.RoundTrip(r)
	if err != nil {
		t.Error(err) // it may be called on any goroutine
		return
	}
	resp.Body.Close()
}

const kib = 1 << 10

// kibibyte is a POST as http.NewRequest makes it, and the reader below its
// body, to be set back before each call.
func kibibyte(t testing.TB) (*http.Request, *bytes.Reader) {
	data := bytes.NewReader(make([]byte, kib))
	r, err := http.NewRequest("POST", "http://api.example.com/", data)
	if err != nil {
		t.Fatal(err)
	}
	return r, data
}

// TestHappyPathAllocations holds what BenchmarkStub shows: what the chain adds
// to the base's one allocation.
func TestHappyPathAllocations(t *testing.T) {
	on := weir.Config{Throttle: throttle.Config{Default: budget()}}
	off := on
	off.Retry = retry.Config{AttemptTimeout: -1, StallTimeout: -1}
	for _, tt := range []struct {
		name, method, kind string // of media, both ways
		c                  weir.Config
		most               float64
	}{
		{"GET", "GET", "text/plain", on, 2},
		{"GET without timeouts", "GET", "text/plain", off, 1},
		{"GET of JSON", "GET", "application/json", on, 2},
		{"POST", "POST", "text/plain", on, 2},
		{"POST without timeouts", "POST", "text/plain", off, 2},
		{"POST of JSON", "POST", "application/json", on, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base := newFixed()
			base.resp.Header.Set("Content-Type", tt.kind)
			rt := must(weir.New(base, tt.c))(t)
			r, data := kibibyte(t)
			r.Header.Set("Content-Type", tt.kind)
			if tt.method == "GET" {
				r = get(t, "http://api.example.com/")
			}
			n := 1e9
			for range 100 { // the pool of clocks forgets, every fourth time under -race
				n = min(n, testing.AllocsPerRun(5, func() {
					data.Seek(0, io.SeekStart)
					send(t, rt, r)
				}))
			}
			if n-1 > tt.most {
				t.Errorf("%v allocations added to a request, want at most %v", n-1, tt.most)
			}
		})
	}
}
