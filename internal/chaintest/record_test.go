package chaintest

import (
	"fmt"
	"net/http"
	"runtime"
	"testing"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
)

// TestRecordOfAHostIsSmall: what the whole chain keeps of a host that was asked
// once, found well and said nothing about limits takes at most 2 KiB. Measured
// is all that the heap grew by, the tables' own part included.
func TestRecordOfAHostIsSmall(t *testing.T) {
	const most = 1792 // some less than the promise, so that what is added is noticed
	rt := must(weir.New(testnet.Func(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}), weir.Config{}))(t)
	requests := make([]*http.Request, 100000)
	for i := range requests {
		requests[i] = get(t, fmt.Sprintf("http://h%d.example.com/v1/items", i))
	}
	before, done := heapInUse(), 0
	for _, n := range []int{10000, 100000} { // fewer would measure what else the process keeps
		for ; done < n; done++ {
			resp, err := rt.RoundTrip(requests[done])
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		size := float64(heapInUse()-before) / float64(n)
		t.Logf("%d hosts: %.0f bytes each", n, size)
		if size > most {
			t.Errorf("%d hosts: %.0f bytes each, want at most %d", n, size, most)
		}
	}
	if n := len(rt.Stats().Throttle.Hosts); n < 90000 { // the table's shards fill unevenly
		t.Errorf("%d hosts are kept: the others were not measured", n)
	}
	runtime.KeepAlive(requests)
}

// heapInUse is how many bytes are allocated and still reachable.
func heapInUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
