package retry_test

import (
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/retry"
)

// Frame types and flags of RFC 9113 section 6.
const (
	frameData, frameHeaders, frameReset, frameSettings, framePing, frameGoAway = 0, 1, 3, 4, 6, 7
	flagEndStream, flagAck, flagEndHeaders                                     = 1, 1, 4
)

// streamServer speaks just enough HTTP/2 by hand to refuse streams in ways
// that no server of net/http can be made to.
type streamServer struct {
	n  *testnet.Net
	wg sync.WaitGroup
	// end answers the nth request on a connection's stream, whose end was
	// read, and says whether the connection goes on.
	end func(c frames, stream uint32, nth int) bool

	mu     sync.Mutex
	ended  int // requests that were read to their end
	opened int // and those that were begun
}

type frames struct{ net.Conn }

func (c frames) send(kind, flags byte, stream uint32, payload []byte) {
	b := make([]byte, 9, 9+len(payload))
	b[0], b[1], b[2] = byte(len(payload)>>16), byte(len(payload)>>8), byte(len(payload))
	b[3], b[4] = kind, flags
	binary.BigEndian.PutUint32(b[5:], stream)
	c.Write(append(b, payload...))
}

// ok is a header block of ":status: 200" alone (RFC 7541 appendix A, entry 8).
func (c frames) ok(stream uint32) {
	c.send(frameHeaders, flagEndStream|flagEndHeaders, stream, []byte{0x88})
}

func (c frames) reset(stream, code uint32) {
	c.send(frameReset, 0, stream, binary.BigEndian.AppendUint32(nil, code))
}

func (c frames) goAway(last, code uint32) {
	c.send(frameGoAway, 0, 0, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, last), code))
}

func (s *streamServer) run() { s.n.Each(&s.wg, func(c net.Conn) { s.serve(frames{c}) }) }

func (s *streamServer) serve(c frames) {
	preface := make([]byte, len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	if _, err := io.ReadFull(c, preface); err != nil {
		return
	}
	c.send(frameSettings, 0, 0, nil)
	head := make([]byte, 9)
	for {
		if _, err := io.ReadFull(c, head); err != nil {
			return
		}
		size := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
		payload := make([]byte, size)
		if _, err := io.ReadFull(c, payload); err != nil {
			return
		}
		kind, flags, stream := head[3], head[4], binary.BigEndian.Uint32(head[5:])
		switch {
		case kind == frameSettings && flags&flagAck == 0:
			c.send(frameSettings, flagAck, 0, nil)
		case kind == framePing && flags&flagAck == 0:
			c.send(framePing, flagAck, 0, payload)
		case kind == frameHeaders || kind == frameData:
			s.mu.Lock()
			if kind == frameHeaders {
				s.opened++
			}
			end := flags&flagEndStream != 0
			if end {
				s.ended++
			}
			nth := s.ended
			s.mu.Unlock()
			if end && !s.end(c, stream, nth) {
				return
			}
		}
	}
}

// What HTTP/2 says about a request that was not answered decides whether a
// POST is sent again. net/http itself repeats refused streams for a while.
func TestWhatHTTP2SaysOfAStreamDecidesAboutAPOST(t *testing.T) {
	refuse := func(times int) func(frames, uint32, int) bool {
		return func(c frames, stream uint32, nth int) bool {
			if nth <= times {
				c.reset(stream, 7)
			} else {
				c.ok(stream)
			}
			return true
		}
	}
	first := func(f func(c frames, stream uint32)) func(frames, uint32, int) bool {
		return func(c frames, stream uint32, nth int) bool {
			if nth > 1 {
				c.ok(stream)
				return true
			}
			f(c, stream)
			return false
		}
	}
	for _, tt := range []struct {
		name      string
		end       func(frames, uint32, int) bool
		get, post int // requests the server reads; negative: and the client gets an error
	}{
		{"refused twice", refuse(2), 3, 3},
		{"refused more often than net/http repeats", refuse(8), 9, 9},
		{"going away, not processed", first(func(c frames, _ uint32) { c.goAway(0, 0) }), 2, 2},
		{"going away, perhaps processed", first(func(c frames, s uint32) { c.goAway(s, 0) }), 2, -1},
		{"internal error", first(func(c frames, s uint32) { c.reset(s, 2) }), 2, -1},
		{"cancelled", first(func(c frames, s uint32) { c.reset(s, 8) }), 2, -1},
		{"connection lost", first(func(c frames, _ uint32) { testnet.Reset(c.Conn) }), 2, -1},
	} {
		for _, kind := range []string{"GET", "POST"} {
			bubble(t, tt.name+", "+kind, func(t *testing.T) {
				s := &streamServer{n: testnet.New(), end: tt.end}
				s.wg.Go(s.run)
				var protocols http.Protocols
				protocols.SetUnencryptedHTTP2(true)
				base := &http.Transport{DialContext: s.n.DialContext, Protocols: &protocols}
				rt := newTransport(t, base, retry.Config{AttemptTimeout: 10 * time.Minute, Backoff: fixed(time.Second)})
				status, err := get(t, rt, kind)
				want := tt.get
				if kind == "POST" {
					want = tt.post
				}
				wantStatus := 200
				if want < 0 {
					want, wantStatus = -want, 0
				}
				if status != wantStatus || s.ended != want {
					t.Errorf("got status %d (%v) after %d requests, want %d after %d", status, err, s.ended, wantStatus, want)
				}
				synctest.Wait() // streams that were given up are cleaned up later
				base.CloseIdleConnections()
				s.n.Close()
				s.wg.Wait()
			})
		}
	}
}
