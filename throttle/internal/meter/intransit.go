package meter

import "time"

// mostInTransit is how long the way to a server may take, connecting included.
// What takes longer is the server's own work.
const mostInTransit = time.Second

// inTransit counts units that were granted a short while ago and not answered yet.
// The server may not have seen them: its bucket may still be as full as it
// was, and what would flow in meanwhile is lost. So a bucket is taken to hold
// at most its size less these. They are forgotten after a while, so that slow
// answers do not cost a bucket its rate: after the time it takes to fill, or
// mostInTransit if that is less, and no sooner than half of it. nil counts
// none and adds none.
type inTransit struct {
	span    Instant // number of the present one
	present int64
	last    int64 // of the span before
}

// spanOf is how many nanoseconds a span is long; zero: nothing is in transit.
func spanOf(perSecond float64, size int) Instant {
	return min(Instant(mostInTransit/2), Instant(float64(size-1)/2/perSecond*1e9))
}

// count is how many are in transit at now.
func (y *inTransit) count(now, span Instant) int64 {
	if y == nil || span <= 0 {
		return 0
	}
	switch i := now / span; {
	case i == y.span:
	case i == y.span+1:
		y.span, y.last, y.present = i, y.present, 0
	default:
		y.span, y.last, y.present = i, 0, 0
	}
	return y.present + y.last
}

// add counts n granted at now.
func (y *inTransit) add(now, span Instant, n int64) {
	y.count(now, span)
	y.present += n
}

// drop forgets n granted at at.
func (y *inTransit) drop(now, at, span Instant, n int64) {
	if y.count(now, span) == 0 {
		return
	}
	switch at / span {
	case y.span:
		y.present = max(0, y.present-n)
	case y.span - 1:
		y.last = max(0, y.last-n)
	}
}
