// Package faults puts Shopify's toxiproxy between weir and go-httpbin.
package faults

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/mccutchen/go-httpbin/v2/httpbin"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/interop/real"
	"github.com/weirhttp/weir/retry"
)

// origin is httpbin, and a till that counts what it has processed, by the
// request's number.
type origin struct {
	*httptest.Server
	mu        sync.Mutex
	processed map[string]int
}

func newOrigin(t *testing.T) *origin {
	o := &origin{processed: make(map[string]int)}
	mux := http.NewServeMux()
	mux.Handle("/", httpbin.New())
	mux.HandleFunc("/till/", func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		if _, err := io.Copy(sum, r.Body); err != nil {
			return // not all of it came: nothing is done
		}
		o.mu.Lock()
		o.processed[r.URL.Path]++
		o.mu.Unlock()
		io.WriteString(w, hex.EncodeToString(sum.Sum(nil)))
	})
	o.Server = httptest.NewServer(mux)
	t.Cleanup(o.Close)
	return o
}

// poisoned starts a proxy before o with the toxics, which are JSON.
func (o *origin) poisoned(t *testing.T, toxics ...string) string {
	t.Helper()
	api := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	p := toxiproxy.NewProxy(api, "p", "127.0.0.1:0", o.Listener.Addr().String())
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	for _, toxic := range toxics {
		if _, err := p.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
			t.Fatalf("%s: %v", toxic, err)
		}
	}
	return "http://" + p.Listen
}

// way is a client over weir whose sockets are counted.
type way struct {
	stalls   real.Stalls
	deadline time.Duration // of each request
	client   *http.Client
	base     *http.Transport
	open     atomic.Int64
}

// stalled is for how long the machine has stood still since w began.
func (w *way) stalled() time.Duration { return w.stalls.Since(time.Time{}) }

type counted struct {
	net.Conn
	once sync.Once
	open *atomic.Int64
}

func (c *counted) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

func newWay(t *testing.T, c retry.Config) *way {
	w := &way{deadline: deadline}
	t.Cleanup(w.stalls.Watch())
	var d net.Dialer
	w.base = &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		w.open.Add(1)
		return &counted{Conn: c, open: &w.open}, nil
	}}
	w.client = &http.Client{Transport: real.Chain(t, w.base, weir.Config{Retry: c})}
	return w
}

// settled waits until nothing is left of the requests: it fails after 20 s,
// however slow the machine is.
func settled(what func() (int64, int64)) error {
	var now, most int64
	for range 2000 {
		if now, most = what(); now <= most {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("%d are left, not %d", now, most)
}

// short makes faults end soon.
func short() retry.Config {
	return retry.Config{AttemptTimeout: 700 * time.Millisecond, StallTimeout: 700 * time.Millisecond}
}

// goroutines counts those that stand in code of weir's own or in a client's
// connection. toxiproxy's own come and go as they please.
func goroutines() int64 {
	buf := make([]byte, 8<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var n int64
	for _, stack := range strings.Split(string(buf), "\n\n") {
		for _, ours := range []string{"weirhttp/weir/retry", "weirhttp/weir/throttle", "weirhttp/weir/breaker", "http.(*persistConn)"} {
			if strings.Contains(stack, ours) {
				n++
				break
			}
		}
	}
	return n
}
