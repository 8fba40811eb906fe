package population

import (
	"net/http"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/bench/rival"
)

// A Caller is weir, or what programs use instead.
type Caller struct {
	Name  string
	start func(c *Case, base http.RoundTripper) (do func(*http.Request) (*http.Response, error), end func())
}

// Callers are all that run: weir first.
func Callers() []Caller {
	return []Caller{Weir(), library(rival.Adaptive()), library(rival.Shared()), library(rival.Loop()), library(rival.Failsafe())}
}

// Weir is this library, told nothing but how long calls may wait.
func Weir() Caller {
	return Caller{"weir", func(c *Case, base http.RoundTripper) (func(*http.Request) (*http.Response, error), func()) {
		var config weir.Config
		config.Throttle.MaxWait = c.Wait
		t, err := weir.New(base, config)
		if err != nil {
			panic(err)
		}
		return t.RoundTrip, func() { t.Close() }
	}}
}

// library is a rival that makes ten attempts. None of them bounds the sum of
// its waits.
func library(r rival.Rival) Caller {
	return Caller{r.Name, func(_ *Case, base http.RoundTripper) (func(*http.Request) (*http.Response, error), func()) {
		c, err := r.New(base, rival.Policy{Retries: 9, Base: time.Second, Max: 20 * time.Second, Failures: 5, OpenFor: 250 * time.Millisecond})
		if err != nil {
			panic(err)
		}
		return c.Do, c.Close
	}}
}
