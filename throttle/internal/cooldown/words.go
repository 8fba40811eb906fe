package cooldown

import (
	"fmt"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/words"
)

// Words describe the pause. zero is what the zero time.Time is on the wall.
func (c State) Words(now meter.Instant, zero time.Time) string {
	if c.Until <= now {
		return "one request asks whether the pause is over, " + c.Said()
	}
	s := "paused until " + words.Clock(now.Time(), zero, c.Until.Time()) + ", "
	asked := c.Sure.Sub(c.Since)
	switch over := c.Until.Sub(c.Sure); {
	case c.Source == "":
		return s + "a guess" + c.refusalsBefore()
	case c.Sure != 0 && over >= max(time.Second, asked/10): // less is not worth a word
		return s + words.Round(over).String() + " longer than the " + words.Round(asked).String() + " " + c.Said() + ", " + c.whyLonger(over)
	}
	return s + c.Said()
}

// whyLonger is why a pause is so much longer than the server asked for.
func (c State) whyLonger(over time.Duration) string {
	switch {
	case c.InVain > 0 && over > MostSlack:
		return "a guess" + c.refusalsBefore()
	case c.Slack > over/2:
		return "as such hints were too short before"
	}
	return "so that not all come back at once"
}

// refusalsBefore is the refusals that a guess follows, in words.
func (c State) refusalsBefore() string {
	if c.InVain == 0 {
		return " after a refusal"
	}
	return fmt.Sprintf(" after %d refusals in a row", c.InVain+1)
}

// Said is where the pause comes from, in words.
func (c State) Said() string {
	said := "guessed from refusals"
	if c.Source != "" {
		said = "said by " + words.Field(c.Source)
	}
	if c.Capped {
		said += ", shortened: it asked for longer"
	}
	return said
}
