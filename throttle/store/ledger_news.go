package store

import (
	"slices"
	"time"
)

// AfterNews returns l knowing n. The meters keep their date, as their rates are
// not known here.
func (l Ledger) AfterNews(now time.Time, n News) Ledger {
	at := now.UnixMicro()
	if l.Idle(now) {
		l = Ledger{Era: l.Era, Gen: newGen(at, l.Era), At: at}
	}
	at = max(at, l.At) // what is dated is dated by the ledger's frame, see view
	l.Expires = max(l.Expires, at+microSecond)
	if n.Resume {
		l.Pause, l.Guess = 0, 0
	}
	if n.Pause > 0 {
		l.Pause = max(l.Pause, at+ceilMicro(n.Pause))
	}
	if n.Guess > 0 {
		l.Guess = max(l.Guess, at+ceilMicro(n.Guess))
	}
	if n.Pause > 0 || n.Guess > 0 {
		l.Expires = max(l.Expires, l.paused()+pauseEcho)
	}
	if len(n.Stated) > 0 {
		l.Stated = append([]LedgerStated(nil), l.Stated...)
	}
	for _, s := range n.Stated {
		l.Stated = withStated(l.Stated, s, at)
		l.Expires = max(l.Expires, at+ceilMicro(s.Reset)+microSecond)
	}
	if len(n.Refill) > 0 {
		l.Accounts = slices.Clone(l.Accounts)
	}
	for _, r := range n.Refill {
		if a := l.account(Limit{Kind: r.Kind, ID: r.ID}); a != nil {
			a.refill(float64(r.Units))
		}
	}
	return l
}

// refill takes units off. How low a Meter's level may be is known when it is next
// drawn on: its rate and credit are not known here.
func (a *Account) refill(units float64) {
	switch a.Kind {
	case MeterLimit:
		a.Level = max(-float64(MaxAmount), a.Level-units)
	case CalendarLimit:
		a.Level = max(0, a.Level-units)
	case LogLimit:
		es := slices.Clone(a.Entries)
		for i := range es {
			back := min(units, es[i].Units)
			es[i].Units -= back
			units -= back
		}
		a.Entries = es
	}
}

func withStated(ss []LedgerStated, s Stated, at int64) []LedgerStated {
	reset := ceilMicro(s.Reset)
	next := LedgerStated{ID: s.ID, Unit: s.Unit, Remaining: float64(s.Remaining), Ends: at + reset}
	slack := max(microSecond, reset/20)
	for i, o := range ss {
		if o.ID != s.ID || o.Unit != s.Unit {
			continue
		}
		switch {
		case o.Ends <= at || next.Ends > o.Ends+slack:
			ss[i] = next
		case next.Ends >= o.Ends-slack:
			ss[i].Remaining = min(o.Remaining, next.Remaining)
		}
		return ss
	}
	if len(ss) < MaxStated {
		return append(ss, next)
	}
	first := 0
	for i, o := range ss {
		if o.Ends < ss[first].Ends {
			first = i
		}
	}
	if ss[first].Ends < next.Ends {
		ss[first] = next
	}
	return ss
}
