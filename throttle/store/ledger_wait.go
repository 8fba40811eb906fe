package store

// used is the level of a meter as a charge of first finds it. After a pause
// there is room for one request, not for all that gathered.
func (v *ledgerView) used(p Limit, a *Account, first float64) float64 {
	used := max(0, a.Level)
	if pause := v.ledger.paused(); pause > 0 {
		used = max(used, max(0, p.Size-first)+float64(p.perMicro()*float64(pause-v.now)))
	}
	return used
}

// idled is the level of a meter that counts below zero how long it has been
// empty, or how long ago a pause ended.
func (v *ledgerView) idled(p Limit, a *Account) float64 {
	pause := v.ledger.paused()
	if pause == 0 {
		return a.Level
	}
	return max(a.Level, float64(p.perMicro()*float64(pause-v.now)))
}

// wait returns the microseconds until the first request may start, -1 for
// never, and the limit that says so.
func (v *ledgerView) wait() (wait int64, limit int) {
	wait, limit = max(0, v.ledger.Pause-v.now), -1
	for _, s := range v.ledger.Stated {
		if c := v.cost(s.Unit); c > 0 && s.Remaining < c {
			wait = max(wait, s.Ends-v.now)
		}
	}
	if w := v.ledger.Guess - v.now; w > wait {
		wait, limit = w, ByGuess
	}
	for i, p := range v.draw.Limits {
		c := float64(v.draw.Units[p.Unit].First)
		if c == 0 {
			continue
		}
		w := v.limitWait(p, v.accts[i], c)
		if w < 0 {
			return -1, i
		}
		if w > wait {
			wait, limit = w, i
		}
	}
	return wait, limit
}

func (v *ledgerView) limitWait(p Limit, a *Account, c float64) int64 {
	switch {
	case p.Kind == MeterLimit && p.Credit >= 0 && c > p.Size+p.Credit, p.Kind != MeterLimit && c > p.Size:
		return -1
	case p.Kind == MeterLimit:
		need := v.used(p, a, c) + c - p.Size
		if c > p.Size && p.Credit < 0 {
			need = v.used(p, a, c)
		} else if c > p.Size {
			need = v.idled(p, a) + c - p.Size
		}
		if need <= p.Tolerance() {
			return 0
		}
		return ceilWait(need-p.Tolerance(), p.perMicro())
	case p.Kind == CalendarLimit:
		if a.Level+c > p.Size {
			return a.Ends - v.now
		}
		return 0
	}
	return a.logWait(p, v.now, c)
}

// logWait finds the first instant, not before the last entry, in whose past
// window there is room for c.
func (a *Account) logWait(p Limit, now int64, c float64) int64 {
	ready := now
	if n := len(a.Entries); n > 0 {
		ready = max(ready, a.Entries[n-1].At)
	}
	need := a.total() + c - p.Size
	for _, e := range a.Entries {
		if need <= 0 {
			break
		}
		need -= e.Units
		ready = max(ready, e.At+p.Per.Microseconds())
	}
	return ready - now
}

// straddles returns how long a request that would start after wait must wait
// instead, because it would then belong to a window that is not open yet, or
// to a quota the server has not granted: those are never booked ahead.
func (v *ledgerView) straddles(wait int64) (longer int64) {
	for i, p := range v.draw.Limits {
		a := v.accts[i]
		if c := v.draw.Units[p.Unit].First; p.Kind == CalendarLimit && c > 0 && v.now+wait >= a.Ends {
			longer = max(longer, a.Ends-v.now)
		}
	}
	for _, s := range v.ledger.Stated {
		if c := v.cost(s.Unit); c > 0 && s.Remaining < c {
			longer = max(longer, s.Ends-v.now)
		}
	}
	return longer
}

// heals returns for how long nothing is charged.
func (v *ledgerView) heals() int64 { return max(0, v.ledger.Heals-v.now) }

func (v *ledgerView) cost(unit string) float64 {
	for _, u := range v.draw.Units {
		if u.Unit == unit {
			return float64(u.First)
		}
	}
	return 0
}

// fitsAll reports whether the whole batch may start now.
func (v *ledgerView) fitsAll() bool {
	if v.ledger.paused() > v.now || v.heals() > 0 {
		return false
	}
	for i, p := range v.draw.Limits {
		first, all := float64(v.draw.Units[p.Unit].First), float64(v.draw.Units[p.Unit].All)
		a := v.accts[i]
		switch {
		case all == 0:
		case p.Kind == MeterLimit && v.used(p, a, first)+all > p.Size+p.Tolerance(),
			p.Kind == CalendarLimit && a.Level+all > p.Size,
			p.Kind == LogLimit && (all > p.Size || a.logWait(p, v.now, all) > 0):
			return false
		}
	}
	for _, s := range v.ledger.Stated {
		for _, u := range v.draw.Units {
			if u.Unit == s.Unit && float64(u.All) > s.Remaining {
				return false
			}
		}
	}
	return true
}
