package fleet

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/store"
)

// storeLimits returns rates as a Store keeps them. units names what their Unit
// fields point to; it begins with meter.Requests.
//
// A window above 64 units is a meter whose size and rate together stay within
// Limit: Burst + rate*(Per+slack) = Limit. That is a single number to keep, at
// the price of Burst/Limit of the rate. Up to 64, and where more than half of
// the limit may go at once, the units are remembered one by one or in slots.
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

// even sets the pace of those of ls, made of rates, that spread what is left of a
// window over what is left of its time, as the store last said what that is.
func even(ls []store.Limit, rates []meter.Spec, c Config, seen store.Seen, now time.Time) {
	i := 0
	for _, r := range rates {
		n := len(storeLimit(r, c, now))
		if r.Even && n == 2 {
			day, shape := ls[i], &ls[i+1]
			left, time := day.Size, day.Ends.Sub(now)
			if seen.Age < day.Per-time { // it was said in this window
				left = seen.Room(i, day)
			}
			shape.Rate = max(1, left) / max(time.Seconds(), 1e-3)
		}
		i += n
	}
}

// limitID names a limit by what may not change without a fresh start: its unit
// and its window. It is short, as stores keep it with every key.
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

// Storable returns an error if a store cannot keep k: more than 16
// limits (a small window counts twice, and so does InFlight), or a window beyond 400 days.
func Storable(k Key, c Config) error {
	ls, units := storeLimits(k.Rates, c, time.Now())
	ls, units = append(ls, flightLimits(k, len(units))...), append(units, flightUnit, waitUnit)
	d := store.Draw{Limits: ls}
	for _, unit := range units {
		d.Units = append(d.Units, store.UnitCost{Unit: unit})
	}
	return d.Validate()
}

// spread is how far from the grant a unit of r may reach the server.
func spread(r meter.Spec, c Config) time.Duration {
	if c.Spread > 0 {
		return c.Spread
	}
	return min(50*time.Millisecond, r.Per/20)
}

// partOf is l for one of n processes that cannot ask each other. Windows become
// meters of one unit at the n-th part of the rate, as n logs with less than one
// unit each would be none; a Calendar gives the n-th part of what is left.
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
		l.Size = max(math.Floor(max(0, l.Size-used)/k), 0.5) // half a unit holds none
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

// flightLimits are those of k besides its rates, of units that begin at unit.
func flightLimits(k Key, unit int) []store.Limit {
	most, per := int64(k.InFlight), flightSilence
	if k.Window != nil {
		most, per = k.Window.limit()
	}
	if most == 0 {
		return nil
	}
	l := store.Limit{ID: flightID, Kind: store.LogLimit, Unit: unit, Size: float64(most), Per: per}
	if most > meter.Exact || k.Window != nil { // one grain, however wide it is, or places are not found again
		l.Grain = l.Per / meter.Exact
	}
	return []store.Limit{l, {ID: waitID, Kind: store.LogLimit, Unit: unit + 1, Size: float64(store.MaxAmount), Per: waitPer, Grain: waitPer / meter.Exact}}
}

// isFlight reports whether l bounds or counts requests under way.
func isFlight(l store.Limit) bool {
	return l.Kind == store.LogLimit && (l.ID == flightID || l.ID == waitID)
}

// flightShort reports whether r refuses because too many are under way.
func flightShort(b store.Booking, r store.Booked) bool {
	return r.Outcome == store.Refused && r.Draw >= 0 && r.Limit >= 0 && isFlight(b.Draws[r.Draw].Limits[r.Limit])
}
