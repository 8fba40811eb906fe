package learn

// A ban is what refusals in a row suggest that come from further apart than a window is
// long: who asks for more than the limit is shut out for a while, from the first refusal
// on or, if each one begins it anew, from the last.

const (
	banOdds   = 1.2 // few servers shut out; as a logarithm
	banLeads  = 4   // of the likeliest candidates are tried with a ban
	leastBans = 2   // refusals in a row
)

// bans proposes limiters that shut out who is refused.
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

// banned proposes limiters with that ban.
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

// A spread is how long a ban may be.
type spread struct{ lo, hi Instant }

// rows takes in what the rows of refusals in the log say of how long bans may be: those
// that begin with the first refusal of a row, and those that each refusal begins anew.
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
			case l.epoch != event: // it was sent after the one before was heard
				row[0].lo, row[1].lo = l.at-begin, max(row[1].lo, l.at-end)
				n++
			}
			end, event = l.last, l.epoch
		}
	}
}

// within narrows s. What contradicts it begins anew.
func (s *spread) within(lo, hi Instant) {
	if s.hi == 0 || lo >= s.hi || hi <= s.lo {
		*s = spread{lo, hi}
		return
	}
	s.lo, s.hi = max(s.lo, lo), min(s.hi, hi)
}
