package learn

// Refusals in a row that are further apart than a window is long suggest a ban: a client that
// exceeds the limit is refused for a while. This time counts from the first refusal or, if each
// refusal begins the ban anew, from the last.
//
// A long row may also be an outage. If neither a limit nor a ban that two rows agree on explains
// it, it is taken for one, see Reopened: then shapes without a ban are judged on what came since,
// and pay for that, but those with a ban still have to explain all. So a second row of the same
// length makes a ban likely, and one of another length unlikely.

const (
	banOdds   = 1.2 // how much rarer a limiter with a ban is, as a logarithm
	banLeads  = 4   // how many of the likeliest candidates are tried with a ban: others are unlikely
	leastBans = 2   // how many refusals in a row suggest a ban
	longRow   = 4   // a row of more refusals may also be an outage
	leastHint = 2e9 // a shorter wait that is asked for, in nanoseconds, is rather that of a window
)

// bans proposes limiters with bans.
func (b *bank) bans(try func(candidate)) {
	b.rows()
	old := b.of[:min(len(b.of), banLeads)]
	if ban := b.statedBan(); ban > 0 {
		b.withBan(ban, false, old, try)
	}
	for i, s := range b.shut {
		if b.kin != nil {
			s.join(b.kin.shut[i])
		}
		if s.hi == 0 || s.lo >= s.hi || s.outage && s.rows < 2 {
			continue
		}
		lo, hi := float64(s.lo)/1e9, float64(s.hi)/1e9
		ban, long := Instant(roundest(lo, hi)*1e9), Instant(roundest((lo+hi)/2, hi)*1e9)
		b.withBan(ban, i == 1, old, try)
		if long != ban {
			b.withBan(long, i == 1, old, try)
		}
	}
}

// statedBan is the wait in whole seconds that the last two epochs both asked for; zero: they did
// not. What is left of a window differs from time to time, and is seldom whole.
func (r *record) statedBan() Instant {
	k := len(r.epochs)
	if k < 2 || r.epochs[k-1].hint != r.epochs[k-2].hint || r.epochs[k-1].hint < leastHint || r.epochs[k-1].hint%1e9 != 0 {
		return 0
	}
	return r.epochs[k-1].hint
}

// withBan proposes limiters with that ban; again says that each refusal begins it anew.
func (b *bank) withBan(ban Instant, again bool, old []candidate, try func(candidate)) {
	with := func(c candidate) {
		c.ban, c.again = ban, again
		c.prior += banOdds + .5*oddPeriod(ban)
		try(c)
	}
	with(candidate{shape: shape{family: windowFirst, per: ban}})
	with(candidate{shape: shape{family: slidingLog, per: ban}})
	for _, u := range usual {
		if p := Instant(u.per); p < 4*ban && p != ban {
			with(candidate{shape: shape{family: windowFirst, per: p}, prior: u.cost + .2})
			with(candidate{shape: shape{family: slidingLog, per: p}, prior: u.cost + .2})
		}
	}
	for _, c := range old {
		if c.ban == 0 && c.family != atOnce && c.family != windowFirst {
			with(c)
		}
	}
}

// A spread is how long a ban may be: between lo and hi.
type spread struct {
	lo, hi Instant
	rows   uint8 // so many rows agree on it
	outage bool  // the first of these was taken for an outage
}

// endsRow reports whether the acceptance of what was sent then ends a row of refusals that may be
// an outage.
func (r *record) endsRow(sent Instant) bool {
	k := len(r.epochs)
	return k > 0 && r.epochs[k-1].streak > longRow && sent >= r.epochs[k-1].heard && !r.takenSince(r.epochs[k-1].heard)
}

// rows finds out from rows of refusals in the log how long bans may be. shut[0] is for bans
// that begin with the first refusal of a row, shut[1] for those that each refusal begins anew.
func (b *bank) rows() {
	old := b.shut // from rows of which some may be forgotten
	b.shut = [2]spread{}
	begin, end, n := Instant(0), Instant(0), 0
	var row [2]spread
	for i := range b.log {
		l := &b.log[i]
		if l.taken > 0 && n > 0 && l.at > end+b.slack {
			if n >= leastBans {
				b.shut[0].within(row[0].lo, l.at-begin, l.at <= b.since)
				b.shut[1].within(row[1].lo, l.at-end, l.at <= b.since)
			}
			n = 0
		}
		if l.refused > 0 {
			switch {
			case n == 0:
				begin, n, row = l.at, 1, [2]spread{}
			case l.at >= end+2*b.half: // it was sent after the last refusal was heard
				row[0].lo, row[1].lo = l.at-begin, max(row[1].lo, l.at-end)
				n++
			}
			end = l.last
		}
	}
	for i := range old {
		b.shut[i].recall(old[i])
	}
}

// recall narrows s to what it has in common with what it was when it was found last. If there is
// no row in the log any more, it stays what it was.
func (s *spread) recall(was spread) {
	switch {
	case s.hi == 0:
		*s = was
	case s.lo < was.hi && was.lo < s.hi:
		s.lo, s.hi, s.rows = max(s.lo, was.lo), min(s.hi, was.hi), max(s.rows, was.rows)
	}
}

// join narrows s to what it has in common with what others have seen. If that is nothing, s stays
// what it is.
func (s *spread) join(o spread) {
	switch {
	case s.hi == 0:
		*s = o
	case o.lo < s.hi && s.lo < o.hi:
		s.lo, s.hi, s.rows, s.outage = max(s.lo, o.lo), min(s.hi, o.hi), min(s.rows+min(o.rows, 100), 200), s.outage && o.outage
	}
}

// within narrows s to what it has in common with lo and hi. If that is nothing, it becomes lo
// and hi.
func (s *spread) within(lo, hi Instant, outage bool) {
	if s.hi == 0 || lo >= s.hi || hi <= s.lo {
		*s = spread{lo, hi, 1, outage}
		return
	}
	s.lo, s.hi, s.rows = max(s.lo, lo), min(s.hi, hi), min(s.rows+1, 200)
}
