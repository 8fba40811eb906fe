package learn

import (
	"cmp"
	"math"
	"slices"
)

// Costs and prices are times, in nanoseconds, that requests wait in vain. What a figure for time
// means is said in the package comment.
const (
	// leastPrice is the least cost of a refusal: one is worth avoiding even where round trips and
	// units take next to no time.
	leastPrice = 2e8
	// mostPrice is the most, unless the server asked for a longer pause: most windows are over
	// after a minute.
	mostPrice = 6e10
	// priceUnits is the cost of a refusal in units of the believed rate. With 6, time p90 was 4.1
	// instead of 3.7 on train.
	priceUnits = 3
	// margin is how many times the doubt about arrivals is left free in a bucket if refusals are
	// dear: if more than dearUnits units flow off in the pause after one. What is left free is lost
	// once, and it avoids refusals again and again.
	margin    = 3
	dearUnits = 50
	// behindPart is the part of a wait in vain that each other waiting request loses, too. With
	// .12, time p99 was 36 instead of 30 on train.
	behindPart = .25
	// mostQueue is how many waiting requests count for that. 20 and 150 did the same on train.
	mostQueue = 50
)

// A chance is when a request could be sent if the server had a certain candidate.
type chance struct {
	at     Instant // when the candidate has room
	weight float64 // of the candidate
	price  float64 // the cost of a refusal if the server has it: a ban may make it dearer
	rate   float64 // units a second that it accepts in the long run
}

// price is what a refusal costs those who wait, in nanoseconds: the time of priceUnits units at the
// rate of the leader. It is at most the time of as many at the rate that was seen, or the time
// for which nothing was accepted, whichever is longer. So the waits of a Learner that knows
// nothing yet grow step by step. It is never less than a refusal's delay, or than the pause that the
// server asked for.
func (m *mind) price(now Instant) float64 {
	c := &m.bank.of[0]
	units := priceUnits * 1e9 / max(1e-4, c.rate(c.size))
	seen := max(float64(now-m.taken), priceUnits*1e9/m.bank.flow)
	return max(leastPrice, m.delay(), float64(m.bank.paused), min(units, seen, mostPrice))
}

// chances are those of the live candidates, by when they have room; total is the sum of their
// weights, and dear that of weight times price.
func (m *mind) chances(now Instant, buf []chance) (ch []chance, total, dear float64) {
	price := m.price(now)
	for i := range m.bank.of[:m.bank.live] {
		c := &m.bank.of[i]
		x := chance{m.bank.ready(c, now), c.weight, max(price, float64(c.ban)), c.rate(c.size)}
		buf = append(buf, x)
		total += x.weight
		dear += x.weight * x.price
	}
	slices.SortFunc(buf, func(a, b chance) int { return cmp.Compare(a.at, b.at) })
	return buf, total, dear
}

// choose chooses when to send: the instant at which one of the candidates has room that costs
// least. If the server has a candidate that has room earlier, all who wait have lost the time
// since then; if it has one that has room later, a request is refused. p is the weight of those that
// have room at at, and those of the majority have it at most.
func (m *mind) choose(now Instant, waiting int) (at, most Instant, p float64) {
	if m.bank.live == 1 {
		at = m.bank.ready(&m.bank.of[0], now)
		return at, at, 1
	}
	var buf [maxCandidates]chance
	ch, total, dear := m.chances(now, buf[:0])
	lead, waited := &m.bank.of[0], 0.0
	if lead.ban > 0 { // else a refusal costs little, and climbs find out
		waited = lead.weight * float64(m.climb.seen.waited)
	}
	behind := 1 + behindPart*float64(min(waiting, mostQueue))
	best, cost := 0, math.Inf(1)
	sure, vain := 0.0, 0.0 // sure: the weights of those that have room; vain: the sum of weight times how long they have had it
	most = ch[len(ch)-1].at
	for i := range ch {
		if i > 0 {
			vain += sure * float64(ch[i].at-ch[i-1].at)
		}
		sure += ch[i].weight / total
		dear -= ch[i].weight * ch[i].price // what is left is that of the candidates that have no room yet
		if sure >= majority {
			most = min(most, ch[i].at)
		}
		// Whoever goes by less than the leader bears loses that part of the time until the next
		// refusal, which probably takes as long as it has.
		again := waited * max(0, 1-ch[i].rate/lead.rate(lead.size))
		if x := max(behind*vain, again) + max(0, dear)/total; x < cost-1 { // by a nanosecond, so that rounding does not decide
			best, cost, p = i, x, sure
		}
	}
	return ch[best].at, most, p
}

// ready is when a request may be sent so that a candidate has room when it arrives.
func (b *bank) ready(c *candidate, now Instant) Instant {
	if c.family == atOnce {
		if b.mostAtWork(now, float64(b.paused)/c.unit())+1 <= max(c.size, 1) {
			return now
		}
		return max(now, b.event+2*b.mean) // one that takes longer than that is not waited for
	}
	at, size := now+b.half, max(c.size, 1)
	if c.family != bucket || size < 2 { // before the border there is no room at all: it arrives later than that by the doubt about arrivals
		return max(now, c.shape.ready(c.state, size, at-b.slack, b.log, b.half)+b.slack-b.half)
	}
	// Some of a bucket stays free, as requests may arrive closer together than they were sent.
	doubt := float64(b.slack) / float64(c.per)
	if b.paused > dearUnits*c.per {
		doubt *= margin
	}
	size -= min(doubt, size-1)
	if c.barred <= at && c.peek(&c.state, at, b.log, b.half)+1-size <= almost {
		return now
	}
	return max(now, c.shape.ready(c.state, size, at, b.log, b.half)-b.half)
}
