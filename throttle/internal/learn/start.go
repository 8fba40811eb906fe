package learn

import "math"

// trips is how long answers take to come: round trips, with the time for which the server works.
type trips struct {
	least     Instant // the shortest: about the way there and back, without the server's work
	mean      Instant // zero: there was no answer
	deviation Instant // the mean distance from mean
	lag       Instant // how late it is heard, at most, that other processes sent something; zero: none did
}

// leastDrifts says how slowly the shortest trip is forgotten, since the way to the server may
// grow longer: with each answer least rises by this part of its distance from mean. With 256,
// after a hundred answers, a server whose work varies looked a third as far off again, and
// arrivals were as doubtful. Then buckets were left half empty, and limits on requests at a time
// were taken for lower ones (on train, the slowest of a hundred took 63 times as long as needed
// instead of 51).
const leastDrifts = 1 << 16

// sample takes in that an answer took d. Means move by an eighth of the difference, as TCP's
// estimate of round trips does.
func (t *trips) sample(d Instant) {
	d = max(0, d)
	if t.mean == 0 {
		t.least, t.mean, t.deviation = d, d, d/8
		return
	}
	t.least = min(t.least+(t.mean-t.least)/leastDrifts, d)
	e := d - t.mean
	t.mean += e / 8
	t.deviation += (max(e, -e) - t.deviation) / 8
}

// unheard takes in that it was heard that others had sent something, after nothing was heard
// of them for d.
func (t *trips) unheard(d Instant) { t.lag += (d - t.lag) / 8 }

// slack is by how much a request may arrive earlier or later than half of the shortest trip
// after it was sent: by half a millisecond at least, as timers and schedulers are not finer.
func (t *trips) slack() Instant { return min(t.least, 2*t.deviation) + 5e5 }

func (t *trips) timing() timing {
	x := timing{half: t.least / 2, slack: t.slack()}
	if t.lag != 0 {
		x.lag = float64(t.lag) / float64(max(1, t.mean))
	}
	return x
}

// past is the log of a server that never refused. It takes few bytes: what was sent long ago is
// kept in groups that span a longer time.
type past struct {
	base Instant    // few.at counts from then
	of   [pasts]few // oldest first
	n    int32      // how many of them are in use
}

// few is a group of requests that were sent within some time.
type few struct {
	at   uint32 // when the first of them was sent, in ticks since base
	n    uint16 // units
	busy uint16 // requests under way when the last of them was sent
}

const (
	// pasts is the most groups: 160 bytes. With 10, the first refusal told less about windows.
	pasts = 20
	// tick is the unit of few.at, in nanoseconds: 32 bits are enough for 13 days of it.
	tick = 1 << 18
	// together is how many ticks a group spans at most when it is made: about a millisecond.
	together = 4
	// hardly is how many times further apart than the closest neighbours others may be that are
	// merged with them. With 1, a call cost 18 ns more, and as many were refused.
	hardly = 2
)

// sent notes n units that were sent now, while busy requests were under way.
func (p *past) sent(now Instant, n, busy int) {
	at := (now - p.base) / tick
	if p.n == 0 || at > math.MaxUint32 || at < 0 {
		p.base, p.n, at = now, 0, 0
	}
	if p.n > 0 {
		if l := &p.of[p.n-1]; uint32(at)-l.at < together {
			l.n, l.busy = uint16(min(int(l.n)+n, math.MaxUint16)), uint16(min(busy, math.MaxUint16))
			return
		}
	}
	if p.n == pasts {
		p.merge(uint32(at))
	}
	p.of[p.n] = few{uint32(at), uint16(min(n, math.MaxUint16)), uint16(min(busy, math.MaxUint16))}
	p.n++
}

// merge joins the two neighbours that are the closest for their age, and others that are hardly
// further apart, so that it is seldom called.
func (p *past) merge(now uint32) {
	gap, age := uint64(1), uint64(0) // of the closest so far
	for i := range pasts - 1 {
		g, a := uint64(p.of[i+1].at-p.of[i].at), uint64(now-p.of[i].at)
		if g*age < gap*a { // g/a is less than gap/age
			gap, age = g, a
		}
	}
	k, alone := 0, true // alone: group k was not merged
	for _, next := range p.of[1:p.n] {
		l := &p.of[k]
		if alone && uint64(next.at-l.at)*age <= hardly*gap*uint64(now-l.at) {
			l.n, l.busy, alone = uint16(min(int(l.n)+int(next.n), math.MaxUint16)), max(l.busy, next.busy), false
			continue
		}
		k, alone = k+1, true
		p.of[k] = next
	}
	p.n = int32(k + 1)
}

// unsent takes a request back that was not sent after all: it was not under way, either, when later
// ones were sent.
func (p *past) unsent(sent Instant) {
	for i := int(p.n) - 1; i >= 0; i-- {
		l := &p.of[i]
		l.busy -= min(l.busy, 1)
		if p.base+Instant(l.at)*tick <= sent {
			l.n -= min(l.n, 1)
			return
		}
	}
}

// into makes r the log. The last units, as many as busy, are those under way: past does not
// know of answers.
func (p *past) into(r *record, busy int) {
	r.log = make([]entry, p.n, maxEntries)
	for i := int(p.n) - 1; i >= 0; i-- {
		x := &p.of[i]
		n := min(x.n, 1<<15)
		under := uint16(min(int(n), max(0, busy)))
		busy -= int(under)
		at := p.base + Instant(x.at)*tick
		last := at
		if i+1 < int(p.n) && n > 1 { // the last was sent some time before the next group
			last += (p.base + Instant(p.of[i+1].at)*tick - at) / 2
		}
		r.log[i] = entry{at: at, last: last, under: under, taken: n - under, busy: x.busy}
	}
}
