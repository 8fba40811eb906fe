package throttle

import (
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/cooldown"
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
	c.Start()
	return c
}

func stating(left, size float64, reset time.Duration, m headers.ResetMeans) headers.Limit {
	return headers.Limit{Quota: known(size), Remaining: known(left), Reset: known(reset), ResetMeans: m, Source: "x"}
}

func ref[T any](v T) *T { return &v }

func known[T any](v T) headers.Opt[T] { return headers.Opt[T]{Value: v, Known: true} }
