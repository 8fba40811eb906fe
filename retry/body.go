package retry

import (
	"errors"
	"io"
	"net/http"
	"reflect"
	"sync"
	"time"
)

var (
	errSealed = errors.New("retry: request body read after its attempt ended")
	errGone   = errors.New("retry: request body cannot be sent again")
)

// closeGrace is how long a Read of a body that is being kept may go on after
// its attempt ended, before the body is closed under it.
const closeGrace = 50 * time.Millisecond

// replay lends one request body to several attempts, one after the other. The
// caller's body is closed once: when the request is over and the last
// attempt has closed its share.
//
// Up to limit bytes of what was read are kept. If limit is zero, the body can be
// lent again only while nothing of it was read. A body that can be read at an offset
// is read in no other way, so that attempts do not share a position; see embedsAt.
//
// The base may ask for copies of an attempt's body (GetBody), and for several at a
// time, as the hedge of another chain does.
type replay struct {
	src   io.ReadCloser
	at    io.ReaderAt // nil: src is read as it comes
	start int64       // where a body with at stood
	limit int64

	mu     sync.Mutex
	moved  sync.Cond // a Read of src ended, or a share was closed
	buf    []byte    // what was read of src, complete unless lost
	lost   bool      // more than buf was read, or src is closed
	err    error     // how src ended
	busy   int       // length of the Read of src under way
	turn   int       // number of the attempt that has it
	out    int       // shares of that attempt that are not closed
	over   bool      // no further attempt will be made
	closed bool
}

// repeatable reports whether r can be sent again as it is: without a body, or with
// GetBody.
func repeatable(r *http.Request) bool {
	return r.Body == nil || r.Body == http.NoBody || r.GetBody != nil
}

// newReplay returns nil if r needs none.
func newReplay(r *http.Request, limit int64) *replay {
	if repeatable(r) {
		return nil
	}
	p := &replay{src: r.Body, limit: limit}
	p.moved.L = &p.mu
	if at, ok := r.Body.(io.ReaderAt); ok && !embedsAt(r.Body) {
		if s, ok := r.Body.(io.Seeker); ok {
			if pos, err := s.Seek(0, io.SeekCurrent); err == nil {
				p.at, p.start = at, pos
			}
		}
	}
	return p
}

// embedsAt reports whether body may have got its ReadAt from a type that it embeds,
// while its Read is its own. Such a Read may change what it reads, or count or hash
// it, and ReadAt would pass it by. The files of mime/multipart, which embed an
// io.SectionReader and an io.Closer, get both methods from the SectionReader.
func embedsAt(body io.ReadCloser) bool {
	t := reflect.TypeOf(body)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.NumField() == 2 &&
		t.Field(0).Type == reflect.TypeFor[*io.SectionReader]() && t.Field(1).Type == reflect.TypeFor[io.Closer]() {
		return false
	}
	at := reflect.TypeFor[io.ReaderAt]()
	for i := range t.NumField() {
		if f := t.Field(i); f.Anonymous && (f.Type.Implements(at) || reflect.PointerTo(f.Type).Implements(at)) {
			return true
		}
	}
	return false
}

// next ends the last attempt's shares and returns one from the beginning; nil if the
// body cannot be sent again.
func (p *replay) next() *share {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.canAgain() {
		return nil
	}
	p.turn, p.out = p.turn+1, 1
	p.moved.Broadcast()
	return &share{p: p, turn: p.turn, off: p.start}
}

// copy returns another share for the same attempt.
func (p *replay) copy() (io.ReadCloser, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.canAgain() {
		return nil, errGone
	}
	p.out++
	return &share{p: p, turn: p.turn, off: p.start}, nil
}

// again reports whether next would return a share.
func (p *replay) again() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.canAgain()
}

func (p *replay) canAgain() bool {
	if p.closed || p.over || p.err != nil && p.err != io.EOF {
		return false
	}
	return p.at != nil || !p.lost && int64(len(p.buf)+p.busy) <= p.limit
}

// finish says that there will be no further attempt.
func (p *replay) finish() {
	p.mu.Lock()
	p.over = true
	last := p.out == 0
	p.mu.Unlock()
	if last {
		p.close()
	}
}

func (p *replay) close() error {
	p.mu.Lock()
	was := p.closed
	p.closed, p.lost, p.buf = true, true, nil
	p.moved.Broadcast()
	p.mu.Unlock()
	if was {
		return nil
	}
	return p.src.Close()
}

// share is a body of one attempt. Its Close may be called more than once,
// and while a Read is blocked.
type share struct {
	p      *replay
	turn   int
	off    int64
	closed bool
}

func (s *share) Read(b []byte) (int, error) {
	p := s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case s.closed, s.turn != p.turn:
			return 0, errSealed
		case p.at != nil:
			return s.readAt(b)
		case s.off < int64(len(p.buf)):
			n := copy(b, p.buf[s.off:])
			s.off += int64(n)
			return n, nil
		case p.closed:
			return 0, errGone
		case p.err != nil:
			return 0, p.err
		case p.busy == 0:
			return s.readSource(b)
		}
		p.moved.Wait() // an earlier attempt's Read of the source is under way
	}
}

// readAt reads without the lock.
func (s *share) readAt(b []byte) (int, error) {
	p, off := s.p, s.off
	n, err := func() (int, error) {
		p.mu.Unlock()
		defer p.mu.Lock() // it may panic
		return p.at.ReadAt(b, off)
	}()
	s.off += int64(n)
	if n > 0 && err == io.EOF {
		err = nil
	}
	return n, err
}

// readSource reads on without the lock and keeps what it gets.
func (s *share) readSource(b []byte) (int, error) {
	p := s.p
	if len(b) == 0 {
		return 0, nil
	}
	n, err := p.read(b)
	switch {
	case p.lost:
	case int64(len(p.buf)+n) <= p.limit:
		p.buf = append(p.buf, b[:n]...)
	default:
		p.lost, p.buf = true, nil
		if s.turn == p.turn { // no copy can go on where it is
			p.turn, p.out = p.turn+1, 1
			s.turn = p.turn
			if s.closed { // meanwhile
				p.out = 0
			}
		}
	}
	s.off += int64(n)
	if p.over && p.out == 0 { // the copies that were out do not close it any more
		p.mu.Unlock()
		defer p.mu.Lock()
		p.close()
	}
	return n, err
}

// read reads the source without the lock. It may panic, or end the goroutine:
// then nobody knows how far it came.
func (p *replay) read(b []byte) (n int, err error) {
	p.busy, err = len(b), errGone
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.busy, p.err = 0, err
		p.moved.Broadcast()
	}()
	return p.src.Read(b)
}

// Close ends the share. It closes the source if the request is over, or if a
// Read of it is blocked: then only that frees the reader.
func (s *share) Close() error {
	p := s.p
	p.mu.Lock()
	if s.closed || s.turn != p.turn {
		p.mu.Unlock()
		return nil
	}
	s.closed = true
	p.out--
	p.moved.Broadcast()
	last, busy := p.over && p.out == 0, p.busy > 0
	p.mu.Unlock()
	switch {
	case last, busy && p.limit == 0:
		return p.close()
	case busy:
		time.AfterFunc(closeGrace, func() {
			p.mu.Lock()
			stuck := p.busy > 0 && s.turn == p.turn && p.out == 0
			p.mu.Unlock()
			if stuck {
				p.close()
			}
		})
	}
	return nil
}
