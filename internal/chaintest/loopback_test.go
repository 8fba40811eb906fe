//go:build unix

package chaintest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// handMade is what many programs have: a limiter's Wait, a breaker's Execute, and a
// timeout for the headers.
type handMade struct {
	base    http.RoundTripper
	limit   *rate.Limiter
	breaker *gobreaker.CircuitBreaker[*http.Response]
}

func (h *handMade) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := h.limit.Wait(r.Context()); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	t := time.AfterFunc(15*time.Second, cancel)
	resp, err := h.breaker.Execute(func() (*http.Response, error) { return h.base.RoundTrip(r.WithContext(ctx)) })
	if t.Stop(); err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &cancelling{resp.Body, cancel}
	return resp, nil
}

// cancelling ends the context of a request with the body of its answer.
type cancelling struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (c *cancelling) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}

// loopbackBatch is how many requests each contender makes in its turn. With a thousand a
// turn is short, so a busy moment of the machine meets several contenders, and yet the
// memory of a turn is collected about twice.
const loopbackBatch = 1000

// BenchmarkLoopback compares requests to a real server on loopback, 32 at a time, through
// net/http alone ("bare"), weir with timeouts and without ("off"), and a hand-made stack.
// They take turns within one run, and a round is one turn of each. It reports the processor
// time of a request of net/http alone, client and server together, and what each of the
// others adds to it in the same round. All of these are medians over the rounds, in ns.
// Run it with -benchtime 200x.
func BenchmarkLoopback(b *testing.B) {
	on := weir.Config{Throttle: throttle.Config{Default: throttle.MustParseBudget("100000000/s")}}
	off := on
	off.Retry = retry.Config{AttemptTimeout: -1, StallTimeout: -1}
	for _, version := range []string{"HTTP/1", "HTTP/2"} {
		b.Run(version, func(b *testing.B) {
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }))
			srv.EnableHTTP2 = version == "HTTP/2"
			if srv.EnableHTTP2 {
				srv.StartTLS()
			} else {
				srv.Start()
			}
			defer srv.Close()
			base := func() *http.Transport {
				t := srv.Client().Transport.(*http.Transport).Clone()
				t.MaxIdleConnsPerHost = 64
				b.Cleanup(t.CloseIdleConnections)
				return t
			}
			hand := &handMade{base(), rate.NewLimiter(1e8, 1e8), gobreaker.NewCircuitBreaker[*http.Response](gobreaker.Settings{})}
			contenders := []struct {
				name string
				rt   http.RoundTripper
			}{
				{"bare", base()},
				{"weir", must(weir.New(base(), on))(b)},
				{"off", must(weir.New(base(), off))(b)},
				{"hand", hand},
			}
			for _, c := range contenders {
				loopback(b, c.rt, srv.URL)
			}
			added := make([][]float64, len(contenders))
			var bare []float64
			for b.Loop() {
				var alone float64
				for i, c := range contenders {
					took := loopback(b, c.rt, srv.URL)
					if i == 0 {
						alone = took
						bare = append(bare, took)
						continue
					}
					added[i] = append(added[i], took-alone)
				}
			}
			median := func(s []float64) float64 { slices.Sort(s); return s[len(s)/2] }
			b.ReportMetric(0, "ns/op") // of all together: it says nothing
			b.ReportMetric(median(bare), "bare-ns")
			for i, c := range contenders[1:] {
				b.ReportMetric(median(added[i+1]), c.name+"-added-ns")
			}
		})
	}
}

// loopback makes loopbackBatch requests and returns the processor time of one in ns.
func loopback(b *testing.B, rt http.RoundTripper, url string) float64 {
	before := processorTime(b)
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 32 {
		wg.Go(func() {
			for next.Add(1) <= loopbackBatch {
				r, err := http.NewRequest("GET", url, nil)
				if err != nil {
					b.Error(err)
					return
				}
				resp, err := rt.RoundTrip(r)
				if err != nil {
					b.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
		})
	}
	wg.Wait()
	return float64(processorTime(b)-before) / loopbackBatch
}

// processorTime is what this process has used so far.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
