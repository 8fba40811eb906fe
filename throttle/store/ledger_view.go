package store

import "slices"

// A ledgerView is a ledger as it stands at an instant, for one draw.
type ledgerView struct {
	now    int64
	draw   Draw
	was    Ledger // as it was before, or zero if idle
	ledger Ledger // a copy whose accounts may be written to
	accts  []*Account
	merged bool  // holds what only the caller remembers
	fresh  bool  // begins to heal
	back   int64 // by how much the clock has stepped back, in microseconds; negative: ahead
}

// view drains the meters to now, drops what is over, and puts back what d's
// process remembers of a state that was lost.
func (l Ledger) view(now int64, d Draw) ledgerView {
	if l.Expires <= now {
		l = Ledger{Era: l.Era}
	}
	back := max(0, l.At-now) // the clock stepped back
	// What was written since a step ahead is dated by the clock as it is now. Others
	// may have written while this call was on its way.
	if ahead := d.Seen.stepped(now); l.Gen != 0 && l.At <= d.Seen.Clock+mostLate.Microseconds()/2 {
		back -= ahead
	}
	v := ledgerView{now: now, draw: d, was: l, ledger: l, back: back}
	v.drop()
	n := &v.ledger
	lost := d.Seen.Gen != 0 && (d.Seen.Gen != l.Gen || d.Seen.At > l.At)
	older := l.restored() || lost && d.Seen.Gen == l.Gen
	if back != 0 || older {
		// Older refunds no longer match what they would take from. And of a
		// state that was rolled back all who remember more are heard, not only
		// the first.
		n.Gen = newGen(now, l.Era)
	}
	if n.Heals = min(shifted(n.Heals, back), now+Ahead.Microseconds()); n.Heals <= now {
		n.Heals = 0
	}
	older = v.recall(lost) || older
	if v.fresh = older && len(d.Limits) > 0; v.fresh {
		n.Heals = now + Ahead.Microseconds()
	}
	if lost {
		v.merged = true
		if p := now + (d.Seen.Paused - d.Seen.Age).Microseconds(); d.Seen.Paused > d.Seen.Age {
			n.Pause = max(n.Pause, p)
		}
	}
	return v
}

// drop takes out what is over, and dates the rest as far back as the clock has stepped.
func (v *ledgerView) drop() {
	l, n := &v.was, &v.ledger
	n.Accounts = make([]Account, 0, len(l.Accounts)+len(v.draw.Limits))
	for _, a := range l.Accounts {
		if a.shift(v.back); a.Idle+microSecond > v.now || v.draw.draws(a) {
			n.Accounts = append(n.Accounts, a)
		}
	}
	n.Pause, n.Guess = shifted(n.Pause, v.back), shifted(n.Guess, v.back)
	n.Stated = nil
	for _, s := range l.Stated {
		if s.Ends -= v.back; s.Ends > v.now {
			n.Stated = append(n.Stated, s)
		}
	}
}

// recall brings the account of each limit of the draw to now, and makes those that are missing. If
// the state was lost, it raises them to what the draw's process has seen, and reports whether they
// lacked so much of it that the state has to heal.
func (v *ledgerView) recall(lost bool) (older bool) {
	n, seen := &v.ledger, &v.draw.Seen
	for _, p := range v.draw.Limits {
		if n.account(p) == nil {
			a := Account{Kind: p.Kind, ID: p.ID, At: v.now}
			if p.Kind == MeterLimit {
				a.Level = -max(0, p.Credit)
			}
			n.Accounts = append(n.Accounts, a)
		}
	}
	for i, p := range v.draw.Limits {
		a := n.account(p)
		v.accts = append(v.accts, a)
		a.advance(p, v.now)
		if lost && len(seen.Levels) > 0 {
			v.merged = true
			more := a.merge(p, v.now, seen.since(p, v.now), seen.Levels[i])
			older = older || v.was.Gen == 0 && more > p.Tolerance() || seen.Gen != v.was.Gen && n.Heals == 0 && more >= lostUnit
		}
		for _, m := range v.draw.Moved {
			a.move(p, m, v.now, m.Gen == n.Gen)
		}
	}
	return older
}

// draws reports whether one of d's limits is a's.
func (d Draw) draws(a Account) bool {
	return slices.ContainsFunc(d.Limits, func(p Limit) bool { return a.Kind == p.Kind && a.ID == p.ID })
}

// shifted is an instant by a clock that has stepped back; zero, or one before 1970, is none.
func shifted(at, back int64) int64 {
	if at == 0 {
		return 0
	}
	return max(0, at-back)
}

// shift moves what a is dated by as far as the clock has stepped back. The
// windows of a Calendar are the clock's own.
func (a *Account) shift(back int64) {
	if back == 0 || a.Kind == CalendarLimit {
		return
	}
	a.At, a.Idle = a.At-back, a.Idle-back
	a.Entries = slices.Clone(a.Entries)
	for i := range a.Entries {
		a.Entries[i].At -= back
	}
}

// advance brings a to now.
func (a *Account) advance(p Limit, now int64) {
	switch p.Kind {
	case MeterLimit:
		a.Level = max(-max(0, p.Credit), a.Level-float64(p.perMicro()*float64(max(0, now-a.At))))
		a.At = now
	case CalendarLimit:
		per := p.Per.Microseconds()
		ends := p.Ends.UnixMicro()
		ends += (floorDiv(now-ends, per) + 1) * per
		switch {
		case a.Ends < ends:
			a.Ends, a.Level = ends, 0
		case a.Ends > ends+per:
			a.Ends = ends // a clock ahead of ours opened it: its units were sent all the same
		}
	case LogLimit:
		var es []Entry
		for _, e := range a.Entries {
			if e.At+p.Per.Microseconds() > now && e.Units > 0 {
				es = append(es, e)
			}
		}
		a.Entries = es
	}
}

// since is the instant as of which p's level was seen. The units of a Log do not
// flow off: they are as old as the last of them, booked when the key was last
// written, or up to a second ahead. How often they were heard of since then does
// not keep them in the window.
func (s Seen) since(p Limit, now int64) int64 {
	seen := now - s.Age.Microseconds()
	if p.Kind == LogLimit {
		seen = min(seen, s.At+s.stepped(now)+Ahead.Microseconds())
	}
	return seen
}

// lostUnit is what a state must lack of what somebody remembers of one before it to be healed
// though newcomers have been served of it. Less may come from how long answers take.
const lostUnit = 1

// merge raises a to what was seen of it at the instant seen, and returns by how
// many units in use.
func (a *Account) merge(p Limit, now, seen int64, level float64) (more float64) {
	switch p.Kind {
	case MeterLimit:
		// Beyond an hour's debt a level is a fault, not a memory.
		if level > p.Size+max(0, p.Credit)+p.Rate*3600 {
			return 0
		}
		if level -= float64(p.perMicro() * float64(now-seen)); level <= a.Level {
			return 0
		}
		more, a.Level = level-max(0, a.Level), level
		return more
	case CalendarLimit:
		if level = min(level, p.Size); seen < a.Ends-p.Per.Microseconds() || level <= a.Level {
			return 0
		}
		more, a.Level = level-a.Level, level
		return more
	}
	missing := min(level, p.Size) - a.total()
	if missing <= 0 || seen+p.Per.Microseconds() <= now {
		return 0
	}
	i := 0
	for i < len(a.Entries) && a.Entries[i].At <= seen {
		i++
	}
	a.Entries = slices.Insert(slices.Clone(a.Entries), i, Entry{At: seen, Units: missing})
	return missing
}

func (a *Account) total() float64 {
	var sum float64
	for _, e := range a.Entries {
		sum += e.Units
	}
	return sum
}
