package concurrency

import (
	"math"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	// freshPatience is for how long a request to a host that has answered nothing
	// yet counts as under way. A refusal takes a round trip, and to set up a
	// connection a few more: nearly all over the world, less than that. And the
	// call that comes after twenty long polls must go within a second.
	freshPatience = 750 * time.Millisecond

	// leastPatience is the same where answers are known to be quick. It is longer
	// because a packet may be lost, and this machine or the host stall.
	leastPatience = time.Second

	// farLonger is how many times as long as a quick answer of its kind a
	// request has to take to stop counting, once something went wrong: then it is
	// learned how much the host can work on. One in a hundred does where the
	// times of answers are exponential, none where they are even. It is not for
	// a slow start, which is there to learn of refusals, and those are quick.
	farLonger = 16

	// brake is how many that do not count any more make patience twice as long,
	// so that a host that never answers gets no flood. Where answers come late, but
	// come, each of them allows one more.
	brake = 16

	// spans is in how many steps a patience passes: a request counts for at
	// least three quarters of it.
	spans = 4

	genMask = 1<<26 - 1
)

// underway counts the requests that are under way. One that is so for longer than a
// refusal takes does not count any more: it was accepted, and may be a long poll or a call
// that waits for another. Once something went wrong, it counts until it is under way for
// far longer than usual. How long a request is under way is known by its generation. Each
// lasts a quarter of the patience; a request counts in its own and in the next three. The
// zero underway has none. Its owner guards it.
type underway struct {
	now    int32            // that count
	late   [spans - 1]int32 // of these, those of the generations before, the oldest last
	slow   int32            // good answers that took longer than leastPatience, up to provenGood
	old    int32            // that do not count any more, but may count again
	gone   int32            // that never will: one sent later was answered
	before uint32           // the generation since which those are old that do not count any more
	gen    uint32           // the present generation
	host   bool             // of a host, not of a kind
	firmer uint8            // how often patience doubled because those that did not count did matter
	heard  uint8            // good answers, as far as they matter to quick
	older  uint8            // that were under way when the last one started alone, and are still, at least
	since  meter.Instant    // when the present generation began; it stands here as the fields above fill a word
	ease   float64          // what the limit was cut to by the last loss; zero: nothing went wrong since it was twice that
	quick  time.Duration    // what a quarter of the good answers take at most; zero: none yet
}

// patience is for how long a request counts, as long as nobody hangs.
func (u *underway) patience() time.Duration {
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
	p := u.patience()
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

// start counts a request and returns its generation, which end wants to know.
func (u *underway) start(now meter.Instant) uint32 {
	u.age(now)
	if u.now == 0 {
		u.since = now
	}
	u.now++
	return u.gen
}

// end ends what start began.
func (u *underway) end(gen uint32) {
	switch ago := u.ago(gen); {
	case u.overtaken(gen):
		u.gone--
		return
	case ago >= spans && u.old > 0:
		u.old--
		return
	case ago > 0:
		u.late[min(ago, spans-1)-1]--
	}
	u.now--
}

// ago is how many generations have begun since gen.
func (u *underway) ago(gen uint32) uint32 { return (u.gen - gen) & genMask }

// age ends the generations that are over.
func (u *underway) age(now meter.Instant) {
	for u.now > 0 && now >= u.turn() {
		u.since = u.turn()
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
}

// turn is when the present generation ends.
func (u *underway) turn() meter.Instant { return u.since + u.span() }

// Others is how many beside one that just started may be why it is refused. As
// long as it is not known what is usual, or if even quick answers take long, those that
// do not count are among them.
func (u *underway) Others() int {
	if u.heard == 0 || u.quick >= leastPatience {
		return int(u.now + u.old + u.gone - 1)
	}
	return int(u.now - 1)
}

// recount lets those that do not count any more count again, with all others and
// for twice as long: it was seen that they matter.
func (u *underway) recount(now meter.Instant) {
	if u.old == 0 {
		return
	}
	u.firmer = min(u.firmer+1, 16)
	u.now += u.old
	u.old = 0
	u.late = [spans - 1]int32{spans - 2: u.now}
	u.gen = (u.gen + spans) & genMask // the first to be older than these
	u.since = now + (spans-1)*u.span()
}

// overtake notes that a request is answered after took. If that is less time than those have
// had that do not count any more, they were sent before it, and none of them holds the host
// up. Nor do losses from before it tell of them; cut says that one has come since it was sent.
func (u *underway) overtake(now meter.Instant, took time.Duration, cut bool) {
	if took >= u.patience()/2 {
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

// overtaken reports whether a request of that generation hangs, while others do not.
func (u *underway) overtaken(gen uint32) bool { return u.gone > 0 && u.ago(gen) > u.ago(u.before) }

// took notes how long a good answer took. quick follows the lower quarter: where
// long polls and calls share a kind it is the calls that say what is usual.
func (u *underway) took(d time.Duration) {
	if d <= 0 {
		return
	}
	u.heard = min(u.heard+1, 8)
	if d > leastPatience {
		u.slow = min(u.slow+1, provenGood)
	}
	n := time.Duration(u.heard) // the first answers say more; whole numbers, as each answer pays for this
	switch {
	case n == 1:
		u.quick = d
	case d > u.quick:
		u.quick = min(d, u.quick+u.quick/n)
	default:
		u.quick = max(d, u.quick/(n+3)*n)
	}
}
