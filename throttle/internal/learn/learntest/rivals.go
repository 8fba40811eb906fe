package learntest

import (
	"math"
	"time"

	"github.com/weirhttp/weir/throttle/internal/learn"
)

type answer = learn.Answer

// A Client is a way to deal with refusals.
type Client struct {
	Name string
	play func(c *Case) Result
}

// Learner is the package under test.
func Learner() Client { return Client{"learn", func(c *Case) Result { return c.learn(nil) }} }

// Plain is a loop for each call that obeys Retry-After, and else waits longer
// and longer, at random. It makes 10 attempts.
func Plain() Client {
	return Client{"plain loop", func(c *Case) Result {
		r := newRun(c)
		r.client = &plain{r}
		return r.play()
	}}
}

// AIMD halves a shared rate at a refusal, pauses everybody for as long as the
// server asks, and raises the rate with every acceptance.
func AIMD() Client {
	return Client{"aimd", func(c *Case) Result {
		r := newRun(c)
		r.client = &aimd{run: r, rate: math.Inf(1)}
		return r.play()
	}}
}

// Play plays a case.
func (k Client) Play(c *Case) Result { return k.play(c) }

type plain struct{ *run }

func (p *plain) begin(j *job) { p.try(j) }

func (p *plain) try(j *job) {
	p.send(j, func(ok bool, a *answer) {
		if ok {
			p.end(j, true)
			return
		}
		wait := Instant(p.rng.Float64() * .5 * math.Pow(2, float64(min(j.attempts, 6))) * 1e9)
		if h := a.Hint; h.Known {
			wait = Instant(h.Wait) + Instant(p.rng.Float64()*.1e9)
		}
		j.waited += wait
		if j.attempts >= 10 || time.Duration(j.waited) > p.c.MaxWait {
			p.end(j, false)
			return
		}
		p.at(p.now+wait, func() { p.try(j) })
	})
}

type aimd struct {
	*run
	rate     float64
	line     []*job
	next     Instant
	paused   Instant
	cut      Instant
	measured float64 // accepted a second, lately
	heard    Instant
	timer    Instant
}

func (a *aimd) begin(j *job) {
	j.queued = a.now
	a.line = append(a.line, j)
	a.at(a.now+Instant(a.c.MaxWait)-j.waited, func() { a.expire(j) })
	a.pump()
}

func (a *aimd) expire(j *job) {
	for i, x := range a.line {
		if x == j && a.now-j.queued+j.waited >= Instant(a.c.MaxWait) {
			a.line = append(a.line[:i], a.line[i+1:]...)
			a.end(j, false)
			return
		}
	}
}

func (a *aimd) pump() {
	for len(a.line) > 0 {
		if t := max(a.next, a.paused); t > a.now {
			if a.timer != t {
				a.timer = t
				a.at(t, a.pump)
			}
			return
		}
		j := a.line[0]
		a.line = a.line[1:]
		if !math.IsInf(a.rate, 1) {
			a.next = a.now + Instant(1e9/a.rate)
		}
		j.waited += a.now - j.queued
		sent := a.now
		a.send(j, func(ok bool, s *answer) { a.answered(j, sent, ok, s) })
	}
}

func (a *aimd) answered(j *job, sent Instant, ok bool, s *answer) {
	if a.heard > 0 {
		a.measured *= math.Exp(-float64(a.now-a.heard) / 2e9)
	}
	a.heard = a.now
	if ok {
		a.measured += .5
		if !math.IsInf(a.rate, 1) {
			a.rate += max(.05, .02*a.rate) / max(1, a.rate)
		}
		a.end(j, true)
		return
	}
	if sent >= a.cut {
		a.cut = a.now
		a.rate = max(.02, .7*min(a.rate, max(a.measured, .1)))
	}
	wait := Instant(.5e9)
	if h := s.Hint; h.Known {
		wait = Instant(h.Wait)
	}
	a.paused = max(a.paused, a.now+wait)
	j.queued = a.now
	a.line = append([]*job{j}, a.line...)
	a.at(a.now+Instant(a.c.MaxWait)-j.waited, func() { a.expire(j) })
	a.pump()
}
