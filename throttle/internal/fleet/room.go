package fleet

import (
	"math"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/store"
)

// Left is a guess from the store's last answers: how many of the units that cost
// draws it would book at once, and how long it takes until all are there again.
func (f *Fleet) Left(keys []Key, cost map[string]int64) (units int64, full time.Duration) {
	now, left := time.Now(), float64(math.MaxInt64/2)
	for _, k := range keys {
		ls, names := storeLimits(k.Rates, f.c, now)
		s := f.recall(k.ID, len(ls)+len(flightLimits(k, 0)), now)
		for i, l := range ls {
			if meter.CostOf(cost, names[l.Unit]) == 0 {
				continue
			}
			room := s.Room(i, l)
			left = min(left, room+l.Tolerance())
			switch l.Kind {
			case store.MeterLimit:
				full = max(full, drain(l, l.Size-room))
			case store.CalendarLimit:
				full = max(full, l.Ends.Sub(now))
			}
		}
	}
	return int64(max(0, left)), full
}

// drain is how long a Meter takes to drain units.
func drain(l store.Limit, units float64) time.Duration {
	s := min(units/l.Rate, store.MaxHorizon.Seconds())
	return time.Duration(math.Ceil(s*1e6)) * time.Microsecond
}
