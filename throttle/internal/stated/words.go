package stated

import (
	"strconv"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/words"
)

// Words describe what is left. zero is what the zero time.Time is on the wall.
func (q *Limit) Words(now meter.Instant, zero time.Time) string {
	f := q.Facts(now)
	if f.Asking {
		return "one request asks what is left" + q.called() + ", after the reset said by " + words.Field(q.Source)
	}
	s := words.Amount(max(0, f.Level))
	if f.Size.Known {
		s += " of " + words.Amount(f.Size.Value)
	}
	if u := q.ID.Unit; u != "" && u != meter.Requests {
		s += " " + u
	}
	s += " left" + q.called()
	if f.Reset.Known {
		s += " until " + words.Clock(now.Time(), zero, f.Reset.Value.Time())
	} else if f.Flows {
		s += ", " + words.Amount(f.Rate) + " more per second"
	}
	return s + ", said by " + words.Field(q.Source)
}

func (q *Limit) called() string {
	if q.ID.Name == "" {
		return ""
	}
	return " of " + strconv.Quote(q.ID.Name)
}
