// Package testnet is a network in memory for tests. Its connections buffer like TCP and
// block durably, so that HTTP can run over them inside a testing/synctest bubble. It also
// has bodies and bases (the http.RoundTrippers that a layer sends to) that record how
// they are used.
package testnet

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// window is how many bytes one direction buffers before a writer waits. Tests with larger
// bodies see a writer wait.
const window = 64 << 10

// Net is a listener and the dialer that reaches it. It counts connections.
type Net struct {
	conns  chan net.Conn
	done   chan struct{}
	once   sync.Once
	Dialed atomic.Int64 // connections ever made
	open   atomic.Int64
	Refuse atomic.Bool // dials fail as if nobody listened
}

// New returns a network. Somebody must accept its connections: see Server and Each.
func New() *Net {
	return &Net{conns: make(chan net.Conn), done: make(chan struct{})}
}

// Open is the number of client connections not closed by either side.
func (n *Net) Open() int64 { return n.open.Load() }

// DialContext connects to whoever accepts next, whatever the address. It is what
// http.Transport.DialContext needs.
func (n *Net) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if n.Refuse.Load() {
		return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New("connection refused")}
	}
	client, server := Pipe()
	client.(*conn).onClose = func() { n.open.Add(-1) }
	select {
	case n.conns <- server:
		n.Dialed.Add(1)
		n.open.Add(1)
		return client, nil
	case <-n.done:
		return nil, &net.OpError{Op: "dial", Net: network, Err: net.ErrClosed}
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
	}
}

// Accept implements net.Listener. After Close it returns net.ErrClosed.
func (n *Net) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.done:
		return nil, net.ErrClosed
	}
}

// Each accepts connections and calls serve for each in a goroutine of wg. When serve
// returns, its connection is closed. Each returns when n is closed.
func (n *Net) Each(wg *sync.WaitGroup, serve func(net.Conn)) {
	for {
		c, err := n.Accept()
		if err != nil {
			return
		}
		wg.Go(func() {
			defer c.Close()
			serve(c)
		})
	}
}

// Close ends Accept and refuses new connections; those that there are stay.
func (n *Net) Close() error {
	n.once.Do(func() { close(n.done) })
	return nil
}

// Addr implements net.Listener. All addresses here are the same.
func (n *Net) Addr() net.Addr { return addr{} }

type addr struct{}

func (addr) Network() string { return "tcp" }
func (addr) String() string  { return "127.0.0.1:1" }

// half is one direction of a connection.
type half struct {
	mu       sync.Mutex
	cond     sync.Cond
	buf      []byte
	err      error // set when the writing side is closed: a reader gets it once buf is empty
	readBy   deadline
	writeBy  deadline
	readGone bool // the reader closed: writes fail
}

type deadline struct {
	at    time.Time
	timer *time.Timer
}

func newHalf() *half {
	h := new(half)
	h.cond.L = &h.mu
	return h
}

func (d deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.readGone:
			return 0, net.ErrClosed
		case h.readBy.passed():
			return 0, os.ErrDeadlineExceeded
		case len(h.buf) > 0:
			n := copy(p, h.buf)
			h.buf = h.buf[n:]
			h.cond.Broadcast()
			return n, nil
		case h.err != nil:
			return 0, h.err
		}
		h.cond.Wait()
	}
}

func (h *half) write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	done := 0
	for {
		switch {
		case h.err != nil:
			return done, net.ErrClosed
		case h.readGone:
			return done, &net.OpError{Op: "write", Net: "tcp", Err: errors.New("broken pipe")}
		case h.writeBy.passed():
			return done, os.ErrDeadlineExceeded
		}
		if room := window - len(h.buf); room > 0 {
			n := min(room, len(p)-done)
			h.buf = append(h.buf, p[done:done+n]...)
			done += n
			h.cond.Broadcast()
		}
		if done == len(p) {
			return done, nil
		}
		h.cond.Wait()
	}
}

// end closes the writing side. A reader gets what is buffered, and then err.
func (h *half) end(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.err = err
	}
	h.cond.Broadcast()
}

// leave closes the reading side.
func (h *half) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readGone = true
	h.buf = nil
	h.cond.Broadcast()
}

func (h *half) set(d *deadline, t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
	*d = deadline{at: t}
	if !t.IsZero() && !d.passed() { // no timer that is due at once: see Wait
		d.timer = time.AfterFunc(time.Until(t), func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.cond.Broadcast()
		})
	}
	h.cond.Broadcast()
}

func (h *half) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, d := range []deadline{h.readBy, h.writeBy} {
		if d.timer != nil {
			d.timer.Stop()
		}
	}
}

type conn struct {
	in, out *half
	once    sync.Once
	onClose func()
}

// Pipe returns the two ends of a connection. Reset and CloseWrite take either.
func Pipe() (client, server net.Conn) {
	a, b := newHalf(), newHalf()
	return &conn{in: a, out: b}, &conn{in: b, out: a}
}

func (c *conn) Read(p []byte) (int, error)  { return c.in.read(p) }
func (c *conn) Write(p []byte) (int, error) { return c.out.write(p) }

func (c *conn) Close() error { return c.close(io.EOF) }

// Reset closes a connection as a TCP reset does: what the peer has not read yet is
// dropped, and its next read fails instead of reaching the end of the stream.
func Reset(c net.Conn) {
	if c, ok := c.(*conn); ok {
		c.out.mu.Lock()
		c.out.buf = nil
		c.out.mu.Unlock()
		c.close(&net.OpError{Op: "read", Net: "tcp", Err: errors.New("connection reset by peer")})
	}
}

// CloseWrite ends the stream to the peer, which can still write.
func CloseWrite(c net.Conn) {
	if c, ok := c.(*conn); ok {
		c.out.end(io.EOF)
	}
}

func (c *conn) close(err error) error {
	c.once.Do(func() {
		c.in.leave() // before end: when the peer sees the end of the stream, its writes fail already
		c.out.end(err)
		c.in.stop()
		c.out.stop()
		if c.onClose != nil {
			c.onClose()
		}
	})
	return nil
}

func (c *conn) LocalAddr() net.Addr                { return addr{} }
func (c *conn) RemoteAddr() net.Addr               { return addr{} }
func (c *conn) SetReadDeadline(t time.Time) error  { c.in.set(&c.in.readBy, t); return nil }
func (c *conn) SetWriteDeadline(t time.Time) error { c.out.set(&c.out.writeBy, t); return nil }

func (c *conn) SetDeadline(t time.Time) error {
	c.in.set(&c.in.readBy, t)
	c.out.set(&c.out.writeBy, t)
	return nil
}
