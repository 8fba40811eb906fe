package stated

import (
	"math"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

// A sliding log says when its first unit comes back, and after a burst many do. To
// ask then, one request of each process, costs as many refusals. But what all booked
// is known, and so is when it leaves the window: a fleet reckons what is left.

// slidePart is the part of a window that units are given to leave it: requests
// take longer or shorter from the Store to the server.
const slidePart = 64

// slide is what a quota knows of a server that counts in a sliding window.
type slide struct {
	rolled  int64   // the count at the last reset
	foreign float64 // units that others than the fleet had in the window
}

// slides takes in an answer that left units when the count was n.
func (s *shared) slides(q *Limit, now, sent meter.Instant, left float64, n int64) {
	if !q.size.Known || s.tally == nil || q.flows() {
		return
	}
	gone := left + float64(n) - q.size.Value // units that the server counts no more
	before, _, known := s.tally.Past(now.Sub(sent) + s.span)
	if !known {
		return
	}
	if all, then := float64(s.slide.rolled), float64(before); q.rolled != 0 && sent > q.rolled && all-then > max(2, q.size.Value/8) {
		window, log := math.Abs(all-gone), math.Abs(gone-then)
		q.judge.Weigh([3]float64{refill.Window: window, refill.Bucket: max(window, log), refill.Log: log})
	}
	s.slide.foreign = max(0, float64(before)-gone)
}

// rolls takes in that a reset passed at now, and one at last before.
func (q *Limit) rolls(last, now meter.Instant) {
	if q.shared.tally != nil && last != 0 && now.Sub(last) < q.shared.span-Coarse-Coarse/4 {
		q.judge.Weigh([3]float64{refill.Window: math.Inf(1), refill.Bucket: math.Inf(1)})
	}
}

// slid brings q to now if its server counts in a sliding window: what all booked
// within one counts. It reports false if that is not known, or nothing was booked.
func (q *Limit) slid(now meter.Instant) bool {
	s := &q.shared
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
