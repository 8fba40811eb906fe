package outbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestMain is also the child that TestKill kills, and that of TestDiskFull.
func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		if os.Getenv(fullEnv) != "" {
			fullChild(path)
		}
		child(path)
	}
	os.Exit(m.Run())
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

var errDown = errors.New("connection refused")

// seen is one request that reached a server.
type seen struct{ method, url, host, key, body string }

// server is a base that is down, or records what reaches it and answers with
// what status says.
type server struct {
	mu      sync.Mutex
	down    bool
	forgets bool                                   // what reaches it
	status  func(r *http.Request, body string) int // nil: 200
	got     []seen
	heads   []http.Header
	open    int // answers whose bodies are not closed
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		defer r.Body.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, errDown
	}
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	if s.forgets {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	s.got = append(s.got, seen{r.Method, r.URL.String(), r.Host, r.Header.Get("Idempotency-Key"), string(body)})
	s.heads = append(s.heads, r.Header)
	status := http.StatusOK
	if s.status != nil {
		status = s.status(r, string(body))
	}
	s.open++
	return &http.Response{
		StatusCode: status, Header: http.Header{}, Request: r, ProtoMajor: 1, ProtoMinor: 1,
		Body: &answerBody{Reader: bytes.NewReader([]byte("answer")), closed: sync.OnceFunc(func() {
			s.mu.Lock()
			s.open--
			s.mu.Unlock()
		})},
	}, nil
}

type answerBody struct {
	io.Reader
	closed func()
}

func (b *answerBody) Close() error { b.closed(); return nil }

func (s *server) set(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (s *server) requests() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]seen(nil), s.got...)
}

// bodies is what reached the server, in order.
func (s *server) bodies() (list []string) {
	for _, r := range s.requests() {
		list = append(list, r.body)
	}
	return list
}

// box returns an outbox in a directory of its own that keeps requests to
// api.example and its neighbours, with c's other settings.
func box(t testing.TB, base http.RoundTripper, c Config) *Transport {
	t.Helper()
	if c.Path == "" {
		c.Path = filepath.Join(t.TempDir(), "outbox.db")
	}
	if c.Patterns == nil {
		c.Patterns = []string{"api.example", "*.api.example"}
	}
	o, err := New(base, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

// post sends body to url and returns the id under which it was kept.
func post(t testing.TB, o http.RoundTripper, url, body string) (id string, err error) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), "POST", url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := o.RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	return resp.Header.Get(IDHeader), nil
}

// mustKeep is post for requests that are to be kept.
func mustKeep(t testing.TB, o http.RoundTripper, url, body string) string {
	t.Helper()
	id, err := post(t, o, url, body)
	if err != nil || id == "" {
		t.Fatalf("POST %s: id %q, %v; want it kept", url, id, err)
	}
	return id
}

func mustList(t testing.TB, o *Transport) []Entry {
	t.Helper()
	entries, err := o.List()
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func mustDrain(t testing.TB, o *Transport, want int) {
	t.Helper()
	if n, err := o.Drain(t.Context()); n != want || err != nil {
		t.Fatalf("Drain = %d, %v; want %d, nil", n, err, want)
	}
}
