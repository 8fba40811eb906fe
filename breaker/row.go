package breaker

import "time"

// A run of failures says that the host is down if it is one in the order in which
// requests were sent. The order in which they end says less:
//
//   - Where failures take longer than answers, those of a burst end with nothing but
//     failures. So a failure is in no run if a request that succeeded was sent
//     after it.
//   - Where failures come at once, a burst begins with nothing but failures. So a
//     run opens the circuit only when its first request was sent so long ago that
//     those sent with it have been answered.
//   - Those who repeat their requests are those who failed. If some requests always
//     fail, whatever the host does, nothing else is left at the end of a burst. So
//     an attempt is in no run if its request failed before, and one that succeeded
//     was sent after that.
//
// When a host goes down, its run begins with the first request that it fails. All of
// this needs the Wire of package retry below the Meter, because only that knows when
// an attempt was sent. Without it runs are in the order in which attempts end. So they
// are with a FailureRate, and where attempts end in silence, which is judged by route.

// row is the failures since the newest success. Its circuit's mu guards it.
type row struct {
	n     int       // how many
	began time.Time // when the first of them was sent; zero: nobody knows
	good  time.Time // when the newest request was sent that succeeded

	usual time.Duration // how long those that succeeded took at most
}

// ends notes a success.
func (r *row) ends(v verdict) {
	r.n, r.usual = 0, max(r.usual, v.took)
	if v.sent.After(r.good) {
		r.good = v.sent
	}
}

// continues counts a failure and reports whether it is one of a run.
func (c *circuit) continues(v verdict, now time.Time) bool {
	if !v.sent.IsZero() && !v.silent && !c.cfg.classic {
		good, about := c.row.good, v.heard.at
		if about.After(good) {
			good = about
		}
		if !v.sent.After(good) {
			c.chance.expect() // the host has failed before it last succeeded
			return false
		}
		if now.Sub(v.sent) > max(v.usual, c.row.usual) && !about.IsZero() { // newer ones have been heard, but not noted
			about = about.Add(tick)
		}
		if !v.first.After(good) || !v.first.After(about) {
			return false
		}
	}
	if c.row.n++; c.row.n == 1 {
		c.row.began = v.sent
	}
	return true
}

// ripe reports whether those who were sent with the first of a run have had the time
// that answers usually take. No more than leastDue is waited for: until then a host
// that is down gets all requests.
func (c *circuit) ripe(v verdict, now time.Time) bool {
	return c.cfg.classic || c.row.began.IsZero() || now.Sub(c.row.began) >= min(max(v.usual, c.row.usual), leastDue)
}
