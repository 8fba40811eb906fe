package queue

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Some of what a request waits for is certain: a configured budget, a pause by
// hand, a wait or a reset that the server stated. The rest was found or guessed:
// the rate that refusals show, pauses without a hint, what a host bears at a
// time. Estimates are made of both. Only the certain part refuses anybody; for
// the rest a request waits until its time is really over, as a better estimate
// may come.

// bulk is the shortest wait for which all who wait are looked through, when an
// account turns out to be short for so long. Those whose time is up sooner hear
// of it by their own clock, at most so much later.
const bulk = time.Second

// certain is when needs may be granted at the earliest, as far as that is
// certain, and the account that this is due to, nil if that is now. Those that
// are ahead count if q has still to queue.
func certain(now meter.Instant, q *Request, needs []Need, queue bool) (t meter.Instant, bound *Account) {
	from := now
	pause := func(a *Account) {
		if sure := a.sure(); sure > from {
			from, bound = sure, a
		}
	}
	pause(&q.Group.Gate)
	if q.Host != nil {
		pause(&q.Host.Gate)
	}
	doubts := q.By != nil && q.By.Doubts()
	for i := range needs {
		if d := &needs[i]; d.N != 0 && !(doubts && d.doubtful(q)) {
			pause(d.Account)
		}
	}
	if doubts {
		if u, a := q.By.Barred(now); u > from {
			from, bound = u, a
		}
	}
	t = from
	for i := range needs {
		d := &needs[i]
		if doubts && d.doubtful(q) {
			continue
		}
		m, ok := d.Account.Meter.(interface {
			Sure(now, from meter.Instant, ahead, n int64) meter.Instant
		})
		if d.N == 0 || !ok {
			continue
		}
		var ahead int64
		if l := d.Account.waitlist; l != nil && queue {
			ahead = l.ahead(q)
		}
		if u := m.Sure(now, from, ahead, d.N); u > t && u != meter.Never {
			t, bound = u, d.Account
		}
	}
	return t, bound
}

// doubtful reports whether nothing of d's account is certain for q if its owner has
// doubts: all but what is configured and what is q's alone.
func (d *Need) doubtful(q *Request) bool {
	return d.Account.Label.Rate == nil && d.Account != q.Alone
}
