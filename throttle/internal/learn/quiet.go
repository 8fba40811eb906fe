package learn

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
)

// A server may work for seconds on what it accepts, but its limiter refuses at once. So who has been
// under way for far longer than a refusal takes was accepted, and nobody has to wait for the answer
// to know that.

// soonHeard is within how many times as long as the slowest refusal lately took nearly all others are
// heard, so that after that no refusal is expected. Buckets, logs and windows of 5 to 200 a second that
// work for .3 to 5 s served .94, .93, .93 and .88 of what they bear with 1, 2, 3 and 5, and .68 if
// the answers themselves were awaited.
const soonHeard = 2

// presume takes for accepted what has been under way for so long that its refusal would have been
// heard, as cooldown.Quiet says. If the host may be down, only answers show that it is not. Refusals of
// what other processes sent are heard late.
func (m *mind) presume(now Instant, l *Learner) {
	if now < m.presumes || m.trip == 0 || l.away != nil || m.doubted && m.taken < m.refused {
		return
	}
	quiet := Instant(cooldown.Quiet(m.trip))
	since, b, ends := now-quiet, &m.bank, false
	last := b.last(since)
	for i := last; i >= 0 && b.log[i].last > m.presumed; i-- {
		if x := &b.log[i]; x.under > 0 && x.last <= since {
			ends = ends || b.endsRow(x.last)
			b.counts(x)
			m.earn(int(x.under))
			m.taken = now
			m.climb.accepted(now, x.last)
			x.taken, x.under = x.taken+x.under, 0
		}
	}
	m.presumed, m.presumes = since, now+quiet
	for i := max(0, last); i < len(b.log); i++ {
		if x := &b.log[i]; x.under > 0 { // the next to be old enough
			m.presumes = max(now, x.last+quiet)
			break
		}
	}
	if ends {
		b.rebuild()
	}
}

// young is how many of busy requests under way were sent within the last d, so that their refusal may
// not have been heard yet, and when the first of them is older. All may be, if the log does not reach
// back as far, or no refusal was heard.
func (m *mind) young(now Instant, busy int, d time.Duration) (n int, more Instant) {
	if m.trip == 0 {
		return busy, never
	}
	log, since := m.bank.log, now-Instant(d)
	i := len(log) - 1
	for more = never; i >= 0 && log[i].last > since; i-- {
		if x := &log[i]; x.under > 0 {
			n, more = n+int(x.under), x.last+Instant(d)
		}
	}
	if i < 0 && m.bank.cut {
		return busy, more
	}
	return min(n, busy), more
}

// delay is for how long a refusal holds up others at least, in nanoseconds: one more has to get
// through before they go, and it does if it was answered or not refused.
func (m *mind) delay() float64 {
	d := 2 * m.bank.mean
	if m.trip > 0 {
		d = min(d, Instant(cooldown.Quiet(m.trip)))
	}
	return float64(d)
}
