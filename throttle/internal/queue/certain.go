package queue

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Some reasons why a request waits are certain: a configured budget, a pause by
// hand, a wait or a reset that the server stated. The others were found or guessed:
// a rate that refusals show, pauses without a hint, how many requests a host serves at a
// time. Estimates use both. But a request is refused only because of certain ones. For
// the others it waits until its time is over, because a better estimate
// may come.

// bulk is the shortest certain wait because of which all waiters of an account are looked
// at. If the wait is shorter, waiters whose time ends before are refused when it does, which
// is later by less than bulk.
const bulk = time.Second

// certain is the earliest instant at which needs may be granted, as far as that is
// certain, and the account that is the reason, nil if that is now. Waiters that
// are ahead count if q is still to be queued.
func certain(now meter.Instant, q *Request, needs []Need, queue bool) (t meter.Instant, bound *Account) {
	from := now
	pause := func(a *Account) {
		if sure := a.Sure(); sure > from {
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
		if d.N == 0 || doubts && d.doubtful(q) {
			continue
		}
		if u := d.sure(now, from, q, queue); u > t && u != meter.Never {
			t, bound = u, d.Account
		}
	}
	return t, bound
}

// sure is the earliest instant from from on at which d may be granted, as far as its meter is certain
// of that; Never: it is not. Waiters that are ahead of q count if it is still to be queued.
func (d *Need) sure(now, from meter.Instant, q *Request, queue bool) meter.Instant {
	m, ok := d.Account.Meter.(interface {
		Sure(now, from meter.Instant, ahead, n int64) meter.Instant
	})
	if !ok {
		return meter.Never
	}
	var ahead int64
	if l := d.Account.waitlist; l != nil && queue {
		ahead = l.ahead(q)
	}
	return m.Sure(now, from, ahead, d.N)
}

// doubtful reports whether nothing about d's account is certain for q if q's owner has doubts.
// That is so unless it is a configured rate or q's Alone.
func (d *Need) doubtful(q *Request) bool {
	return d.Account.Label.Rate == nil && d.Account != q.Alone
}
