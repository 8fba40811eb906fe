package scenario

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/bench/result"
	"github.com/weirhttp/weir/bench/rival"
)

func loopback() Scenario {
	return Scenario{"loopback", "Throughput through a real server on loopback at concurrency 32, relative to net/http alone.", runLoopback}
}

// newBase is a transport for one rival alone.
func newBase() *http.Transport {
	return &http.Transport{MaxIdleConnsPerHost: 1000, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext}
}

// batch makes n calls from so many goroutines, and returns how long each took
// and how many failed.
func batch(do func(*http.Request) (*http.Response, error), url string, n, concurrency int) (took time.Duration, each []time.Duration, failed int) {
	each = make([]time.Duration, n)
	var next, bad atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	for range concurrency {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				start := time.Now()
				r, err := http.NewRequest(http.MethodGet, url, nil)
				if err != nil || !finish(do(r)) {
					bad.Add(1)
				}
				each[i] = time.Since(start)
			}
		})
	}
	wg.Wait()
	return time.Since(begin), each, int(bad.Load())
}

func runLoopback(_ context.Context, s Size) ([]result.Table, []result.Plot, error) {
	var tables []result.Table
	for _, http2 := range []bool{false, true} {
		t, err := throughput(s, http2)
		if err != nil {
			return nil, nil, err
		}
		tables = append(tables, t)
	}
	return tables, nil, nil
}

func throughput(s Size, http2 bool) (result.Table, error) {
	size, batches := pick(s, 64, 1000, 4000), pick(s, 1, 4, 20)
	id, name := "http1", "HTTP/1"
	if http2 {
		id, name = "http2", "HTTP/2 over TLS"
	}
	t := result.Table{ID: id, Title: fmt.Sprintf("%s: requests at concurrency 32", name),
		Note:    fmt.Sprintf("%d batches of %d requests, each between two batches of bare net/http. Of bare: the throughput, divided by that of these two batches (median); x1: the same on one processor, with a quarter of the batches. Server and clients share the cores.", batches, size),
		Columns: []result.Column{more("requests/s", 0, .06), more("of bare", 2, .06), more("of bare x1", 2, .06), less("p50 µs", 0, .06), less("p99 µs", 0, .15), less("failed", 0, 0)}}
	url, base, done := echo(http2)
	defer done()
	policy := rival.Default()
	policy.Rate = rival.Rate{Limit: 1e8, Per: time.Second, Bucket: 1e8}
	rivals := rival.All()
	results, alone := make([]served, len(rivals)), make([]served, len(rivals))
	for i, r := range rivals {
		c, err := r.New(base(), policy)
		if err != nil {
			return t, err
		}
		defer c.Close()
		results[i].do, alone[i].do = c.Do, c.Do
		batch(c.Do, url, max(size/4, 32), 32)
	}
	bare := &served{do: base().RoundTrip}
	compare(results, bare, url, size, batches)
	all := runtime.GOMAXPROCS(1)
	compare(alone, bare, url, size, max(batches/4, 1))
	runtime.GOMAXPROCS(all)
	for i, r := range rivals {
		v := &results[i]
		t.Rows = append(t.Rows, row(r, result.Num(quantile(v.rates, .5)), result.Num(quantile(v.ratios, .5)), result.Num(quantile(alone[i].ratios, .5)),
			result.Num(float64(quantile(v.each, .5))/1e3), result.Num(float64(quantile(v.each, .99))/1e3), result.Num(v.failed)))
	}
	return t, nil
}

// compare lets each of list make so many batches, between two batches of bare each.
func compare(list []served, bare *served, url string, size, batches int) {
	bare.add(url, size)
	for range batches {
		for i := range list {
			before := bare.rate
			rate := list[i].add(url, size)
			after := bare.add(url, size)
			list[i].ratios = append(list[i].ratios, rate/((before+after)/2))
		}
	}
}

// echo is a server that answers at once, and what makes transports for it.
func echo(http2 bool) (url string, base func() *http.Transport, done func()) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }))
	srv.EnableHTTP2 = http2
	if http2 {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	var made []*http.Transport
	base = func() *http.Transport {
		b := newBase()
		if http2 {
			b.TLSClientConfig, b.ForceAttemptHTTP2 = srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone(), true
		}
		made = append(made, b)
		return b
	}
	return srv.URL, base, func() {
		for _, b := range made {
			b.CloseIdleConnections()
		}
		srv.Close()
	}
}

// served is what one rival got through.
type served struct {
	do            func(*http.Request) (*http.Response, error)
	rate          float64 // of the last batch
	rates, ratios []float64
	each          []time.Duration
	failed        int
}

func (v *served) add(url string, n int) float64 {
	took, each, failed := batch(v.do, url, n, 32)
	v.rate = float64(n) / took.Seconds()
	v.rates, v.each, v.failed = append(v.rates, v.rate), append(v.each, each...), v.failed+failed
	return v.rate
}
