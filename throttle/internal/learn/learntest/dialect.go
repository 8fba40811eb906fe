package learntest

import (
	"math"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/learn"
)

// A dialect is what a server says of its limits.
type dialect struct {
	name    string
	wait    string // Retry-After of a refusal: "", "ceil", "floor", "exact", "one", "window", "date", "half"
	limits  string // "", "all", "refusals": on which answers limits are stated
	epoch   bool   // resets are instants in whole seconds, not spans
	windows bool   // the window is stated, too
	left    bool   // only what remains is stated
}

var trainDialects = []dialect{
	{name: "bare"},
	{name: "bare"},
	{name: "retry-after", wait: "ceil"},
	{name: "retry-after", wait: "ceil"},
	{name: "retry-after 1", wait: "one"},
	{name: "x delta", limits: "all"},
	{name: "x epoch", limits: "all", epoch: true},
	{name: "ietf 8", limits: "all", windows: true, wait: "ceil"},
	{name: "on refusals", limits: "refusals", wait: "ceil"},
}

var testDialects = append([]dialect{
	{name: "retry-after floor", wait: "floor"},
	{name: "retry-after window", wait: "window"},
	{name: "retry-after date", wait: "date"},
	{name: "retry-after half", wait: "half"},
	{name: "json exact", wait: "exact"},
	{name: "epoch on refusals", limits: "refusals", epoch: true},
	{name: "left only", limits: "all", left: true},
	{name: "x epoch, retry-after", limits: "all", epoch: true, wait: "ceil"},
}, trainDialects...)

func ceilSecond(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

// says is the answer of s at an instant. cause refused the request; nil: a
// limiter did not.
func (d *dialect) says(s *server, at Instant, accepted bool, cause limiter, unix Instant) *learn.Answer {
	a := &learn.Answer{Date: int64(at+unix) / int64(time.Second)}
	g := &headers.Signal{Throttled: !accepted}
	if !accepted {
		d.hint(g, s, at, cause, unix)
	}
	if d.limits == "all" || d.limits == "refusals" && !accepted {
		for _, l := range s.bound() {
			d.state(g, l.told(at), at, unix)
		}
		a.Absolute = d.epoch
	}
	if accepted && len(g.Limits) == 0 {
		return a
	}
	a.Signal = g
	return a
}

func (d *dialect) hint(g *headers.Signal, s *server, at Instant, cause limiter, unix Instant) {
	wait := time.Duration(s.room(at) - at)
	if wait > 24*time.Hour { // a limit on requests at a time: nobody knows
		wait = time.Second
	}
	per := time.Second
	if cause != nil {
		per = cause.told(at).window
	}
	said := headers.Opt[time.Duration]{Known: true}
	switch d.wait {
	case "ceil":
		said.Value = ceilSecond(wait)
	case "floor":
		said.Value = wait.Truncate(time.Second)
	case "exact":
		said.Value = wait
	case "one":
		said.Value = time.Second
	case "window":
		said.Value = ceilSecond(per)
	case "half":
		said.Value = wait / 2
	case "date": // the instant in whole seconds less the Date
		said.Value = time.Duration(int64(at+unix)+int64(wait)).Truncate(time.Second) - time.Duration(at+unix).Truncate(time.Second)
	default:
		return
	}
	g.RetryAfter = said
}

func (d *dialect) state(g *headers.Signal, t told, at, unix Instant) {
	l := headers.Limit{Unit: "requests", Remaining: headers.Opt[float64]{Value: t.left, Known: true}}
	if !d.left {
		l.Quota = headers.Opt[float64]{Value: math.Floor(t.limit), Known: true}
		reset := ceilSecond(time.Duration(t.reset - at))
		if d.epoch {
			reset = ceilSecond(time.Duration(t.reset+unix)) - time.Duration(at+unix).Truncate(time.Second)
		}
		l.Reset = headers.Opt[time.Duration]{Value: reset, Known: true}
		if d.windows {
			l.Window = headers.Opt[time.Duration]{Value: t.window, Known: true}
		}
	}
	g.Limits = append(g.Limits, l)
}
