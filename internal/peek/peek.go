// Package peek reads the start of a response's body before the response is handed over.
// Its reader still gets the whole body.
package peek

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// For is how long Start waits. A server sends the text that explains a refusal together
// with its headers, so this is enough for a slow connection; and a call that is refused
// is not delayed by more.
const For = 100 * time.Millisecond

// Tells reports whether the body of resp may say why a request was refused.
func Tells(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable, 529:
		return Readable(resp)
	}
	return false
}

// Readable reports whether the body of resp is text that comes in one piece: it
// is JSON, XML or plain text, not compressed, and no stream of messages.
func Readable(resp *http.Response) bool {
	if resp.Body == nil || resp.Body == http.NoBody || resp.ContentLength == 0 || resp.StatusCode == http.StatusSwitchingProtocols {
		return false
	}
	kind := strings.ToLower(resp.Header.Get("Content-Type"))
	text := strings.Contains(kind, "json") || strings.Contains(kind, "xml") || strings.HasPrefix(kind, "text/")
	return text && !streams(kind) && resp.Header.Get("Content-Encoding") == ""
}

// streams reports whether text of a kind is sent message by message, with
// pauses of any length: events, lines of JSON, the watches of Kubernetes.
func streams(kind string) bool {
	for _, s := range [...]string{"stream", "ndjson", "jsonl", "json-lines", "json-seq", "connect+", "grpc"} {
		if strings.Contains(kind, s) {
			return true
		}
	}
	return false
}

// Start returns the start of resp's body, up to most bytes of it: what came within For
// and before ctx ended, perhaps nothing. It replaces resp.Body by one that still
// yields the whole body, each part as soon as it has come. A second call for the same
// body returns what the first one did. The caller must not change the bytes.
func Start(ctx context.Context, resp *http.Response, most int64) []byte {
	if p, again := resp.Body.(*body); again {
		return p.start[:p.shown:p.shown]
	}
	p := &body{ReadCloser: resp.Body, done: make(chan struct{})}
	p.more.L = &p.mu
	resp.Body = p
	go p.ahead(most)
	timer := time.NewTimer(For)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.enough, p.shown = true, len(p.start)
	return p.start[:p.shown:p.shown]
}

// body is a response body whose start is read ahead by a goroutine. When Start has
// returned, the goroutine finishes the read that it is in, which Close ends, and returns.
type body struct {
	io.ReadCloser
	done  chan struct{} // closed when ended
	shown int           // how many bytes of start Start returned

	mu     sync.Mutex
	more   sync.Cond // start has grown, or ended is set
	start  []byte    // what was read ahead; it is only appended to
	enough bool      // Start has returned: reading ahead stops after the next read
	ended  bool      // reading ahead has ended
	err    error     // what its last read returned
	bad    any       // what it panicked with
	at     int       // how many bytes of start the body's reader has got
}

// ahead reads up to most bytes into start. It returns when the body is closed.
func (p *body) ahead(most int64) {
	defer func() {
		bad := recover() // Read panics with it, in the caller's goroutine
		p.mu.Lock()
		p.bad, p.ended = bad, true
		p.mu.Unlock()
		p.more.Broadcast()
		close(p.done)
	}()
	for left := most; left > 0; {
		free := make([]byte, min(left, 4<<10))
		n, err := p.ReadCloser.Read(free)
		p.mu.Lock()
		p.start, p.err = append(p.start, free[:n]...), err
		stop := p.enough || err != nil
		p.mu.Unlock()
		p.more.Broadcast()
		if left -= int64(n); stop {
			return
		}
	}
}

func (p *body) Read(b []byte) (int, error) {
	p.mu.Lock()
	for p.at == len(p.start) && !p.ended {
		p.more.Wait()
	}
	if p.at < len(p.start) {
		n := copy(b, p.start[p.at:])
		p.at += n
		p.mu.Unlock()
		return n, nil
	}
	err, bad := p.err, p.bad
	p.mu.Unlock()
	switch {
	case bad != nil:
		panic(bad)
	case err != nil:
		return 0, err
	}
	return p.ReadCloser.Read(b)
}
