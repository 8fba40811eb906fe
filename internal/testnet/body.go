package testnet

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
)

// Body is a request or response body that fails every Read after Close and counts calls.
// NewBody or BodyOf makes one. It is safe for concurrent use.
type Body struct {
	mu     sync.Mutex
	r      io.Reader
	closes int
	reads  int
	ended  bool
}

// ErrReadAfterClose is what Read returns after Close.
var ErrReadAfterClose = errors.New("testnet: read after close")

// NewBody returns a body that holds text.
func NewBody(text string) *Body { return &Body{r: bytes.NewReader([]byte(text))} }

// BodyOf returns a body that reads from r.
func BodyOf(r io.Reader) *Body { return &Body{r: r} }

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	b.mu.Lock()
	if b.closes > 0 {
		b.mu.Unlock()
		return 0, ErrReadAfterClose
	}
	b.reads++
	b.mu.Unlock()
	n, err := b.r.Read(p)
	if err == io.EOF {
		b.mu.Lock()
		b.ended = true
		b.mu.Unlock()
	}
	return n, err
}

// Close implements io.Closer. It never fails and may be called again.
func (b *Body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closes++
	return nil
}

// Closes is how often Close was called.
func (b *Body) Closes() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closes
}

// Reads is how often Read was called before Close.
func (b *Body) Reads() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reads
}

// AtEnd reports whether a Read has returned io.EOF.
func (b *Body) AtEnd() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended
}

// Func is an http.RoundTripper that is a function.
type Func func(*http.Request) (*http.Response, error)

// RoundTrip calls f.
func (f Func) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Answer makes a response to r. It reads and closes r's body, as a RoundTripper has to.
// header may be nil, and so may body, which means that there is none.
func Answer(r *http.Request, status int, header http.Header, body io.ReadCloser) *http.Response {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	if header == nil {
		header = make(http.Header)
	}
	if body == nil {
		body = http.NoBody
	}
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: body, ContentLength: -1, Request: r,
	}
}
