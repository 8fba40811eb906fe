package throttle

import "github.com/weirhttp/weir/headers"

// A sliding log says when its first unit comes back, and after a burst many do. To
// ask then, one request of each process, costs as many refusals. But what all booked
// is known, and so is when it leaves the window: a fleet reckons what is left.

const (
	// surelySlides is how many answers have to show that a server goes on counting
	// what was sent before a reset. One may, where a reset is told too early.
	surelySlides = 1
	// slidePart is the part of a window that units are given to leave it: requests
	// take longer or shorter from the Store to the server.
	slidePart = 64
)

// slide is what a quota knows of a server that counts in a sliding window.
type slide struct {
	seen    int     // answers after a reset that show it, at most 2*surelySlides
	rolled  int64   // the count at the last reset
	foreign float64 // units that others than the fleet had in the window
}

// slides takes in an answer that left units when the count was n.
func (s *shared) slides(q *quota, now, sent instant, left float64, n int64) {
	if !q.size.Known || s.tally == nil || q.flows {
		return
	}
	gone := left + float64(n) - q.size.Value // units that the server counts no more
	before, _, known := s.tally.Past(now.Sub(sent) + s.span)
	if !known {
		return
	}
	if all, then := float64(s.slide.rolled), float64(before); q.rolled != 0 && sent > q.rolled && all-then > max(2, q.size.Value/8) {
		if all-gone > gone-then {
			s.slide.seen = min(s.slide.seen+1, 2*surelySlides)
		} else {
			s.slide.seen = max(0, s.slide.seen-1)
		}
	}
	s.slide.foreign = max(0, float64(before)-gone)
}

// rolls takes in that a reset passed at now, and one at last before.
func (s *shared) rolls(last, now instant) {
	if last != 0 && now.Sub(last) < s.span-coarse-coarse/4 {
		s.slide.seen = min(s.slide.seen+1, 2*surelySlides)
	}
}

// slid brings q to now if its server counts in a sliding window: what all booked
// within one counts. It reports false if that is not known, or nothing was booked.
func (q *quota) slid(now instant) bool {
	s := &q.shared
	if s.slide.seen < surelySlides || s.tally == nil || !s.based || s.alone || s.span <= 0 || !q.size.Known {
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
	q.reset = headers.Opt[instant]{Value: now.Add(next), Known: true}
	return true
}
