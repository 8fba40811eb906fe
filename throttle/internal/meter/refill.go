package meter

import "math"

// Refill gives n units back, for a user who knows that the server has room: it is as if
// the n oldest of those spent had not been spent. Units that are not spent are not added.
func (m *Rated) Refill(now Instant, n int64) {
	if n <= 0 {
		return
	}
	switch {
	case m.Align != nil:
		m.rare.calendar.refill(now, m.Rate, n)
	case !m.Bucket:
		m.window.refill(now, m.Rate, n)
	}
	switch {
	case m.warm != nil:
		m.rare.warm.refill(now, m.warm, n)
	case m.shaped:
		m.bucket.refill(now, m.Rate, n)
	}
}

// refill forgets the n oldest units, without those whose answers have not come.
func (w *window) refill(now Instant, s *Rate, n int64) {
	w.look(now, s)
	for i := range w.sent.Entries {
		t := &w.sent.Entries[i]
		back := min(n, t.N)
		t.N -= back
		w.sent.Sum -= back
		n -= back
	}
	if w.sent.Sum == 0 {
		w.sent = Log{}
	}
}

func (c *calendar) refill(now Instant, s *Rate, n int64) {
	c.roll(now, s)
	c.used = max(c.out.sum, c.used-n)
}

func (b *bucket) refill(now Instant, s *Rate, n int64) {
	b.look(now, s)
	most := float64(s.Burst - int(b.under(now, s)))
	if tokens := min(most, b.tokens+float64(n)); tokens > b.tokens {
		b.fill(now, s.perSecond, s.Burst, tokens)
	}
}

// refill lets the next unit go earlier, by the time that n units take.
func (w *warm) refill(now Instant, s *warmSpec, n int64) {
	if w.next > now {
		w.next = max(now, w.next-Instant(min(float64(n)*s.interval*1e9, math.MaxInt64/4)))
	}
}
