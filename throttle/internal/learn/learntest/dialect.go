package learntest

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/learn"
)

// A dialect is what a server says of its limits.
type dialect struct {
	name string
	wait string // Retry-After of a refusal: "", "ceil", "floor", "exact", "one", "window", "date", "half"
}

var trainDialects = []dialect{
	{name: "bare"},
	{name: "bare"},
	{name: "retry-after", wait: "ceil"},
	{name: "retry-after", wait: "ceil"},
	{name: "retry-after 1", wait: "one"},
}

var testDialects = append([]dialect{
	{name: "retry-after floor", wait: "floor"},
	{name: "retry-after window", wait: "window"},
	{name: "retry-after date", wait: "date"},
	{name: "retry-after half", wait: "half"},
	{name: "json exact", wait: "exact"},
}, trainDialects...)

func ceilSecond(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

// says is the answer of s at an instant. cause refused the request; nil: a
// limiter did not.
func (d *dialect) says(s *server, at Instant, accepted bool, cause limiter, unix Instant) *learn.Answer {
	a := &learn.Answer{Date: int64(at+unix) / int64(time.Second)}
	if !accepted {
		a.Hint = d.hint(s, at, cause, unix)
	}
	return a
}

func (d *dialect) hint(s *server, at Instant, cause limiter, unix Instant) cooldown.Hint {
	wait := time.Duration(s.room(at) - at)
	if wait > 24*time.Hour { // a limit on requests at a time: nobody knows
		wait = time.Second
	}
	per := time.Second
	if cause != nil {
		per = cause.told().window
	}
	said := cooldown.Hint{Known: true}
	switch d.wait {
	case "ceil":
		said.Wait = ceilSecond(wait)
	case "floor":
		said.Wait = wait.Truncate(time.Second)
	case "exact":
		said.Wait = wait
	case "one":
		said.Wait = time.Second
	case "window":
		said.Wait = ceilSecond(per)
	case "half":
		said.Wait = wait / 2
	case "date": // the instant in whole seconds less the Date
		said.Wait = time.Duration(int64(at+unix)+int64(wait)).Truncate(time.Second) - time.Duration(at+unix).Truncate(time.Second)
	default:
		return cooldown.Hint{}
	}
	return said
}
