package meter

import (
	"slices"
	"time"
)

// unanswered is units whose answers have not come, by when they were granted,
// oldest first. Its length is bounded by the number of requests that await
// their answers. The zero value is empty. nil is empty, too, and only add fails for it.
type unanswered struct {
	sum  int64
	head int // entries of log before it are forgotten
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
		// It doubles the room, so this is seldom.
		u.log = withoutNone(slices.Delete(u.log, 0, u.head))
		u.log, u.head = slices.Grow(u.log, len(u.log)+1), 0
	}
	u.log = append(u.log, Entry{granted, n})
}

// remove takes out n of the units granted at granted, or as many of them as there are, and
// returns how many it took.
func (u *unanswered) remove(granted Instant, n int64) int64 {
	if u == nil {
		return 0
	}
	log := u.log[u.head:]
	i := len(log) - 1
	if i < 0 || log[i].At != granted { // most often there is only one entry
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

// next takes out the oldest units, if they were granted at than or earlier.
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

// forget takes out all units that were granted at than or earlier.
func (u *unanswered) forget(than Instant) {
	for ok := true; ok; {
		_, ok = u.next(than)
	}
}

// shrink frees memory that an idle key does not need.
func (u *unanswered) shrink() {
	if u != nil && u.sum == 0 && cap(u.log) > 8 {
		u.log = nil
	}
}

// mostInTransit is for how long units of a bucket count as in transit at most. It is
// enough for a connection and a request to reach a distant server. If an answer takes
// longer, the rest of the time is the server's own work.
const mostInTransit = time.Second

// inTransit counts the units of a bucket that were granted a short while ago and are not
// answered yet. The server may not have seen them. Its bucket may then still be full, and
// what flows into a full bucket is lost. So ours holds at most its size less these units.
//
// They are forgotten after some time, as slow answers would otherwise lower the rate. Time
// is divided into spans, each of about half the time in which the bucket fills, or of half
// of mostInTransit if that is less. Units count in the span of their grant and in the next
// one. The zero value counts none. nil does, too, and only add fails for it.
type inTransit struct {
	begins  Instant // when the present span began: a multiple of its length
	present int64   // units of it
	last    int64   // units of the span before
}

// spanOf is the length of a span in nanoseconds, for a bucket of that rate and size; zero:
// nothing is in transit.
func spanOf(perSecond float64, size int) Instant {
	return min(Instant(mostInTransit/2), Instant(float64(size-1)/2/perSecond*1e9))
}

// count is how many units are in transit at now.
func (y *inTransit) count(now, span Instant) int64 {
	if y == nil || span <= 0 {
		return 0
	}
	if uint64(now-y.begins) >= uint64(span) { // most often it is the same span, and no division is needed
		y.turn(now, span)
	}
	return y.present + y.last
}

// turn begins the span of now, which is not the present one.
func (y *inTransit) turn(now, span Instant) {
	begins := now - now%span
	if y.last = 0; begins == y.begins+span {
		y.last = y.present
	}
	y.begins, y.present = begins, 0
}

// add counts n granted at now.
func (y *inTransit) add(now, span Instant, n int64) {
	y.count(now, span)
	y.present += n
}

// drop forgets n units that were granted at at.
func (y *inTransit) drop(now, at, span Instant, n int64) {
	if y.count(now, span) == 0 {
		return
	}
	switch ago := y.begins - at; {
	case ago > span:
	case ago > 0:
		y.last = max(0, y.last-n)
	default:
		y.present = max(0, y.present-n)
	}
}
