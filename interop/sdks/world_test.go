// Package sdks runs published SDKs over weir.Transport, unmodified, against
// servers in memory that speak their API's rate dialect, in virtual time.
package sdks

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// bubble runs f in virtual time with a client over weir that reaches h under
// any host's name. What f leaves behind fails the test.
func bubble(t *testing.T, h http.Handler, c weir.Config, f func(t *testing.T, client *http.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		base, n, stop := testnet.Server(t, h, false)
		rt, err := weir.New(base, c)
		if err != nil {
			t.Fatal(err)
		}
		f(t, &http.Client{Transport: rt})
		if err := rt.Close(); err != nil {
			t.Error(err)
		}
		stop()
		synctest.Wait()
		if n.Open() != 0 {
			t.Errorf("%d connections left", n.Open())
		}
	})
}

// once makes weir leave retries to the SDK.
func once() weir.Config { return weir.Config{Retry: retry.Config{MaxAttempts: 1}} }

// rtt is how long a server in memory takes to answer.
const rtt = 30 * time.Millisecond

// quota is a fixed window that starts with its first request.
type quota struct {
	limit int
	per   time.Duration
	state func(h http.Header, s standing)                // nil: it states nothing
	deny  func(w http.ResponseWriter, wait int, n int64) // writes a refusal; wait is in seconds

	mu              sync.Mutex
	left            int
	ends            time.Time
	served, refused int64
}

// standing is what a request finds.
type standing struct {
	limit, remaining int
	reset            time.Time
}

func (q *quota) take() (s standing, ok bool, n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now := time.Now(); !now.Before(q.ends) {
		q.left, q.ends = q.limit, now.Add(q.per)
	}
	if ok = q.left > 0; ok {
		q.left--
		q.served++
	} else {
		q.refused++
	}
	return standing{q.limit, q.left, q.ends}, ok, q.refused
}

func (q *quota) over(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		time.Sleep(rtt)
		s, ok, n := q.take()
		if q.state != nil {
			q.state(w.Header(), s)
		}
		if !ok {
			wait := int((time.Until(s.reset) + time.Second - 1) / time.Second)
			q.deny(w, wait, n)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// says answers 200 with JSON.
func says(body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, body)
	})
}

// refuse writes a refusal with a JSON or XML body.
func refuse(w http.ResponseWriter, status int, body string) {
	kind := "application/json"
	if strings.HasPrefix(body, "<") {
		kind = "application/xml"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	io.WriteString(w, body)
}

// inbox keeps what was uploaded, by digest of the whole body or of what find
// makes of it.
type inbox struct {
	first  http.HandlerFunc // answers the first request, after its body; nil: it is accepted
	find   func(*http.Request) ([]byte, error)
	answer http.Handler

	mu    sync.Mutex
	turns int
	got   []string
}

func (b *inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.turns++
	first := b.turns == 1
	b.mu.Unlock()
	body, err := b.find(r)
	io.Copy(io.Discard, r.Body)
	if first && b.first != nil {
		b.first(w, r)
		return
	}
	b.mu.Lock()
	b.got = append(b.got, digest(body, err))
	b.mu.Unlock()
	b.answer.ServeHTTP(w, r)
}

func digest(body []byte, err error) string {
	return fmt.Sprintf("%d bytes, %x, %v", len(body), sha256.Sum256(body), err)
}

func whole(r *http.Request) ([]byte, error) { return io.ReadAll(r.Body) }

// part reads the named part of a form.
func part(name string) func(*http.Request) ([]byte, error) {
	return func(r *http.Request) ([]byte, error) {
		f, _, err := r.FormFile(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return io.ReadAll(f)
	}
}

// related reads the second part of a multipart/related body.
func related(r *http.Request) ([]byte, error) {
	m, err := multipartOf(r)
	if err != nil {
		return nil, err
	}
	if _, err := m.NextPart(); err != nil {
		return nil, err
	}
	p, err := m.NextPart()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(p)
}
