package fleet

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/store"
)

// storeLimits returns rates as a Store keeps them. Their Unit fields are indexes into units,
// whose first element is meter.Requests.
//
// A window of more than meter.Exact units is kept as a meter whose size and rate together stay
// within Limit: Burst + rate*(Per+slack) = Limit. That is only one number, but the rate is
// lower by Burst/Limit. A smaller window, or one of which more than half may go at once, is
// kept as a log, in which units have a date each or share one.
func storeLimits(rates []meter.Spec, c Config, now time.Time) (ls []store.Limit, units []string) {
	units = []string{meter.Requests}
	for _, r := range rates {
		u := slices.Index(units, r.Unit)
		if u < 0 {
			u, units = len(units), append(units, r.Unit)
		}
		for _, l := range storeLimit(r, c, now) {
			l.ID, l.Unit = limitID(ls, l.Kind, r), u
			ls = append(ls, l)
		}
	}
	return ls, units
}

// even sets the rate of those limits in ls that spread the units left of a window over the
// time left of it (meter.Spec.Even), by what the store last said is left. ls was made of rates.
func even(ls []store.Limit, rates []meter.Spec, c Config, seen store.Seen, now time.Time) {
	i := 0
	for _, r := range rates {
		n := len(storeLimit(r, c, now))
		if r.Even && n == 2 {
			day, shape := ls[i], &ls[i+1]
			left, time := day.Size, day.Ends.Sub(now)
			if seen.Age < day.Per-time { // the store said it in this window
				left = seen.Room(i, day)
			}
			shape.Rate = max(1, left) / max(time.Seconds(), 1e-3)
		}
		i += n
	}
}

// limitID names a limit by its window and its unit: if one of these changes, counting begins
// anew. The name is short, because stores keep it with every key.
func limitID(ls []store.Limit, kind store.LimitKind, r meter.Spec) string {
	id := shortly(r.Per)
	if unit := r.Unit; unit != meter.Requests {
		id += unit[:min(len(unit), 40)]
	}
	for n := 1; ; n++ {
		name := id
		if n > 1 { // another rate of the same window
			name += "#" + strconv.Itoa(n)
		}
		if !slices.ContainsFunc(ls, func(l store.Limit) bool { return l.Kind == kind && l.ID == name }) {
			return name
		}
	}
}

func storeLimit(r meter.Spec, c Config, now time.Time) []store.Limit {
	size, burst := float64(r.Limit), float64(r.Burst)
	shape := store.Limit{Kind: store.MeterLimit, Size: burst, Rate: r.PerSecond(), Credit: -1}
	if r.Bucket {
		return []store.Limit{shape}
	}
	if r.Align != nil {
		here := now.In(r.Align)
		start, end := meter.WindowStart(here, r.Per), meter.WindowEnd(here, r.Per)
		day := store.Limit{Kind: store.CalendarLimit, Size: size, Per: end.Sub(start), Ends: end}
		if r.Burst >= r.Limit {
			return []store.Limit{day}
		}
		return []store.Limit{day, shape}
	}
	per := r.Per + spread(r, c) + c.Lease
	if r.Limit > meter.Exact && 2*r.Burst <= r.Limit {
		rate := (size - burst) / per.Seconds()
		return []store.Limit{{Kind: store.MeterLimit, Size: burst, Rate: rate, Credit: size - burst}}
	}
	log := store.Limit{Kind: store.LogLimit, Size: size, Per: per}
	if r.Limit > meter.Exact {
		log.Grain = per / meter.Exact
	}
	if r.Burst >= r.Limit {
		return []store.Limit{log}
	}
	return []store.Limit{log, shape}
}

// Storable returns an error if a store cannot keep k: it has more than 16 limits (a small
// window counts as two, and InFlight as three), or a window of more than 400 days.
func Storable(k Key, c Config) error {
	ls, units := storeLimits(k.Rates, c, time.Now())
	ls, units = append(ls, flightLimits(k, len(units))...), append(units, flightUnit, waitUnit, startUnit)
	d := store.Draw{Limits: ls}
	for _, unit := range units {
		d.Units = append(d.Units, store.UnitCost{Unit: unit})
	}
	return d.Validate()
}

// spread is how long after its grant a unit of r may reach the server: Config.Spread.
func spread(r meter.Spec, c Config) time.Duration {
	if c.Spread > 0 {
		return c.Spread
	}
	return min(50*time.Millisecond, r.Per/20)
}

// partOf is the share of l for one of n processes, while the store is gone. A window becomes a
// meter of one unit at the n-th part of the rate, because a log with less than one unit would
// grant nothing. Of a Calendar it is the n-th part of what is left.
func partOf(l store.Limit, n int, used float64) store.Limit {
	k := float64(n)
	switch l.Kind {
	case store.MeterLimit:
		l.Rate /= k
		l.Size = max(1, l.Size/k)
		l.Credit = -1
	case store.LogLimit:
		l.Rate = l.Size / l.Per.Seconds() / k
		l.Kind, l.Size, l.Credit = store.MeterLimit, 1, -1
		l.ID = "l" + l.ID
	case store.CalendarLimit:
		l.Size = max(math.Floor(max(0, l.Size-used)/k), 0.5) // half a unit grants nothing
	}
	return l
}

// shortly is d without its zero parts: 1h, not 1h0m0s.
func shortly(d time.Duration) string {
	switch {
	case d%time.Hour == 0:
		return strconv.FormatInt(int64(d/time.Hour), 10) + "h"
	case d%time.Minute == 0:
		return strconv.FormatInt(int64(d/time.Minute), 10) + "m"
	}
	return d.String()
}

// flightLimits are the two Logs of k's requests under way, and the count of places given, whose
// units are unit and the next two; nil: k does not bound them.
func flightLimits(k Key, unit int) []store.Limit {
	most, per := int64(k.InFlight), flightSilence
	if k.Window != nil {
		most, per = k.Window.limit()
	}
	if most == 0 {
		return nil
	}
	l := store.Limit{ID: flightID, Kind: store.LogLimit, Unit: unit, Size: float64(most), Per: per}
	if most > meter.Exact || k.Window != nil { // the grain of a Window must not change with its width, or units that are given back are not found
		l.Grain = l.Per / meter.Exact
	}
	return []store.Limit{l,
		{ID: waitID, Kind: store.LogLimit, Unit: unit + 1, Size: float64(store.MaxAmount), Per: waitPer, Grain: waitPer / meter.Exact},
		{ID: startID, Kind: store.CalendarLimit, Unit: unit + 2, Size: float64(store.MaxAmount), Per: startPer, Ends: time.Unix(0, 0)}}
}

// isFlight reports whether l is one of flightLimits.
func isFlight(l store.Limit) bool {
	return l.ID == flightID || l.ID == waitID || l.ID == startID
}

// flightShort reports whether r refuses because too many are under way.
func flightShort(b store.Booking, r store.Booked) bool {
	return r.Outcome == store.Refused && r.Draw >= 0 && r.Limit >= 0 && isFlight(b.Draws[r.Draw].Limits[r.Limit])
}
