package queue

import "github.com/weirhttp/weir/throttle/internal/meter"

// A Permit is what was granted to a request, until all of it is given back.
type Permit struct {
	Needs    []Need        // N is zero of those that were given back
	Granted  meter.Instant // when it was granted, which is when the request was sent
	Answered meter.Instant // when Answered or Lost was called; zero: not yet. If no answer is awaited, it is Granted
}

// Resume dates p's units of configured rates at now, because the request is sent only now. It
// needs the lock of the domain.
func (p *Permit) Resume(now meter.Instant) {
	for i := range p.Needs {
		if d := &p.Needs[i]; d.N != 0 && d.Account.Label.Rate != nil {
			d.Account.Meter.Return(now, d.N, d.Token, p.Granted, 0)
			d.Token = d.Account.Meter.Take(now, d.N, true)
		}
	}
	p.Granted = now
}

// Answered notes that the answer has come, so that the server counted p's units before now.
// over says that the answer has no body to wait for, so that places in flight are given back.
func (e *Domain) Answered(now meter.Instant, p *Permit, over bool) { e.ended(now, p, true, over) }

// Lost notes that the request ended without an answer. It may still reach the server, so
// units of configured rates stay spent.
func (e *Domain) Lost(now meter.Instant, p *Permit) { e.ended(now, p, false, true) }

func (e *Domain) ended(now meter.Instant, p *Permit, seen, over bool) {
	if p.Answered != 0 {
		return
	}
	p.Answered = now
	for i := range p.Needs {
		d := &p.Needs[i]
		if d.N == 0 {
			continue
		}
		if (seen || d.Account.Label.Rate == nil) && d.Account.Meter.Answered(now, d.N, d.Token, p.Granted) {
			e.Mark(d.Account)
		}
		if t := d.Account.Label; t.ToHeaders || over && t.Unit == "" {
			e.giveBack(now, p, d, 0)
		}
	}
	e.Run(now)
}

// giveBack returns all of d, which is one of p's needs. answered is when p was answered, if that
// matters; else zero.
func (e *Domain) giveBack(now meter.Instant, p *Permit, d *Need, answered meter.Instant) {
	d.Account.Meter.Return(now, d.N, d.Token, p.Granted, answered)
	d.N = 0
	e.Mark(d.Account)
}

// Free gives places in flight back, when the body is done.
func (e *Domain) Free(now meter.Instant, p *Permit) {
	for i := range p.Needs {
		if d := &p.Needs[i]; d.N != 0 && d.Account.Label.Unit == "" {
			e.giveBack(now, p, d, 0)
		}
	}
	e.Run(now)
}

// Return gives everything back, because nothing was sent.
func (e *Domain) Return(now meter.Instant, p *Permit) {
	for i := range p.Needs {
		if d := &p.Needs[i]; d.N != 0 {
			e.giveBack(now, p, d, p.Answered)
		}
	}
	p.Answered = now
	e.Run(now)
}

// Settle makes the charge what the request really cost, by unit: it charges or gives back the
// difference. Units that actual does not name stay as they are.
func (e *Domain) Settle(now meter.Instant, p *Permit, actual map[string]int64) {
	for i := range p.Needs {
		d := &p.Needs[i]
		n, named := actual[d.Account.Label.Unit]
		n = max(0, n)
		if !named || d.Account.Label.Unit == "" || n == d.N {
			continue
		}
		if n > d.N {
			d.Token = d.Account.Meter.Take(now, n-d.N, p.Answered == 0)
		} else {
			d.Account.Meter.Return(now, d.N-n, d.Token, p.Granted, p.Answered)
		}
		d.N = n
		e.Mark(d.Account)
	}
	e.Run(now)
}
