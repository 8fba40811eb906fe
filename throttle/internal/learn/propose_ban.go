package learn

// Refusals in a row that are further apart than a window is long suggest a ban: a client that
// exceeds the limit is refused for a while. This time counts from the first refusal or, if each
// refusal begins the ban anew, from the last.

const (
	banOdds   = 1.2 // how much rarer a limiter with a ban is, as a logarithm
	banLeads  = 4   // how many of the likeliest candidates are tried with a ban: others are unlikely
	leastBans = 2   // how many refusals in a row suggest a ban
)

// bans proposes limiters with bans.
func (b *bank) bans(try func(candidate)) {
	b.rows()
	old := b.of[:min(len(b.of), banLeads)]
	for i, s := range b.shut {
		if s.hi == 0 || s.lo >= s.hi {
			continue
		}
		lo, hi := float64(s.lo)/1e9, float64(s.hi)/1e9
		ban, long := Instant(roundest(lo, hi)*1e9), Instant(roundest((lo+hi)/2, hi)*1e9)
		b.banned(ban, i == 1, old, try)
		if long != ban {
			b.banned(long, i == 1, old, try)
		}
	}
}

// banned proposes limiters with that ban; again says that each refusal begins it anew.
func (b *bank) banned(ban Instant, again bool, old []candidate, try func(candidate)) {
	with := func(c candidate) {
		c.ban, c.again = ban, again
		c.prior += banOdds + .5*oddPeriod(ban)
		try(c)
	}
	with(candidate{shape: shape{family: windowFirst, per: ban}})
	for _, u := range usual {
		if p := Instant(u.per); p < 4*ban && p != ban {
			with(candidate{shape: shape{family: windowFirst, per: p}, prior: u.cost + .2})
		}
	}
	for _, c := range old {
		if c.ban == 0 && c.family != atOnce && c.family != windowFirst {
			with(c)
		}
	}
}

// A spread is how long a ban may be: between lo and hi.
type spread struct{ lo, hi Instant }

// rows finds out from rows of refusals in the log how long bans may be. shut[0] is for bans
// that begin with the first refusal of a row, shut[1] for those that each refusal begins anew.
func (b *bank) rows() {
	begin, end, n, event := Instant(0), Instant(0), 0, uint16(0)
	var row [2]spread
	for i := range b.log {
		l := &b.log[i]
		if l.taken > 0 && n > 0 && l.at > end+b.slack {
			if n >= leastBans {
				b.shut[0].within(row[0].lo, l.at-begin)
				b.shut[1].within(row[1].lo, l.at-end)
			}
			n = 0
		}
		if l.refused > 0 {
			switch {
			case n == 0:
				begin, n, row = l.at, 1, [2]spread{}
			case l.epoch != event: // it was sent after the last refusal was heard
				row[0].lo, row[1].lo = l.at-begin, max(row[1].lo, l.at-end)
				n++
			}
			end, event = l.last, l.epoch
		}
	}
}

// within narrows s to what it has in common with lo and hi. If that is nothing, it becomes lo
// and hi.
func (s *spread) within(lo, hi Instant) {
	if s.hi == 0 || lo >= s.hi || hi <= s.lo {
		*s = spread{lo, hi}
		return
	}
	s.lo, s.hi = max(s.lo, lo), min(s.hi, hi)
}
