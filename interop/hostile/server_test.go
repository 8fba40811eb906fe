// Package hostile sends weir to servers that mean harm, in virtual time.
package hostile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/breaker"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/interop/real"
	"github.com/weirhttp/weir/retry"
	"github.com/weirhttp/weir/throttle"
)

// world is a client over weir, a server that writes what it likes, and all
// that weir says on the way.
type world struct {
	client  *http.Client
	weir    *weir.Transport
	served  atomic.Int64 // requests
	path    atomic.Value // of the last one, a string
	said    *said
	peak    atomic.Uint64 // of the heap, as sampled by the server
	started time.Time
}

// bubble runs f against answer, which writes each answer by hand and is given
// how many came before it.
func bubble(t *testing.T, answer func(w *world, conn net.Conn, n int64), f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{said: new(said), started: time.Now()}
		n := testnet.New()
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				conn, err := n.Accept()
				if err != nil {
					return
				}
				wg.Go(func() { w.serve(conn, answer) })
			}
		})
		base := &http.Transport{DialContext: n.DialContext}
		rt, err := weir.New(base, w.said.config())
		if err != nil {
			t.Fatal(err)
		}
		w.weir, w.client = rt, &http.Client{Transport: rt}
		f(t, w)
		w.said.stats(rt)
		w.said.check(t)
		page(t, real.Page(rt))
		rt.Close()
		base.CloseIdleConnections()
		n.Close()
		wg.Wait()
		if n.Open() != 0 {
			t.Errorf("%d connections left", n.Open())
		}
	})
}

func (w *world) serve(conn net.Conn, answer func(*world, net.Conn, int64)) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		io.Copy(io.Discard, r.Body)
		w.path.Store(r.URL.Path)
		answer(w, conn, w.served.Add(1)-1)
	}
}

// write reports whether the client still listens, and samples the heap.
func (w *world) write(conn net.Conn, s string) bool {
	_, err := io.WriteString(conn, s)
	return err == nil
}

// sample notes how large the heap is.
func (w *world) sample() {
	if h := heap(); h > w.peak.Load() {
		w.peak.Store(h)
	}
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func live() uint64 {
	runtime.GC()
	runtime.GC()
	return heap()
}

// get is one GET with what it came to in words; a body is read up to 1 MB.
func (w *world) get(t *testing.T, path string) (status int, err error) {
	t.Helper()
	resp, err := w.client.Get("http://evil.test" + path)
	if err != nil {
		w.said.add(err.Error())
		return 0, err
	}
	io.CopyN(io.Discard, resp.Body, 1<<20)
	resp.Body.Close()
	return resp.StatusCode, nil
}

// typed reports whether err is one that the documentation promises.
func typed(err error) bool {
	var t *throttle.Error
	var b *breaker.Error
	var r *retry.Error
	var o *retry.TimeoutError
	return errors.As(err, &t) || errors.As(err, &b) || errors.As(err, &r) || errors.As(err, &o)
}

// said is every text that comes out of weir: errors, hooks, Stats.
type said struct {
	mu    sync.Mutex
	texts []string
}

func (s *said) add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.texts = append(s.texts, text)
}

func (s *said) config() weir.Config {
	return weir.Config{
		Throttle: throttle.Config{
			OnWait:  func(x throttle.Wait) { x.Ctx = nil; s.add(fmt.Sprintf("%+v", x)) },
			OnLearn: func(x throttle.Learned) { x.Ctx = nil; s.add(fmt.Sprintf("%+v", x)) },
		},
		Retry: retry.Config{OnAttempt: func(x retry.Attempt) {
			x.Ctx, x.Err = nil, nil // Err is net/http's
			s.add(fmt.Sprintf("%+v", x))
		}},
		Breaker: breaker.Config{OnStateChange: func(x breaker.Change) { x.Ctx = nil; s.add(fmt.Sprintf("%+v", x)) }},
	}
}

func (s *said) stats(rt *weir.Transport) {
	all := rt.Stats()
	for _, h := range all.Throttle.Hosts {
		s.add(fmt.Sprintf("%+v", h))
	}
	s.add(fmt.Sprintf("%+v", all.Breaker))
	all.Retry.Hosts = nil // counts by host
	s.add(fmt.Sprintf("%+v", all.Retry))
}

// page holds the same for the live page, which has lines and says nothing in
// markup that was not its own.
func page(t *testing.T, text string) {
	t.Helper()
	bad := strings.IndexFunc(text, func(r rune) bool { return r != ' ' && r != '\n' && r != '\r' && r != '\t' && !unicode.IsGraphic(r) })
	if !utf8.ValidString(text) || bad >= 0 || strings.Contains(text, "<script>alert") {
		t.Errorf("not escaped on the page: %.300q", text[max(0, bad-100):])
	}
	if strings.Count(text, "200 OK") < 3 {
		t.Errorf("the page does not answer: %.300q", text)
	}
}

// check holds that what is said can be written to a terminal or a log.
func (s *said) check(t *testing.T) {
	t.Helper()
	for _, text := range s.texts {
		bad := strings.IndexFunc(text, func(r rune) bool { return r != ' ' && !unicode.IsGraphic(r) })
		if !utf8.ValidString(text) || bad >= 0 {
			t.Errorf("not escaped: %.300q", text)
			return
		}
		if len(text) > 64<<10 {
			t.Errorf("%d bytes of text: %.200q", len(text), text)
		}
	}
}
