package concurrency

import (
	"math"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	// freshPatience is for how long a request to a host that has answered nothing
	// yet counts. A refusal takes a round trip, and a new connection takes a few more;
	// together that is shorter nearly everywhere in the world. And a call that comes after
	// twenty long polls must go within a second.
	freshPatience = 750 * time.Millisecond

	// leastPatience is the same if answers are known to be quick. It is longer than a
	// refusal takes, because a packet may be lost, or this machine or the host may stall.
	leastPatience = time.Second

	// farLonger is how many times as long as a quick answer of its kind a
	// request has to take until it does not count any more, once something went wrong:
	// then the limit is for how much the host can work on. One in a hundred takes so long
	// if the times of answers are exponential, and none if they are all alike. It is not
	// used in a slow start, which looks for refusals, and those are quick.
	farLonger = 16

	// brake is how many old requests double the patience, so that a host that never
	// answers is not flooded. Each answer that comes, but late, raises this by one.
	brake = 16

	// spans is into how many generations a patience is divided: a request counts for at
	// least three quarters of it. More would make a Limit larger.
	spans = 4

	// genMask bounds generations. It leaves the upper bits of what Start returns free for
	// the caller; generations that are compared are far closer together.
	genMask = 1<<26 - 1

	// mostHeard is up to which number good answers are counted that say how long answers take.
	mostHeard = 8
)

// underway counts the requests that are under way. A request that is under way for longer
// than a refusal takes is old and does not count any more: it was accepted, and may be a long
// poll, or a call that waits for another one. Once something went wrong, it counts until it is
// under way for far longer than usual.
//
// How long a request is under way is known by its generation. Each generation lasts a quarter
// of the patience, and a request counts in its own and in the next three. The
// zero underway has no requests. Its owner guards it.
type underway struct {
	now    int32            // requests that count
	late   [spans - 1]int32 // those of them that started in earlier generations, the oldest last
	slow   int32            // good answers that took longer than leastPatience, up to provenGood
	old    int32            // requests that do not count any more, but may count again
	gone   int32            // requests that will never count again: one that was sent later was answered
	before uint32           // requests of this generation and later ones are not gone
	gen    uint32           // the present generation
	host   bool             // it is that of a host, not of a kind
	firmer uint8            // how often patience was doubled, because old requests turned out to matter
	heard  uint8            // good answers, up to the number that matters to quick
	older  uint8            // requests that were under way when Alone was true, and are still, at least
	since  meter.Instant    // when the present generation began; it is here because the fields above fill a word
	ease   float64          // what the limit was cut to when something last went wrong; zero: nothing went wrong, or the limit has doubled since
	quick  time.Duration    // a quarter of the good answers take no longer; zero: none yet
}

// Patience is for how long a request counts, if no request is old.
func (u *underway) Patience() time.Duration {
	switch {
	case u.quick == 0:
		return freshPatience
	case u.host || u.ease == 0:
		return leastPatience
	}
	return max(leastPatience, farLonger*u.quick)
}

// span is how long a generation lasts.
func (u *underway) span() meter.Instant {
	p := u.Patience()
	braked := 0.0
	if u.ease > 0 || u.heard == 0 {
		braked = float64(u.old) / float64(brake+u.slow)
	}
	if braked > 0 || u.firmer > 0 {
		x := math.Exp2(float64(u.firmer) + braked)
		p = time.Duration(min(float64(p)*x, float64(time.Hour)))
	}
	return meter.Instant(p / spans)
}

// start counts a request and returns its generation, for end.
func (u *underway) start(now meter.Instant) uint32 {
	u.age(now)
	if u.now == 0 {
		u.since = now
	}
	u.now++
	return u.gen
}

// end counts one request of that generation less. It reports whether it did count.
func (u *underway) end(gen uint32) (counted bool) {
	switch ago := u.ago(gen); {
	case u.overtaken(gen):
		u.gone--
		return false
	case ago >= spans && u.old > 0:
		u.old--
		return false
	case ago > 0:
		u.late[min(ago, spans-1)-1]--
	}
	u.now--
	return true
}

// ago is how many generations have begun since gen.
func (u *underway) ago(gen uint32) uint32 { return (u.gen - gen) & genMask }

// age ends the generations that are over.
func (u *underway) age(now meter.Instant) {
	for u.now > 0 && now >= u.turn() {
		u.next(u.turn())
	}
}

// next begins a generation. Those that have counted for four are old.
func (u *underway) next(since meter.Instant) {
	u.since = since
	young := u.now
	for _, n := range u.late {
		young -= n
	}
	u.old += u.late[spans-2]
	u.now -= u.late[spans-2]
	copy(u.late[1:], u.late[:])
	u.late[0] = young
	u.gen = (u.gen + 1) & genMask
}

// turn is when the present generation ends.
func (u *underway) turn() meter.Instant { return u.since + u.span() }

// Others is how many requests, besides one that has just started, may be the reason if that
// one is refused. Old requests are among them if it is not known how long answers take, or if
// even quick answers take long.
func (u *underway) Others() int {
	if u.heard == 0 || u.quick >= leastPatience {
		return int(u.now + u.old + u.gone - 1)
	}
	return int(u.now - 1)
}

// recount lets old requests count again, and doubles the patience, because a loss or a crowd
// showed that old requests matter.
func (u *underway) recount(now meter.Instant) {
	if u.old == 0 {
		return
	}
	u.firmer = min(u.firmer+1, 16)
	u.now += u.old
	u.old = 0
	u.late = [spans - 1]int32{spans - 2: u.now}
	u.gen = (u.gen + spans) & genMask // so that all of them are of earlier generations
	u.since = now + (spans-1)*u.span()
}

// overtake notes that a request is answered after took. If that is less than half of the
// patience, old requests were sent before it, and hang without keeping the host from serving
// others: they are gone. The patience is then as at first, unless cut says that something went
// wrong since the request was sent.
func (u *underway) overtake(now meter.Instant, took time.Duration, cut bool) {
	if !u.quickly(took) {
		return
	}
	if u.old > 0 {
		u.gone += u.old
		u.old, u.before = 0, u.gen-(spans-1)
	}
	if u.firmer > 0 && !cut {
		u.firmer, u.since = 0, min(u.since, now)
	}
}

// quickly reports whether a request that is answered after took overtakes those that are old.
func (u *underway) quickly(took time.Duration) bool { return took < u.Patience()/2 }

// overtaken reports whether a request of that generation is gone.
func (u *underway) overtaken(gen uint32) bool { return u.gone > 0 && u.ago(gen) > u.ago(u.before) }

// took notes how long a good answer took. quick is that of the lower quarter, so that if long
// polls and calls are of one kind, the calls decide what is usual.
func (u *underway) took(d time.Duration) {
	if d <= 0 {
		return
	}
	u.heard = min(u.heard+1, mostHeard)
	if d > leastPatience {
		u.slow = min(u.slow+1, provenGood)
	}
	if u.heard == mostHeard { // as mostly: the compiler divides by what it knows far sooner
		u.move(d, mostHeard)
		return
	}
	u.move(d, time.Duration(u.heard))
}

// move takes an answer that took d into quick. n says how many have come: the first ones move
// quick further.
func (u *underway) move(d, n time.Duration) {
	switch {
	case n == 1:
		u.quick = d
	case d > u.quick:
		u.quick = min(d, u.quick+u.quick/n)
	default:
		u.quick = max(d, u.quick/(n+3)*n)
	}
}
