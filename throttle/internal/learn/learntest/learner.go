package learntest

import (
	"math"
	"time"

	"github.com/weirhttp/weir/throttle/internal/learn"
)

// A learning client keeps one queue, in order of arrival, and sends when its
// Learner says so. A call that is refused goes back to its place.
type learning struct {
	*run
	learner learn.Learner
	start   start
	line    []*job
	timer   Instant
	trace   func(now Instant, what string, l *learn.Learner)
}

func (c *Case) learn(trace func(Instant, string, *learn.Learner)) Result {
	r := newRun(c)
	l := &learning{run: r, trace: trace}
	r.client = l
	return r.play()
}

func (l *learning) begin(j *job) {
	l.enqueue(j)
	l.pump()
}

func (l *learning) enqueue(j *job) {
	j.queued = l.now
	i := len(l.line)
	for i > 0 && l.line[i-1].n > j.n {
		i--
	}
	l.line = append(l.line, nil)
	copy(l.line[i+1:], l.line[i:])
	l.line[i] = j
	l.at(l.deadline(j), func() {
		if !j.done && l.now >= l.deadline(j) {
			l.give(j)
		}
	})
}

func (l *learning) deadline(j *job) Instant { return j.queued + Instant(l.c.MaxWait) - j.waited }

// give gives up a job that still waits.
func (l *learning) give(j *job) {
	for i, x := range l.line {
		if x == j {
			l.line = append(l.line[:i:i], l.line[i+1:]...)
			l.note("lost")
			l.end(j, false)
			return
		}
	}
}

func (l *learning) note(what string) {
	if l.trace != nil {
		l.trace(l.now, what, &l.learner)
	}
}

func (l *learning) pump() {
	for len(l.line) > 0 {
		p := l.learner.Next(l.now, 1, len(l.line))
		if p.At > l.now {
			if p.Certain {
				l.refuse(p.At)
			}
			l.wake(p.At)
			return
		}
		if !l.learner.Believes() && !l.start.allows(l.learner.UnderWay()) {
			return // an answer comes first
		}
		j := l.line[0]
		l.line = l.line[1:]
		j.waited += l.now - j.queued
		j.queued = forever // it does not wait
		l.note("send " + p.Reason.String())
		l.learner.Sent(l.now, 1)
		sent := l.now
		l.send(j, func(ok bool, a *answer) { l.answered(j, sent, ok, a) })
	}
}

// refuse turns away who cannot wait for what is certain.
func (l *learning) refuse(until Instant) {
	for i := 0; i < len(l.line); {
		if j := l.line[i]; l.deadline(j) < until {
			l.give(j)
			continue
		}
		i++
	}
}

func (l *learning) wake(t Instant) {
	if t == math.MaxInt64 || l.timer == t {
		return
	}
	l.timer = t
	l.at(t, l.pump)
}

func (l *learning) answered(j *job, sent Instant, ok bool, a *answer) {
	l.start.ended(l.now-sent, ok)
	if ok {
		l.learner.Accepted(l.now, sent, 1, *a)
		l.note("ok")
		l.end(j, true)
	} else {
		l.learner.Refused(l.now, sent, 1, *a)
		l.note("REFUSED")
		if h := a.Hint; h.Known { // nobody comes back before he was told to
			j.waited += Instant(h.Wait)
			l.at(l.now+Instant(h.Wait), func() {
				l.enqueue(j)
				l.pump()
			})
		} else {
			l.enqueue(j)
		}
	}
	l.pump()
}

// Trace plays a case and calls note with each step.
func (c *Case) Trace(note func(at time.Duration, what string, l *learn.Learner)) Result {
	return c.learn(func(now Instant, what string, l *learn.Learner) { note(time.Duration(now-began), what, l) })
}
