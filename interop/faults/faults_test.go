package faults

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

const (
	deadline = 4 * time.Second
	slack    = 3 * time.Second // of a busy machine
	size     = 96 << 10
)

func toxic(kind, stream string, toxicity float64, attributes string) string {
	return fmt.Sprintf(`{"type":%q,"stream":%q,"toxicity":%g,"attributes":{%s}}`, kind, stream, toxicity, attributes)
}

// TestFaults: with each toxic, downloads, uploads that may be repeated and
// uploads that may not, at once. Each ends in success, in a typed error or in
// the server's own answer, within its deadline; nothing that is not idempotent
// is processed twice; nothing is left.
func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		name   string
		toxics []string
		all    bool // every request must succeed
	}{
		{"none", nil, true},
		{"latency", []string{toxic("latency", "downstream", 1, `"latency":80`)}, true},
		{"jitter", []string{toxic("latency", "downstream", 1, `"latency":150,"jitter":150`), toxic("latency", "upstream", 1, `"latency":30,"jitter":30`)}, false},
		{"bandwidth down", []string{toxic("bandwidth", "downstream", 1, `"rate":200`)}, false},
		{"bandwidth up", []string{toxic("bandwidth", "upstream", 1, `"rate":200`)}, false},
		{"slicer down", []string{toxic("slicer", "downstream", 1, `"average_size":3000,"size_variation":1000,"delay":2000`)}, true},
		{"slicer up", []string{toxic("slicer", "upstream", 1, `"average_size":3000,"size_variation":1000,"delay":2000`)}, true},
		{"reset down", []string{toxic("reset_peer", "downstream", 0.4, `"timeout":20`)}, false},
		{"reset up", []string{toxic("reset_peer", "upstream", 0.4, `"timeout":20`)}, false},
		{"reset at once", []string{toxic("reset_peer", "upstream", 1, `"timeout":0`)}, false},
		{"silence down", []string{toxic("timeout", "downstream", 0.4, `"timeout":0`)}, false},
		{"silence up", []string{toxic("timeout", "upstream", 0.4, `"timeout":0`)}, false},
		{"closed late", []string{toxic("timeout", "downstream", 0.4, `"timeout":300`)}, false},
		{"cut down", []string{toxic("limit_data", "downstream", 0.5, `"bytes":20000`)}, false},
		{"cut up", []string{toxic("limit_data", "upstream", 0.5, `"bytes":20000`)}, false},
		{"closes slowly", []string{toxic("slow_close", "downstream", 1, `"delay":200`)}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOrigin(t)
			address := o.poisoned(t, tt.toxics...)
			w := newWay(t, short())
			if tt.all {
				w = newWay(t, retry.Config{})
				w.deadline = 5 * time.Minute
			}
			var tally tally
			var wg sync.WaitGroup
			for i := range 24 {
				wg.Go(func() { tally.add(t, w, w.once(address, i)) })
			}
			wg.Wait()
			t.Logf("%v", &tally)
			if tt.all && tally.good != 24 {
				t.Errorf("%d of 24 succeeded", tally.good)
			}
			o.mu.Lock()
			defer o.mu.Unlock()
			for path, n := range o.processed {
				if n > 1 && strings.HasPrefix(path, "/till/post-") {
					t.Errorf("%s was processed %d times", path, n)
				}
			}
			w.base.CloseIdleConnections()
			if err := settled(func() (int64, int64) { return w.open.Load(), 0 }); err != nil {
				t.Errorf("sockets: %v", err)
			}
		})
	}
}

// result is what came of one request.
type result struct {
	name  string
	err   error // nil: success, or the server's own answer
	wrong string
	took  time.Duration
}

// once makes request i: every third is a download, a PUT, a POST.
func (w *way) once(address string, i int) (r result) {
	start := time.Now()
	defer func() { r.took = time.Since(start) }()
	ctx, cancel := context.WithTimeout(context.Background(), w.deadline)
	defer cancel()
	text := strings.Repeat(fmt.Sprintf("%07d\n", i), size/8)
	sum := sha256.Sum256([]byte(text))
	method, path := "GET", fmt.Sprintf("/range/%d", size)
	var body io.Reader
	if i%3 > 0 {
		method = []string{"", "PUT", "POST"}[i%3]
		path = fmt.Sprintf("/till/%s-%d", strings.ToLower(method), i)
		body = strings.NewReader(text)
	}
	r.name = method + " " + path
	req, err := http.NewRequestWithContext(ctx, method, address+path, body)
	if err != nil {
		r.wrong = err.Error()
		return r
	}
	resp, err := w.client.Do(req)
	if err != nil {
		r.err = err
		return r
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		r.err = err
	case resp.StatusCode != http.StatusOK:
		r.wrong = resp.Status // neither server says such a thing here
	case body == nil && len(got) != size:
		r.wrong = fmt.Sprintf("a body of %d bytes and no error", len(got))
	case body != nil && string(got) != hex.EncodeToString(sum[:]):
		r.wrong = "another body arrived than was sent"
	}
	return r
}

// tally sums up what came.
type tally struct {
	mu      sync.Mutex
	good    int
	kinds   map[string]int
	slowest time.Duration
}

func (y *tally) add(t *testing.T, w *way, r result) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.slowest = max(y.slowest, r.took)
	if r.took > w.deadline+slack+w.stalled() {
		t.Errorf("%s: took %v, while the machine stalled for %v", r.name, r.took, w.stalled())
	}
	if r.wrong != "" {
		t.Errorf("%s: %s", r.name, r.wrong)
		return
	}
	if r.err == nil {
		y.good++
		return
	}
	kind := typed(r.err)
	if kind == "" {
		t.Errorf("%s: %v", r.name, r.err)
	}
	if y.kinds == nil {
		y.kinds = make(map[string]int)
	}
	y.kinds[kind]++
}

func (y *tally) String() string {
	return fmt.Sprintf("%d good, %v, the slowest after %v", y.good, y.kinds, y.slowest.Round(time.Millisecond))
}

// typed names the type that a program would ask for.
func typed(err error) string {
	var (
		r *retry.Error
		b *breaker.Error
		q *throttle.Error
		o *retry.TimeoutError
		n net.Error
	)
	switch {
	case errors.As(err, &r):
		return "retry.Error"
	case errors.As(err, &b):
		return "breaker.Error"
	case errors.As(err, &q):
		return "throttle.Error"
	case errors.As(err, &o):
		return "retry.TimeoutError"
	case errors.Is(err, context.DeadlineExceeded):
		return "the deadline"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "a cut body"
	case errors.As(err, &n):
		return "net.Error"
	}
	return ""
}

// TestNothingIsLeft: after a few hundred requests through all of this, no
// goroutine is.
func TestNothingIsLeft(t *testing.T) {
	before := goroutines()
	t.Run("run", func(t *testing.T) {
		o := newOrigin(t)
		address := o.poisoned(t, toxic("reset_peer", "downstream", 0.2, `"timeout":10`), toxic("limit_data", "upstream", 0.2, `"bytes":30000`))
		w := newWay(t, short())
		var tally tally
		var wg sync.WaitGroup
		for g := range 8 {
			wg.Go(func() {
				for i := range 30 {
					tally.add(t, w, w.once(address, g*30+i))
				}
			})
		}
		wg.Wait()
		t.Logf("%v", &tally)
		w.base.CloseIdleConnections()
	})
	if err := settled(func() (int64, int64) { return goroutines(), before + 2 }); err != nil {
		t.Errorf("goroutines: %v", err)
	}
}

// TestRefusedConnection: nobody listens: every request may be sent elsewhere.
func TestRefusedConnection(t *testing.T) {
	w := newWay(t, short())
	for i := range 6 {
		r := w.once("http://127.0.0.1:1", i) // a port that no test is given
		if r.err == nil || typed(r.err) == "" {
			t.Errorf("%s: %v %s", r.name, r.err, r.wrong)
		}
	}
}

// TestHTTPBin: httpbin's own failures, without a proxy.
func TestHTTPBin(t *testing.T) {
	o := newOrigin(t)
	w := newWay(t, retry.Config{AttemptTimeout: time.Second})
	for _, tt := range []struct {
		path   string
		status int // 0: an error while the body is read, or before
	}{
		{"/status/200", 200}, {"/status/404", 404}, {"/status/429", 429}, {"/redirect/5", 200}, {"/status/500", 500},
		{"/gzip", 200}, {"/status/503", 503}, {"/deflate", 200}, {"/drip?numbytes=20&duration=1&delay=0", 200},
		{"/stream/20", 200}, {"/bytes/70000", 200}, {"/delay/10", 0}, {"/sse?count=5&duration=1s&delay=0s", 200}, {"/basic-auth/u/p", 401},
		{"/cache", 200}, {"/trailers?x=1", 200}, {"/links/3", 200},
	} {
		t.Run(tt.path, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if tt.status == 429 || tt.status == 503 || tt.status == 500 {
				ctx = retry.With(ctx, retry.Override{MaxAttempts: 2})
			}
			// After two refusals that say no more the next call to their route waits up to 10 s.
			req, err := http.NewRequestWithContext(throttle.WithMaxWait(ctx, 20*time.Second), "GET", o.URL+tt.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := w.client.Do(req)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			switch {
			case tt.status == 0 && (err == nil || typed(err) == ""):
				t.Errorf("%v", err)
			case tt.status != 0 && (err != nil || resp.StatusCode != tt.status):
				t.Errorf("%v, %v; want %d", resp, err, tt.status)
			}
		})
	}
}
