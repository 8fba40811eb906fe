package meter

import (
	"slices"
	"time"
)

// unanswered is units whose answers have not come, by when they were granted,
// oldest first. Its length is bounded by the number of requests that await
// their answers. The zero value is empty, and nil is one to which nothing is added.
type unanswered struct {
	sum  int64
	head int // of log; what is before it is forgotten
	log  []Entry
}

// units is how many there are.
func (u *unanswered) units() int64 {
	if u == nil {
		return 0
	}
	return u.sum
}

func (u *unanswered) add(granted Instant, n int64) {
	u.sum += n
	if last := len(u.log) - 1; last >= u.head && u.log[last].At == granted {
		u.log[last].N += n
		return
	}
	if len(u.log) == cap(u.log) {
		// With as much room as there are units left, this is seldom.
		u.log = withoutNone(slices.Delete(u.log, 0, u.head))
		u.log, u.head = slices.Grow(u.log, len(u.log)+1), 0
	}
	u.log = append(u.log, Entry{granted, n})
}

// remove takes n of the units granted then out, or as many as there are.
func (u *unanswered) remove(granted Instant, n int64) int64 {
	if u == nil {
		return 0
	}
	log := u.log[u.head:]
	i := len(log) - 1
	if i < 0 || log[i].At != granted { // most often there is one
		i = notBefore(log, granted)
	}
	if i == len(log) || log[i].At != granted {
		return 0
	}
	n = min(n, log[i].N)
	log[i].N -= n
	u.lose(n)
	return n
}

// next takes the oldest units out, if they are not younger than that.
func (u *unanswered) next(than Instant) (t Entry, ok bool) {
	if u == nil {
		return Entry{}, false
	}
	for u.head < len(u.log) {
		if t = u.log[u.head]; t.N > 0 && t.At > than {
			break
		}
		u.head++
		if t.N > 0 {
			u.lose(t.N)
			return t, true
		}
	}
	return Entry{}, false
}

// lose counts n units less.
func (u *unanswered) lose(n int64) {
	if u.sum -= n; u.sum == 0 {
		u.log, u.head = u.log[:0], 0
	}
}

// forget takes out all units that are not younger than that.
func (u *unanswered) forget(than Instant) {
	for ok := true; ok; {
		_, ok = u.next(than)
	}
}

// shrink gives memory back that an idle key does not need.
func (u *unanswered) shrink() {
	if u != nil && u.sum == 0 && cap(u.log) > 8 {
		u.log = nil
	}
}

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
