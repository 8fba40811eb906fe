package stated

import (
	"math"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

// A server with a sliding log states when its first unit comes back. If each process of a fleet
// asked then with one request, most of these would be refused. But the Store knows when all
// units were booked, and so when they leave the window. So a fleet computes what is left.

// slidePart is the part of a window by which units are taken to leave it later, because
// requests take different times from the Store to the server.
const slidePart = 64

// slide is what a limit knows of a server that counts in a sliding window.
type slide struct {
	rolled  int64   // the count at the last reset
	foreign float64 // units in the window that were not drawn by the fleet
}

// slides learns from an answer that left units are left when the count was n.
func (s *shared) slides(q *Limit, now, sent meter.Instant, left float64, n int64) {
	if !q.size.Known || s.tally == nil || q.flows() {
		return
	}
	gone := left + float64(n) - q.size.Value // units that the server does not count any more
	before, _, known := s.tally.Past(now.Sub(sent) + s.span)
	if !known {
		return
	}
	if all, then := float64(s.slide.rolled), float64(before); q.rolled != 0 && sent > q.rolled && all-then > max(2, q.size.Value/8) {
		window, log := math.Abs(all-gone), math.Abs(gone-then)
		q.judge.Weigh([4]float64{refill.Window: window, refill.Bucket: max(window, log), refill.Log: log, refill.Counter: math.Inf(1)})
	}
	s.slide.foreign = max(0, float64(before)-gone)
}

// rolls learns from two resets, at last and at now. Resets that are closer together than a
// window are those of a sliding log.
func (q *Limit) rolls(last, now meter.Instant) {
	if q.shared.tally != nil && last != 0 && now.Sub(last) < q.shared.span-Coarse-Coarse/4 {
		q.judge.Weigh([4]float64{refill.Window: math.Inf(1), refill.Bucket: math.Inf(1), refill.Counter: math.Inf(1)})
	}
}

// slid brings q up to date if its server counts in a sliding window: the units count that this
// process, or the fleet, spent within one. It reports false if that is not known, or if all
// units are there.
func (q *Limit) slid(now meter.Instant) bool {
	s := &q.shared
	if left, ok := q.unspent(now); ok {
		d := q.trail.wait(now, q.size.Value, max(0, left)+1, q.flying(), q.window)
		if d == 0 || d == meter.Unknown {
			return false
		}
		q.reset.Value = now.Add(d) // the stated one was for units that have left the window by now
		return true
	}
	if q.judge.Kind() != refill.Log || s.tally == nil || !s.based || s.alone || s.span <= 0 || !q.size.Known {
		return false
	}
	n, _ := s.tally.Count()
	per := s.span + s.span/slidePart
	before, next, known := s.tally.Past(per)
	if !known || next == 0 {
		return false
	}
	q.left, q.basis = q.size.Value-float64(n-before)-s.slide.foreign, now
	s.base, s.doubt = n, 0
	q.reset = headers.Opt[meter.Instant]{Value: now.Add(next), Known: true}
	return true
}
