package throttle

import (
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/learn"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
	"github.com/weirhttp/weir/throttle/internal/stated"
)

// at0 is an instant of pure tests.
func at0(d time.Duration) instant { return instant(time.Hour + d) }

// pausedUntil is a pause that began a second before and is over then.
func pausedUntil(until instant) *cooldown.Cooldown {
	c := new(cooldown.Cooldown)
	c.Recall(until.Add(-sec), until, time.Hour, "")
	return c
}

// askedUntil is that, and a request asks whether it is over.
func askedUntil(until instant) *cooldown.Cooldown {
	c := pausedUntil(until)
	c.Start(until)
	return c
}

func stating(left, size float64, reset time.Duration, m headers.ResetMeans) headers.Limit {
	return headers.Limit{Quota: known(size), Remaining: known(left), Reset: known(reset), ResetMeans: m, Source: "x"}
}

func known[T any](v T) headers.Opt[T] { return headers.Opt[T]{Value: v, Known: true} }

// learning1 is a learner of one credential at one host, without a server.
func learning1() *learner {
	s := &scope{}
	t := &learnTerms{Terms: stated.Terms{MaxPause: 5 * time.Minute}, words: newLearnWords(), jitter: func() float64 { return 0 }}
	return newLearner(t, s, newHostStart(t.words))
}

const hourIn = instant(time.Hour)

// under starts n requests to endpoint k and returns the ticket of the last.
func under(k *endpoint, n int, at instant) *ticket {
	var m, host, own meter.Token
	for range n {
		m, host, own = k.Take(at, 1, true), k.learner.host.Take(at, 1, true), k.learner.Take(at, 1, true)
	}
	return &ticket{endpoint: k, sent: at, permit: &placed{Permit: queue.Permit{Needs: []queue.Need{{Account: &k.account, N: 1, Token: m}, {Account: &k.learner.host.account, N: 1, Token: host}, {Account: &k.learner.account, N: 1, Token: own}}}}}
}

// believing is evidence of one limit, as of hourIn; without a burst it may be one of
// windows. It was found ten seconds ago.
func believing(units float64, per time.Duration, burst float64) *evidence {
	e := new(evidence)
	e.last = hourIn
	e.Recall(hourIn-instant(10*time.Second), learn.Limit{Units: units, Per: per, Burst: burst})
	return e
}
