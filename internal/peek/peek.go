// Package peek reads the start of a response's body ahead of its reader, who
// still gets all of it.
package peek

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"
)

// For is how long a body's start is waited for.
const For = 100 * time.Millisecond

// Tells reports whether the body of resp may say why a request was refused. It
// is text, not compressed, and not a stream of events.
func Tells(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusForbidden, http.StatusTooManyRequests, http.StatusServiceUnavailable, 529:
	default:
		return false
	}
	kind := strings.ToLower(resp.Header.Get("Content-Type"))
	readable := strings.Contains(kind, "json") || strings.Contains(kind, "xml") || strings.HasPrefix(kind, "text/")
	return readable && !strings.HasPrefix(kind, "text/event-stream") && resp.Header.Get("Content-Encoding") == "" &&
		resp.Body != nil && resp.Body != http.NoBody && resp.ContentLength != 0
}

// Start reads the start of resp's body, at most that many bytes, and puts it
// back. A server that is slow to send it is not waited for: what comes after
// For is for the caller alone. Who looks again at the same body gets what was
// found the first time.
func Start(ctx context.Context, resp *http.Response, most int64) []byte {
	if p, again := resp.Body.(*body); again {
		select {
		case <-p.done:
			return p.start
		default:
			return nil
		}
	}
	p := &body{ReadCloser: resp.Body, done: make(chan struct{})}
	go p.read(most)
	timer := time.NewTimer(For)
	defer timer.Stop()
	resp.Body = p
	select {
	case <-p.done:
		return p.start
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// body is one of which the start was read ahead.
type body struct {
	io.ReadCloser
	done  chan struct{} // closed when start, err and bad are final
	start []byte
	err   error // how reading ahead ended, if that was before the limit
	bad   any   // what it panicked with
	at    int   // how much of start has been read
}

// read reads ahead. Closing the body ends it.
func (p *body) read(most int64) {
	defer func() {
		p.bad = recover() // goes on where the caller can recover it
		close(p.done)
	}()
	for int64(len(p.start)) < most && p.err == nil {
		free := make([]byte, min(most-int64(len(p.start)), 4<<10))
		var n int
		n, p.err = p.ReadCloser.Read(free)
		p.start = append(p.start, free[:n]...)
	}
}

func (p *body) Read(b []byte) (int, error) {
	<-p.done
	switch {
	case p.at < len(p.start):
		n := copy(b, p.start[p.at:])
		p.at += n
		return n, nil
	case p.bad != nil:
		panic(p.bad)
	case p.err != nil:
		return 0, p.err
	}
	return p.ReadCloser.Read(b)
}
