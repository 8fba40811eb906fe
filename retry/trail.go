package retry

import (
	"errors"
	"math"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
)

// trail is how far an attempt has come, as its base reports it by httptrace:
// that it asked for a connection, began to dial, got one, wrote the headers. It
// is the evidence of what was sent, and tells waiting for a connection from
// dialling, which is part of the attempt.
//
// It is under the mu of its context: its hooks are called on several goroutines, also after
// the attempt returned.
type trail struct {
	hooks             *hooks // that tell it; nil: nobody has looked for them, or another attempt may have them by now
	asked, got, wrote bool   // ever: net/http may ask again for the same attempt
	more              bool   // it has asked again
	known             bool   // somebody has looked for the hooks
	phase             phase
	interims          int16         // that came
	lines             *lines        // of the host; nil: nobody has looked for the hooks
	since             time.Duration // when the newest connection was asked for; before: when the base was given the attempt, or zero
	free              time.Duration // from since until then the attempt waited for others, which does not count
	queued            time.Duration // sum of earlier such waits
	mark              int64         // lines.moves when it was looked at last
	told              time.Duration // when the last interim answer came; zero: none did
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

// getConn notes that a connection is wanted.
func (t *trail) getConn(p *clocks) {
	t.more, t.asked = t.asked, true
	if t.phase == gone {
		return
	}
	now := t.since
	if t.more || now == 0 {
		now = p.now()
	}
	t.pause()
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

// look returns the trace; nil: there is none any more, or none is known yet.
func (t *trail) look(p *clocks) (trace *httptrace.ClientTrace, known bool) {
	if t.hooks == nil {
		return nil, t.known
	}
	t.dial(p)
	return &t.hooks.trace, true
}

// dial is called when somebody asks the attempt's context for something, and notes that
// somebody dials for the attempt. Before net/http dials, on another goroutine, it asks the
// context for its trace, and so does the dialer of package net. While an attempt waits for one
// of MaxConnsPerHost, nobody asks its context for anything.
func (t *trail) dial(p *clocks) {
	if t.phase == waiting {
		t.phase, t.free = dialling, p.now()
	}
}

// gotConn ends the wait. A connection that was used before came from another
// attempt, so a dial that was begun meanwhile was not what took so long.
func (t *trail) gotConn(p *clocks, info httptrace.GotConnInfo) {
	t.got = true
	if t.phase != waiting && t.phase != dialling {
		return // a base that does not report all
	}
	if t.phase == waiting || info.Reused {
		t.free = p.now()
	}
	t.pause()
	t.phase = connected
	t.lines.taken.Add(1)
}

// gotInterim notes an interim answer, such as 102 Processing or 103 Early Hints: the server
// works on the request.
func (t *trail) gotInterim(p *clocks) error {
	t.told = p.now()
	if t.interims == mostInterims {
		return errInterims
	}
	t.interims++
	return nil
}

var errInterims = errors.New("retry: too many interim answers")

// wait is how long the attempt has waited for others in all.
func (t *trail) wait() time.Duration { return t.queued + t.free - t.since }

// until returns when the attempt's time is over: at due, and later by as much as it
// has waited for the connections of other attempts. As long as others have
// connections to the host, the attempt is in a queue, and only its caller bounds how
// long it waits. If nobody has a connection, all of them wait for the host, and that
// counts. With an interim answer its time, limit, begins anew.
func (t *trail) until(due, now, limit time.Duration) time.Duration {
	if t.phase == waiting && now >= later(due, t.wait()) && t.lines.served(&t.mark) {
		t.free = now
	}
	due = later(due, t.wait())
	if t.told > 0 {
		due = max(due, later(t.told, limit))
	}
	return due
}

// leave gives the connection back: the attempt has ended, with its body. answered says that it
// had an answer.
//
// It returns the hooks if they may be another attempt's, and nil otherwise. net/http calls
// them on the goroutine that gets a connection, and before it passes on an answer. It may call
// them later for a connection on which it has given up, so it must have asked for one only, and
// for headers that are written after the answer.
func (t *trail) leave(answered bool) *hooks {
	if t.phase == connected {
		t.lines.left.Add(1)
	}
	t.phase = gone
	h := t.hooks
	if h == nil || !h.lent || !answered || !t.got || t.more || h.trace.WroteHeaders != nil && !t.wrote {
		return nil
	}
	h.of.Store(nil)
	t.hooks = nil
	return h
}

// seen returns what is known when the base has returned.
func (t *trail) seen(p *clocks) (e evidence) {
	if t.phase == waiting {
		t.free = p.now()
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
