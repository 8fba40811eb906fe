package throttle

import (
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/cooldown"
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
