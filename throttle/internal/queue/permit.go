package queue

import "github.com/weirhttp/weir/throttle/internal/meter"

// A Permit is what was granted, and how far that has gone.
type Permit struct {
	Needs    []Need        // of those given back, n is zero
	Granted  meter.Instant // when, and sent
	Answered meter.Instant // when; zero: not yet. Of what awaits no answer, when it was granted
}

// Resume dates p's units of configured rates anew, as they are sent only now.
func (p *Permit) Resume(now meter.Instant) {
	for i := range p.Needs {
		if d := &p.Needs[i]; d.N != 0 && d.Account.Label.Rate != nil {
			d.Account.Meter.Return(now, d.N, d.Token, p.Granted, 0)
			d.Token = d.Account.Meter.Take(now, d.N, true)
		}
	}
	p.Granted = now
}

// Answered dates p's units: the server counted them before now. over says that
// the places in flight are free too: there is no body to wait for.
func (e *Domain) Answered(now meter.Instant, p *Permit, over bool) { e.ended(now, p, true, over) }

// Lost ends what brought no answer. It may still be on its way to the server, so
// the units of configured rates stay as they are.
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
			d.Account.Meter.Return(now, d.N, d.Token, p.Granted, 0)
			d.N = 0
			e.Mark(d.Account)
		}
	}
	e.Run(now)
}

// Free gives the places in flight back.
func (e *Domain) Free(now meter.Instant, p *Permit) {
	for i := range p.Needs {
		if d := &p.Needs[i]; d.N != 0 && d.Account.Label.Unit == "" {
			d.Account.Meter.Return(now, d.N, d.Token, p.Granted, 0)
			d.N = 0
			e.Mark(d.Account)
		}
	}
	e.Run(now)
}

// Return gives everything back: nothing was sent.
func (e *Domain) Return(now meter.Instant, p *Permit) {
	for i := range p.Needs {
		if d := &p.Needs[i]; d.N != 0 {
			d.Account.Meter.Return(now, d.N, d.Token, p.Granted, p.Answered)
			d.N = 0
			e.Mark(d.Account)
		}
	}
	p.Answered = now
	e.Run(now)
}

// Settle charges or gives back what actual names and differs from what was
// granted. Units that actual does not name stay.
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
