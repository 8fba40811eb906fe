package throttle

// A flow is what a finder wants to know of the time before it was made.
type flow struct {
	began    instant // the first start, or the first after a long idling; zero: none
	last     instant // start
	heard    instant // when the first of them was accepted; zero: none was
	started  int
	accepted int
	out      int // under way
}

func (f *flow) start(now instant) {
	if f.began == 0 || now-f.last > instant(forgetRate) {
		*f = flow{began: now, out: f.out}
	}
	f.last = now
	f.started++
	f.out++
}

// good notes an accepted answer.
func (f *flow) good(now instant) {
	if f.accepted == 0 {
		f.heard = now
	}
	f.accepted++
}

// done notes that a request is under way no more.
func (f *flow) done() { f.out = max(0, f.out-1) }

// finder goes on from f.
func (f *flow) finder() *finder {
	if f.began == 0 {
		return &finder{windows: windows{out: f.out}}
	}
	began, last, n := f.began.Time(), f.last.Time(), float64(f.accepted)
	lasted := max(last.Sub(began), recentFor).Seconds()
	return &finder{
		began: began, first: f.heard.Time(), last: last, accepted: n, total: n,
		recent: n / lasted, heard: last, // as if it had flowed evenly
		windows: windows{out: f.out, opened: began, next: last, spent: float64(f.started), passed: n},
	}
}

// finderOf is the finder for a kind, made if need be.
func (l *learner) finderOf(k *kind) *finder {
	if k.apart {
		return k.finder
	}
	if l.finder == nil {
		l.finder = l.flow.finder()
		l.finder.fates.served = float64(min(l.good, memory))
	}
	return l.finder
}

// restart forgets the rate that was found for a kind.
func (l *learner) restart(k *kind) {
	switch {
	case k.apart:
		k.finder.forget()
	case l.finder != nil:
		l.finder.forget()
	default:
		l.flow = flow{out: l.flow.out}
	}
}

// accept notes an accepted answer.
func (l *learner) accept(k *kind, now, sent instant) {
	switch {
	case k.apart:
		k.finder.good(now.Time(), sent.Time())
	case l.finder != nil:
		l.finder.good(now.Time(), sent.Time())
	default:
		l.flow.good(now)
	}
}
