package throttle

// permit is what was granted, and how far that has gone: draws, and to a
// request that did not have to wait its places at what was learned for all
// requests: of what the server bears, of a new host's slow start, and of its
// kind. It takes those in one step, without a draw on each account.
type permit struct {
	draws    []draw    // of those given back, n is zero
	granted  instant   // when, and sent
	answered instant   // when; zero: not yet. Of what awaits no answer, when it was granted
	kind     *kind     // whose places are taken; nil: none, or given back
	marks    [3]uint32 // of the places: the server's, the host's, the kind's
}

// resume dates p's units of configured rates anew, as they are sent only now.
func (p *permit) resume(now instant) {
	for i := range p.draws {
		if d := &p.draws[i]; d.n != 0 && d.a.terms.spec != nil {
			d.a.meter.Return(now, d.n, d.mark, p.granted, 0)
			d.mark = d.a.meter.Take(now, d.n, true)
		}
	}
	p.granted = now
}

// answered dates p's units: the server counted them before now. over says that
// the places in flight are free too: there is no body to wait for.
func (e *engine) answered(now instant, p *permit, over bool) { e.ended(now, p, true, over) }

// lost ends what brought no answer. It may still be on its way to the server, so
// the units of configured rates stay as they are.
func (e *engine) lost(now instant, p *permit) { e.ended(now, p, false, true) }

func (e *engine) ended(now instant, p *permit, seen, over bool) {
	if p.answered != 0 {
		return
	}
	p.answered = now
	for i := range p.draws {
		d := &p.draws[i]
		if d.n == 0 {
			continue
		}
		if (seen || d.a.terms.spec == nil) && d.a.meter.Answered(now, d.n, d.mark, p.granted) {
			e.mark(d.a)
		}
		if t := d.a.terms; t.toHeaders || over && t.unit == "" {
			d.a.meter.Return(now, d.n, d.mark, p.granted, 0)
			d.n = 0
			e.mark(d.a)
		}
	}
	p.vacate(now)
	e.run(now)
}

// free gives the places in flight back.
func (e *engine) free(now instant, p *permit) {
	for i := range p.draws {
		if d := &p.draws[i]; d.n != 0 && d.a.terms.unit == "" {
			d.a.meter.Return(now, d.n, d.mark, p.granted, 0)
			d.n = 0
			e.mark(d.a)
		}
	}
	e.run(now)
}

// back gives everything back: nothing was sent.
func (e *engine) back(now instant, p *permit) {
	for i := range p.draws {
		if d := &p.draws[i]; d.n != 0 {
			d.a.meter.Return(now, d.n, d.mark, p.granted, p.answered)
			d.n = 0
			e.mark(d.a)
		}
	}
	p.vacate(now)
	p.answered = now
	e.run(now)
}

// settle charges or gives back what actual names and differs from what was
// granted. Units that actual does not name stay.
func (e *engine) settle(now instant, p *permit, actual Cost) {
	for i := range p.draws {
		d := &p.draws[i]
		n, named := actual[d.a.terms.unit]
		n = max(0, n)
		if !named || d.a.terms.unit == "" || n == d.n {
			continue
		}
		if n > d.n {
			d.mark = d.a.meter.Take(now, n-d.n, p.answered == 0)
		} else {
			d.a.meter.Return(now, d.n-n, d.mark, p.granted, p.answered)
		}
		d.n = n
		e.mark(d.a)
	}
	e.run(now)
}
