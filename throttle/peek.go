package throttle

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/weirhttp/weir/headers"
)

// peekFor is how long a throttled answer's body is waited for.
const peekFor = 100 * time.Millisecond

// parse is what resp says: its headers, and for a refusal also the first bytes
// of its body, which are given back.
func (t *Transport) parse(ctx context.Context, resp *http.Response) headers.Signal {
	now := time.Now()
	if t.peek <= 0 || !tells(resp) {
		return headers.Parse(resp, now)
	}
	start := t.look(ctx, resp)
	return headers.ParseBody(resp, start, now)
}

// tells reports whether the body of resp may say why a request was refused. It
// is text, not compressed, and not a stream of events.
func tells(resp *http.Response) bool {
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

// look reads the start of resp's body, at most t.peek bytes, and puts it back.
// A server that is slow to send it is not waited for: what comes after peekFor
// is for the caller alone.
func (t *Transport) look(ctx context.Context, resp *http.Response) []byte {
	p := &peeked{ReadCloser: resp.Body, done: make(chan struct{})}
	go p.read(t.peek)
	timer := time.NewTimer(peekFor)
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

// peeked is a body of which the start was read ahead.
type peeked struct {
	io.ReadCloser
	done  chan struct{} // closed when start and err are final
	start []byte
	err   error // how reading ahead ended, if that was before the limit
	at    int   // how much of start has been read
}

// read reads ahead. Closing the body ends it.
func (p *peeked) read(most int64) {
	defer close(p.done)
	for int64(len(p.start)) < most && p.err == nil {
		free := make([]byte, min(most-int64(len(p.start)), 4<<10))
		var n int
		n, p.err = p.ReadCloser.Read(free)
		p.start = append(p.start, free[:n]...)
	}
}

func (p *peeked) Read(b []byte) (int, error) {
	<-p.done
	switch {
	case p.at < len(p.start):
		n := copy(b, p.start[p.at:])
		p.at += n
		return n, nil
	case p.err != nil:
		return 0, p.err
	}
	return p.ReadCloser.Read(b)
}
