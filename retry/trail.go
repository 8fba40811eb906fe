package retry

import (
	"errors"
	"math"
	"net/http/httptrace"
	"net/textproto"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
)

// trail is how far an attempt has come, as its base reports it by httptrace:
// that it asked for a connection, began to dial, got one, wrote the headers. It
// is the evidence of what was sent, and tells waiting for a connection from
// dialling, which is part of the attempt.
//
// Its methods are called on several goroutines, also after the attempt returned.
type trail struct {
	trace  httptrace.ClientTrace
	clocks *clocks
	entry  *hosts.Entry // of the host; nil: none

	mu                sync.Mutex
	asked, got, wrote bool // ever: net/http may ask again for the same attempt
	phase             phase
	lines             *lines        // of the host; nil: nobody has asked
	since             time.Duration // when the newest connection was asked for
	free              time.Duration // from since until then the attempt waited for others, which does not count
	queued            time.Duration // sum of earlier such waits
	mark              int64         // lines.moves when it was looked at last
	told              time.Duration // when the last interim answer came; zero: none did
	interims          int           // that came
}

// mostInterims is how many interim answers may come to one attempt: one a second for nearly
// three hours. net/http bounds their bytes only where nobody looks at them.
const mostInterims = 10000

// phase is what an attempt is at.
type phase uint8

const (
	unseen    phase = iota // nobody has reported anything
	waiting                // for a connection; no dial was seen
	dialling               // a dial was begun with the attempt's own context
	connected              // and nobody knows more
	gone                   // it has ended, with its body
)

// newTrail returns a trail whose hooks tell it what the base does. Only of what
// is not repeated anyway, full, it learns whether headers were written.
func newTrail(p *clocks, entry *hosts.Entry, full bool) *trail {
	t := &trail{clocks: p, entry: entry}
	t.trace.GetConn = t.getConn
	t.trace.GotConn = t.gotConn
	t.trace.ConnectStart = t.connectStart
	t.trace.Got1xxResponse = t.gotInterim
	if full {
		t.trace.WroteHeaders = t.wroteHeaders
	}
	return t
}

func (t *trail) getConn(string) {
	now := t.clocks.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked = true
	if t.phase == gone {
		return
	}
	t.pause()
	if t.lines == nil {
		t.lines = linesOf(t.entry)
	}
	t.phase = waiting
	t.since, t.free, t.mark = now, now, t.lines.moves()
}

// pause ends what the trail knows of the connection before.
func (t *trail) pause() {
	if t.phase == connected {
		t.lines.left.Add(1)
	}
	t.queued, t.since = t.wait(), t.free
}

func (t *trail) connectStart(string, string) { t.dial() }

// dial notes that somebody dials for this attempt. Before net/http dials, on another
// goroutine, it asks the attempt's context for its trace, and so does the dialer of
// package net. While an attempt waits for one of MaxConnsPerHost, nobody asks its
// context for anything.
func (t *trail) dial() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase == waiting {
		t.phase, t.free = dialling, t.clocks.now()
	}
}

// gotConn ends the wait. A connection that was used before came from another
// attempt, so a dial that was begun meanwhile was not what took so long.
func (t *trail) gotConn(info httptrace.GotConnInfo) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.got = true
	if t.phase != waiting && t.phase != dialling {
		return // a base that does not report all
	}
	if t.phase == waiting || info.Reused {
		t.free = t.clocks.now()
	}
	t.pause()
	t.phase = connected
	t.lines.taken.Add(1)
}

func (t *trail) wroteHeaders() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrote = true
}

// gotInterim notes an interim answer, such as 102 Processing or 103 Early Hints: the server
// works on the request.
func (t *trail) gotInterim(int, textproto.MIMEHeader) error {
	now := t.clocks.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.told = now
	if t.interims++; t.interims > mostInterims {
		return errInterims
	}
	return nil
}

var errInterims = errors.New("retry: too many interim answers")

// heard is when the last interim answer came; zero: none did.
func (t *trail) heard() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.told
}

// wait is how long the attempt has waited for others in all. mu is held.
func (t *trail) wait() time.Duration { return t.queued + t.free - t.since }

// until returns when the attempt's time is over: at due, and later by as much as it
// has waited for the connections of other attempts. As long as others have
// connections to the host, the attempt is in a queue, and only its caller bounds how
// long it waits. If nobody has a connection, all of them wait for the host, and that
// counts.
func (t *trail) until(due, now time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase == waiting && now >= later(due, t.wait()) && t.lines.served(&t.mark) {
		t.free = now
	}
	return later(due, t.wait())
}

// leave gives the connection back: the attempt has ended, with its body.
func (t *trail) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase == connected {
		t.lines.left.Add(1)
	}
	t.phase = gone
}

// seen returns what is known when the base has returned.
func (t *trail) seen() (e evidence) {
	if t == nil {
		return e
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase == waiting {
		t.free = t.clocks.now()
	}
	return evidence{asked: t.asked, got: t.got, wrote: t.wrote, phase: t.phase, queued: t.wait()}
}

// later is at + d, which are not negative together, or the end of time.
func later(at, d time.Duration) time.Duration {
	if at > math.MaxInt64-max(d, 0) {
		return math.MaxInt64
	}
	return at + d
}

// lines counts the connections to one host that attempts got and gave back. It
// stands in the host's record.
type lines struct{ taken, left atomic.Int64 }

func linesOf(e *hosts.Entry) *lines {
	if e == nil {
		return new(lines)
	}
	if l, ok := e.Value.Occupant(hosts.Wire).(*lines); ok {
		return l
	}
	l, _ := e.Value.Occupy(hosts.Wire, new(lines)).(*lines)
	return l
}

// Idle reports that nobody has a connection.
func (l *lines) Idle(time.Time) bool { return l.left.Load() == l.taken.Load() }

// moves counts what connections were taken and given back.
func (l *lines) moves() int64 { return l.taken.Load() + l.left.Load() }

// served reports whether an attempt has a connection now, or whether one was got or
// given back since *mark was read. It renews *mark. Connections that were given back
// count, because an attempt that waits for one hears of it a moment later.
func (l *lines) served(mark *int64) bool {
	left := l.left.Load() // first: who leaves between the two has one
	taken := l.taken.Load()
	news := taken+left != *mark
	*mark = taken + left
	return news || taken != left
}
