package learn

import (
	"math"
	"time"

	"github.com/weirhttp/weir/headers"
)

const (
	maxStated = 6  // limits of one server that are kept; the tightest of them binds
	manyWait  = 10 // so that one may be refused to find out; with 2, a tenth more refusals on train, no faster
)

// A stated limit is one that the server's answers describe. What remains is a
// direct observation of its level, so no family has to be guessed until it is
// spent. An acceptance contradicts "nothing left".
type stated struct {
	name   uint64  // hash of name and window
	limit  float64 // zero: not said
	window Instant // zero: not said
	left   float64 // as of the answer to what was sent at seen
	seen   Instant
	heard  Instant
	reset  Instant // when it is full, or a new window begins, at the latest; zero: not said
	full   int8    // after a reset, all was back: so often more than not
	anchor Instant // since when gained is measured
	gained float64 // units that came back since then
	flows  float64 // units a second that come back before a reset; zero: none was seen
	liar   int8    // acceptances although nothing was left
	honest bool    // one was refused when nothing was left
	probed Instant // when one was sent before its reset
	asks   bool    // the next that is sent is to find out whether units come back before the reset
	agreed bool    // two answers named the same reset
	most   Instant // how long a wait for a reset is believed that only one answer named
	always bool    // it is stated on acceptances, too
	rigid  int8    // so often such a one was refused, more than not
	skip   int8    // resets until the next is sent: twice as many after each that was refused
}

// observe takes in what an answer to a request sent at sent says.
func (m *mind) observe(a *Answer, sent, now Instant, accepted bool) {
	for i := range a.Signal.Limits {
		l := &a.Signal.Limits[i]
		if !l.Remaining.Known || l.Unit != "" && l.Unit != "requests" || l.Remaining.Value < 0 {
			continue // a reset without a readable remaining does not say that nothing is left
		}
		if l.Quota.Known && l.Quota.Value < 1 {
			continue // nothing of nothing: who is served has more than that
		}
		g := m.statedAs(l)
		if g == nil {
			continue
		}
		g.heard = now
		g.always = g.always || accepted
		if accepted && l.Remaining.Value == 0 && !l.Reset.Known {
			continue
		}
		m.reading(g, l, a, sent, now, accepted)
	}
}

// statedAs is the limit of that name, made if there is room.
func (m *mind) statedAs(l *headers.Limit) *stated {
	h := uint64(14695981039346656037)
	for i := range len(l.Name) {
		h = (h ^ uint64(l.Name[i])) * 1099511628211
	}
	h = (h ^ uint64(l.Window.Value)) * 1099511628211
	h = (h ^ math.Float64bits(l.Quota.Value)) * 1099511628211
	for i := range m.said {
		if m.said[i].name == h {
			return &m.said[i]
		}
	}
	if len(m.said) == maxStated { // the one that was not heard of for longest goes
		old := 0
		for i := range m.said {
			if m.said[i].heard < m.said[old].heard {
				old = i
			}
		}
		m.said[old] = stated{name: h}
		return &m.said[old]
	}
	m.said = append(m.said, stated{name: h})
	return &m.said[len(m.said)-1]
}

// reading takes in one limit of one answer.
func (m *mind) reading(g *stated, l *headers.Limit, a *Answer, sent, now Instant, accepted bool) {
	left := l.Remaining.Value
	if l.Quota.Known {
		g.limit = l.Quota.Value
	}
	if l.Window.Known {
		g.window = Instant(min(l.Window.Value, 25*time.Hour))
	}
	reset := Instant(0)
	if l.Reset.Known && l.Reset.Value < 400*24*time.Hour {
		reset = m.resetAt(a, Instant(l.Reset.Value), now)
	}
	if sent < g.seen || sent == g.seen && left > g.left {
		if reset > 0 && reset < g.reset && reset > now { // the same window, bounded better
			g.reset = reset
		}
		return
	}
	m.compare(g, left, reset, sent, accepted)
	off := reset - g.reset
	g.agreed = g.reset > 0 && max(off, -off) <= mostSlack && sent > g.seen
	g.most = a.maxPause()
	sameWindow := g.reset > 0 && reset > 0 && reset < g.reset+Instant(time.Second) && g.reset > now
	if sameWindow {
		reset = min(reset, g.reset)
	}
	if reset > 0 && l.Quota.Known && !l.Window.Known && left >= .7*g.limit {
		g.window = max(g.window, wholeSpan(reset-sent-m.bank.half))
	}
	g.left, g.seen, g.reset = left, sent, reset
	if !accepted && left == 0 {
		g.liar, g.honest = 0, true
	}
}

// explains reports whether a refusal is that of a limit which the server states
// on every answer, so that nothing has to be guessed.
func (m *mind) explains(a Answer) bool {
	if a.Signal == nil {
		return false
	}
	for i := range a.Signal.Limits {
		l := &a.Signal.Limits[i]
		if l.Quota.Known {
			m.bank.limit = l.Quota.Value
		}
		if g := m.statedAs(l); g != nil && g.always && g.reset > 0 && l.Remaining.Known && l.Remaining.Value == 0 {
			return true
		}
	}
	return false
}

// resetAt is when a reset is at the latest.
func (m *mind) resetAt(a *Answer, d, now Instant) Instant {
	if a.Absolute && a.Date > 0 && m.wall.known {
		return m.wall.local(Instant(a.Date)*Instant(time.Second)+d) + m.bank.slack
	}
	return now + d
}

// compare learns from the difference between what was expected to be left and
// what is.
func (m *mind) compare(g *stated, left float64, reset, sent Instant, accepted bool) {
	if g.seen == 0 || sent <= g.seen {
		return
	}
	between := m.bank.sentBetween(g.seen, sent)
	if accepted {
		between++
	}
	gained := left - (g.left - between)
	passed := g.reset > 0 && sent+m.bank.half+m.bank.slack >= g.reset // as nearly as that is known
	if accepted && g.limit > 2 && g.left-between < .5*g.limit && left+1 >= g.limit-.5 {
		passed = true // all is back at once: a window that began before its reset, which was rounded up
	}
	if passed || !accepted {
		g.anchor, g.gained = 0, 0
	}
	switch {
	case passed && g.limit > 0 && g.left-between < .2*g.limit:
		if left+1+m.bank.sentBetween(g.reset-m.bank.half-1, sent) >= g.limit-.5 {
			g.full = min(g.full+1, 3)
		} else {
			g.full = -2
		}
	case passed:
	case !accepted && left == 0 && g.flows > 0: // not so fast
		if g.flows /= 2; g.flows*float64(reset-sent) < 1e9 {
			g.flows = 0
		}
	case accepted:
		m.inflow(g, gained, sent)
	}
	if passed {
		g.skip = max(0, g.skip-1)
	}
	m.judge(g, sent, accepted)
	spent := g.left-between < 0 && !passed && gained < .9 && g.flows == 0
	first := passed && left == 0 && g.limit >= 2 && m.bank.sentBetween(g.reset-m.bank.half-1, sent) == 0
	if accepted && !g.honest && (spent || first) {
		g.liar = min(g.liar+1, 3)
	}
}

// judge notes the fate of a request that was sent to find out whether units come
// back before the reset.
func (m *mind) judge(g *stated, sent Instant, accepted bool) {
	if sent == g.probed && accepted {
		g.rigid = max(0, g.rigid-1)
	} else if sent == g.probed {
		g.rigid = min(g.rigid+1, 6)
		g.skip = 1 << g.rigid
	}
}

// inflow measures what comes back before a reset.
func (m *mind) inflow(g *stated, gained float64, sent Instant) {
	if g.anchor == 0 {
		g.anchor = g.seen
	}
	g.gained += gained
	t := float64(sent-g.anchor) / 1e9
	switch {
	case g.gained >= 2 && sent-g.anchor > 4*m.bank.slack:
		g.flows = (g.gained - 1) / t
	case g.gained < .5 && g.flows*t > 3:
		g.flows = 0
	}
}

// sentBetween is how many were sent after a and before b, and may count.
func (r *record) sentBetween(a, b Instant) (n float64) {
	for i := len(r.log) - 1; i >= 0 && r.log[i].last > a; i-- {
		if l := &r.log[i]; l.at > a && l.at < b {
			n += l.units(false)
		}
	}
	return n
}
