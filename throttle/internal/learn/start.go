package learn

import "math"

// trips is how long answers take to come.
type trips struct {
	least, mean, off Instant // off: mean distance from mean
	late             Instant // by how much later than it was sent it is heard of, at most, what others send; zero: nothing was
}

// leastDrifts is after how many answers the shortest trip is forgotten, as the way to the
// server may grow longer. With 256, a server whose work varies looked a third as far off
// again after a hundred answers, and arrivals as doubtful: buckets were left half empty,
// and requests at a time were taken for fewer (train, slowest of a hundred 63 -> 51 times).
const leastDrifts = 1 << 16

func (t *trips) sample(d Instant) {
	d = max(0, d)
	if t.mean == 0 {
		t.least, t.mean, t.off = d, d, d/8
		return
	}
	t.least = min(t.least+(t.mean-t.least)/leastDrifts, d)
	e := d - t.mean
	t.mean += e / 8
	t.off += (max(e, -e) - t.off) / 8
}

// unheard takes in for how long nothing was heard of others until it was heard that they
// had sent something.
func (t *trips) unheard(d Instant) { t.late += (d - t.late) / 8 }

// slack is by how much an arrival may be off from half of the shortest trip: by half a
// millisecond at least, as timers and schedulers are not finer.
func (t *trips) slack() Instant { return min(t.least, 2*t.off) + 5e5 }

func (t *trips) timing() timing {
	return timing{t.least / 2, t.slack(), max(0, 1-float64(t.least)/float64(max(1, t.mean))), float64(t.late) / float64(max(1, t.mean))}
}

// past is the log of a server that never refused, in as few bytes as explain
// its first refusal: the older, the coarser.
type past struct {
	base Instant // what at counts from
	of   [pasts]few
	n    int32
}

// few are requests that were sent within a short time.
type few struct {
	at   uint32 // when the first of them was, in ticks since base
	n    uint16
	busy uint16 // under way when the last of them was sent
}

const (
	pasts = 20      // with 10 the first refusal told less of windows
	tick  = 1 << 18 // ns, so that 13 days fit

	hardly = 2 // times as far apart; with 1, a call cost 18 ns more, and as many were refused
)

func (p *past) sent(now Instant, n, busy int) {
	at := (now - p.base) / tick
	if p.n == 0 || at > math.MaxUint32 || at < 0 {
		p.base, p.n, at = now, 0, 0
	}
	if p.n > 0 {
		if l := &p.of[p.n-1]; uint32(at)-l.at < 4 {
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

// merge joins the two neighbours whose distance is least for their age, and those that
// are hardly further apart, so that few calls pay for it.
func (p *past) merge(now uint32) {
	gap, age := uint64(1), uint64(0)
	for i := range pasts - 1 {
		g, a := uint64(p.of[i+1].at-p.of[i].at), uint64(now-p.of[i].at)
		if g*age < gap*a { // g/a is less than gap/age
			gap, age = g, a
		}
	}
	k, alone := 0, true
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

func (p *past) unsent(sent Instant, n int) {
	for i := int(p.n) - 1; i >= 0; i-- {
		if l := &p.of[i]; p.base+Instant(l.at)*tick <= sent {
			l.n -= min(l.n, uint16(n))
			return
		}
	}
}

// into hands the log on. The last busy units are those under way.
func (p *past) into(r *record, busy int) {
	r.log = make([]rec, p.n, maxRecords)
	for i := int(p.n) - 1; i >= 0; i-- {
		x := &p.of[i]
		n := min(x.n, 1<<15)
		under := uint16(min(int(n), max(0, busy)))
		busy -= int(under)
		at := p.base + Instant(x.at)*tick
		last := at
		if i+1 < int(p.n) && n > 1 { // those merged were sent some time before the next
			last += (p.base + Instant(p.of[i+1].at)*tick - at) / 2
		}
		r.log[i] = rec{at: at, last: last, under: under, taken: n - under, busy: x.busy}
	}
}
