package cooldown_test

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

// TestAPauseInWords: until when, who said so, and why it is longer than that.
func TestAPauseInWords(t *testing.T) {
	const now = meter.Instant(time.Hour)
	at := func(d time.Duration) meter.Instant { return now.Add(d) }
	for want, c := range map[string]cooldown.State{
		"paused until 13:00:30, said by Retry-After":                                                             {Until: at(30 * time.Second), Sure: at(30 * time.Second), Since: now, Source: "retry-after"},
		"paused until 13:00:30, said by the body, shortened: it asked for longer":                                {Until: at(30 * time.Second), Since: now, Source: "body", Capped: true},
		"paused until 13:00:01, a guess after a refusal":                                                         {Until: at(time.Second), Since: now},
		"paused until 13:00:01, a guess after 3 refusals in a row":                                               {Until: at(time.Second), Since: now, InVain: 2},
		"paused until 13:00:12, 2s longer than the 10s said by Retry-After, so that not all come back at once":   {Until: at(12 * time.Second), Sure: at(10 * time.Second), Since: now, Source: "Retry-After"},
		"paused until 13:00:12, 2s longer than the 10s said by Retry-After, as such hints were too short before": {Until: at(12 * time.Second), Sure: at(10 * time.Second), Since: now, Source: "Retry-After", Slack: 1500 * time.Millisecond},
		"paused until 13:00:20, 10s longer than the 10s said by Retry-After, a guess after 2 refusals in a row":  {Until: at(20 * time.Second), Sure: at(10 * time.Second), Since: now, Source: "Retry-After", InVain: 1},
		"one request asks whether the pause is over, said by Retry-After":                                        {Until: now, Since: now, Source: "Retry-After"},
		"one request asks whether the pause is over, guessed from refusals":                                      {Until: now, Since: now},
	} {
		if got := c.Words(now, time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
