package cooldown

import (
	"math"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A Question is one that only the answer to a request can settle: whether a pause is over, or
// how much a new window holds. While it is open one request at a time is sent to ask; if that
// hangs, another is. The zero Question is closed.
type Question struct {
	open  bool
	asks  int16         // requests under way that ask
	again meter.Instant // when the next request may ask, if none is answered before
	first meter.Instant // when the first of those that ask was sent, since the question was opened; zero: none was
}

const (
	// patience is how long a request may take to ask whether a pause is over, before another one
	// does. A refusal comes within a few round trips. So a request that takes a second was
	// accepted or hangs, and others need not wait for it.
	patience = time.Second
	// asking is patience at the end of a pause. It is a little more, as many windows last a second
	// from their first request on: others would come just as that one's window ends, and nobody
	// could tell to which window they belong. With a second, one of eight hosts with such windows
	// whose answers take long was taken for one that bears ten requests at a time.
	asking = patience + patience/10

	// quietFor is how many times as long as the slowest refusal lately took a request has to be
	// under way so that it was not refused. A server takes longer to refuse when it is busy, but
	// seldom ten times as long. With 4, a bucket of 500 a second refused 16 of a thousand, with 6
	// and 10 15 and 14, and all three served hosts whose answers take long. Where the network is slow,
	// so that most of the time is not the server's, twice as long and patience are enough: with ten
	// times as long there, too, .58 instead of .77 of the rate is used of a host that is half a second
	// away and works for 5 s.
	quietFor = 10
	// quietMore is added to that: schedulers and networks may hold up any answer for so long.
	quietMore = 50 * time.Millisecond
)

// Quiet is for how long a request has to be under way so that it was most likely not refused, where
// the slowest refusal lately took trip. Limiters refuse at once, also where what they accept
// takes minutes.
func Quiet(trip time.Duration) time.Duration { return min(quietFor*trip, 2*trip+patience) + quietMore }

// Unrefused is Quiet where perhaps no refusal was heard yet: then trip is zero.
func Unrefused(trip time.Duration) time.Duration {
	if trip == 0 {
		return patience
	}
	return Quiet(trip)
}

// Slowest is how long the slowest refusal lately took, after one that took trip.
func Slowest(before, trip time.Duration) time.Duration { return max(trip, before-before/8) }

// Open lets the next request ask.
func (q *Question) Open() { q.open, q.first = true, 0 }

// Close ends the question: it is answered. A request that is under way to ask still
// calls Done.
func (q *Question) Close() { q.open = false }

// IsOpen reports whether an answer is needed.
func (q *Question) IsOpen() bool { return q.open }

// Asked is until when others wait for the answer to the request that asks; zero: they do not.
func (q *Question) Asked(now meter.Instant) meter.Instant {
	if q.asks == 0 || q.again <= now {
		return 0
	}
	return q.again
}

// Ask is called when a request starts. It reports whether this request asks; then the caller
// calls Done(true) when it ends. If that takes longer than patience, the next request asks.
func (q *Question) Ask(now meter.Instant, patience time.Duration) bool {
	if !q.open || q.Asked(now) != 0 || q.asks == math.MaxInt16 {
		return false
	}
	if q.asks == 0 || q.first == 0 {
		q.first = now
	}
	q.asks++
	q.again = now.Add(patience)
	return true
}

// Done notes the end of a request. asks is what Ask returned for it.
func (q *Question) Done(asks bool) {
	if asks && q.asks > 0 {
		q.asks--
	}
}

// At is when a request may go: now, or when the pause is over. meter.Never means: when the
// request that asks is answered, or at Again.
func (c *Cooldown) At(now meter.Instant) meter.Instant {
	switch {
	case c == nil:
		return now
	case c.until > now:
		return c.until
	case c.question.open && c.question.Asked(now) != 0:
		return meter.Never
	}
	return now
}

// Again is when another request may ask, if the one that asks is not answered before.
func (c *Cooldown) Again() meter.Instant { return c.question.again }

// Opens is when the next request may ask whether the pause is over; zero: none has to, or one
// does.
func (c *Cooldown) Opens() meter.Instant {
	if c == nil || !c.question.open || c.question.asks > 0 {
		return 0
	}
	return c.until
}

// Start is called when a request is let through. It reports whether this request asks; then
// the caller calls Done(true) when it ends. Once one that asks has been under way for longer than a
// refusal takes, the pause is over.
func (c *Cooldown) Start(now meter.Instant) (asks bool) {
	if c == nil {
		return false
	}
	q, heard := &c.question, max(asking, Quiet(c.trip))
	if q.open && q.asks > 0 && q.first != 0 && now.Sub(q.first) >= heard {
		c.served, c.capped = true, false
		q.Close()
	}
	if asks = q.Ask(now, asking); asks {
		q.again = min(q.again, q.first.Add(heard))
	}
	return asks
}

// Done notes the end of a request. asks is what Start returned for it.
func (c *Cooldown) Done(asks bool) {
	if c != nil {
		c.question.Done(asks)
	}
}

// Sure is before when the server said that nothing may start; zero: it did not say.
func (c *Cooldown) Sure() meter.Instant {
	if c == nil {
		return 0
	}
	return c.sure
}

// Until is when the pause is over, or was.
func (c *Cooldown) Until() meter.Instant {
	if c == nil {
		return 0
	}
	return c.until
}

// Over reports whether a request was served since the last refusal, or none was refused.
func (c *Cooldown) Over() bool { return c == nil || c.served }

// Ended reports whether a request was served since the last refusal, and there was one.
func (c *Cooldown) Ended() bool { return c != nil && c.served }
