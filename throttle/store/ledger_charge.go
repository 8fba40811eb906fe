package store

import "time"

// charge books the first request, or all, or nothing, to start at ready.
func (v *ledgerView) charge(ready int64, o Outcome) Ledger {
	l := &v.ledger
	if v.empty() {
		v.merged = false
		return v.was // there is nothing to charge to
	}
	if l.Gen == 0 {
		l.Gen = newGen(v.now, l.Era)
	}
	l.At, l.Expires = v.now, max(v.now, l.Heals)+microSecond
	v.merged = false
	for i, p := range v.draw.Limits {
		u := v.draw.Units[p.Unit]
		if c := u.cost(o); c > 0 {
			v.chargeLimit(p, v.accts[i], float64(u.First), c, ready)
		}
		v.accts[i].Idle = v.accts[i].idleAt(p, v.now)
	}
	for _, a := range l.Accounts {
		l.Expires = max(l.Expires, a.Idle+microSecond)
	}
	for i, s := range l.Stated {
		for _, u := range v.draw.Units {
			if u.Unit == s.Unit {
				l.Stated[i].Remaining = max(0, s.Remaining-u.cost(o))
			}
		}
		l.Expires = max(l.Expires, s.Ends+microSecond)
	}
	if end := l.paused(); end > v.now {
		l.Expires = max(l.Expires, end+pauseEcho)
	}
	if l.Pause <= v.now {
		l.Pause = 0
	}
	if l.Guess <= v.now {
		l.Guess = 0
	}
	l.Expires = -floorDiv(-l.Expires, expiryStep) * expiryStep
	return *l
}

// empty reports that there is nothing to keep of v.
func (v *ledgerView) empty() bool {
	return len(v.draw.Limits) == 0 && len(v.ledger.Stated) == 0 && v.ledger.paused() <= v.now
}

func (v *ledgerView) chargeLimit(p Limit, a *Account, first, c float64, ready int64) {
	switch p.Kind {
	case MeterLimit:
		// The units count from when they start. What drains until then is
		// taken too, so that whoever comes later starts later.
		a.Level = max(v.used(p, a, first), float64(p.perMicro()*float64(ready-v.now))) + c
	case CalendarLimit:
		a.Level += c
	case LogLimit:
		es := append([]Entry(nil), a.Entries...)
		n := len(es) - 1
		if n >= 0 {
			ready = max(ready, es[n].At) // only a forced charge comes before
		}
		if n >= 0 && p.together(es[n].At, ready) {
			es[n].At, es[n].Units = ready, es[n].Units+c
		} else {
			es = append(es, Entry{At: ready, Units: c})
		}
		a.Entries = es
	}
}

// idleAt is the instant from which a is as good as new.
func (a *Account) idleAt(p Limit, now int64) int64 {
	switch p.Kind {
	case MeterLimit:
		return now + ceilWait(max(0, a.Level+max(0, p.Credit)), p.perMicro())
	case CalendarLimit:
		return a.Ends
	}
	if n := len(a.Entries); n > 0 {
		return a.Entries[n-1].At + p.Per.Microseconds()
	}
	return now
}

func (v *ledgerView) standing() Standing {
	s := Standing{Gen: v.ledger.Gen, At: v.ledger.At}
	if v.merged { // nothing was written: the memory is still the caller's alone
		s.Gen, s.At = v.draw.Seen.Gen, v.draw.Seen.At
	}
	s.Paused = time.Duration(max(0, v.ledger.Pause-v.now)) * time.Microsecond
	for i := range v.draw.Limits {
		s.Levels = append(s.Levels, v.level(i))
	}
	return s
}

func (v *ledgerView) level(i int) float64 {
	if v.draw.Limits[i].Kind == LogLimit {
		return v.accts[i].total()
	}
	return v.accts[i].Level
}

// cost is what an outcome charges.
func (u UnitCost) cost(o Outcome) float64 {
	switch o {
	case BookedOne:
		return float64(u.First)
	case BookedAll:
		return float64(u.All)
	}
	return 0
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
