package throttle

import (
	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// A pauser is a pause that refusals begin, and the account of those that it binds. It is part
// of the meter of that account: after the pause one of them asks whether it is over.
type pauser struct {
	meter.Open
	cooldown *cooldown.Cooldown // nil: nobody was refused
	account  queue.Account
}

func (p *pauser) At(now instant, _ int64) instant {
	if p.cooldown == nil {
		return now
	}
	if at := p.cooldown.At(now); at != never {
		return at
	}
	return p.cooldown.Again()
}

func (p *pauser) Take(now instant, _ int64, _ bool) meter.Token {
	if p.cooldown == nil {
		return 0 // nearly always: so short that it is inlined
	}
	return p.start(now)
}

func (p *pauser) start(now instant) (m meter.Token) {
	if p.cooldown.Start(now) {
		m = markAsks
	}
	return m
}

func (p *pauser) Return(_ instant, _ int64, m meter.Token, _, _ instant) {
	p.cooldown.Done(m&markAsks != 0)
}

// rests reports whether the pause lasts, or one asks whether it is over.
func (p *pauser) rests(now instant) bool { return p.cooldown.At(now) > now }

// lift ends the pause at once.
func (p *pauser) lift(e *queue.Domain, now instant) {
	p.cooldown.Lift()
	e.Pause(now, &p.account, now, now, "")
}

// pauses calls f for every pause that may bind k.
func (k *endpoint) pauses(f func(p *pauser)) {
	f(&k.learner.pauser)
	f(&k.pauser)
	if k.group != nil {
		f(&k.group.pauser)
	}
}

// calm reports that there was no pause yet that may have bound k, so that pauses has none to
// call its function for.
func (k *endpoint) calm() bool {
	return k.cooldown == nil && k.group == nil && k.learner.cooldown == nil
}
