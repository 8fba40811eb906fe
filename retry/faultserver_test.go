package retry_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// faultServer speaks HTTP/1 by hand, so that it can break off anywhere, and
// counts what really reached it.
type faultServer struct {
	n      *testnet.Net
	faulty int   // that many turns go wrong; a turn is a connection or a request, as the fault has it
	fault  fault // how
	wg     sync.WaitGroup

	mu        sync.Mutex
	turns     int
	received  int // requests whose header was read
	processed int // requests that had their effect
}

// fault is a way to go wrong.
type fault struct {
	name   string
	onDial bool                                              // the connection is refused
	accept func(c net.Conn)                                  // instead of reading a request
	answer func(s *faultServer, c net.Conn, r *http.Request) // instead of the good answer
	safe   result                                            // GET, PUT, keyed POST
	unsafe result                                            // POST
	racy   bool                                              // a POST may as well be known as not written, and be sent again
}

// result is what comes of a request whose first turn goes wrong.
type result struct {
	status              int // 0: an error
	received, processed int
}

func (s *faultServer) run() { s.n.Each(&s.wg, s.serve) }

func (s *faultServer) bad() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turns++
	return s.turns <= s.faulty
}

func (s *faultServer) serve(c net.Conn) {
	if s.fault.accept != nil && s.bad() {
		s.fault.accept(c)
		return
	}
	br := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.received++
		s.mu.Unlock()
		if s.fault.answer != nil && s.bad() {
			s.fault.answer(s, c, r)
			return
		}
		if !s.process(r) {
			return
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	}
}

// process reads the whole request and lets it have its effect.
func (s *faultServer) process(r *http.Request) bool {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return false
	}
	s.mu.Lock()
	s.processed++
	s.mu.Unlock()
	return true
}

// says is a fault that processes the request or not, writes text and closes.
func says(process bool, text string, then func(net.Conn)) func(*faultServer, net.Conn, *http.Request) {
	return func(s *faultServer, c net.Conn, r *http.Request) {
		if process {
			s.process(r)
		}
		io.WriteString(c, text)
		if then != nil {
			then(c)
		}
	}
}

// stall keeps the connection open until the client gives up.
func stall(c net.Conn) { io.Copy(io.Discard, c) }

// early answers when the first byte of the body is there, and gives the client
// time to read the answer before its writes fail.
func early(_ *faultServer, c net.Conn, r *http.Request) {
	r.Body.Read(make([]byte, 1))
	io.WriteString(c, answer("503 Service Unavailable"))
	time.Sleep(10 * time.Millisecond)
}

func answer(status string) string {
	return "HTTP/1.1 " + status + "\r\nContent-Length: 5\r\nConnection: close\r\n\r\nsorry"
}
