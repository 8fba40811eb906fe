package throttle

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// storeLimits returns rates as a Store keeps them. units names what their Unit
// fields point to; it begins with requests.
//
// A window above 64 units is a meter whose size and rate together stay within
// Limit: Burst + rate*(Per+slack) = Limit. That is a single number to keep, at
// the price of Burst/Limit of the rate. Up to 64, and where more than half of
// the limit may go at once, the units are remembered one by one or in slots.
func storeLimits(rates []Rate, c FleetConfig, now time.Time) (ls []store.Limit, units []string) {
	units = []string{requests}
	for _, r := range rates {
		u := unitIndex(units, r.unit())
		if u < 0 {
			u, units = len(units), append(units, r.unit())
		}
		for _, l := range storeLimit(r, c, now) {
			l.ID, l.Unit = limitID(ls, l.Kind, r), u
			ls = append(ls, l)
		}
	}
	return ls, units
}

// limitID names a limit by what may not change without a fresh start: its unit
// and its window. It is short, as stores keep it with every key.
func limitID(ls []store.Limit, kind store.LimitKind, r Rate) string {
	id := shortly(r.Per)
	if unit := r.unit(); unit != requests {
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

func storeLimit(r Rate, c FleetConfig, now time.Time) []store.Limit {
	size, burst := float64(r.Limit), float64(r.burst())
	shape := store.Limit{Kind: store.MeterLimit, Size: burst, Rate: r.perSecond(), Credit: -1}
	if r.Bucket > 0 {
		return []store.Limit{shape}
	}
	if r.Align != nil {
		here := now.In(r.Align)
		start, end := windowStart(here, r.Per), windowEnd(here, r.Per)
		day := store.Limit{Kind: store.CalendarLimit, Size: size, Per: end.Sub(start), Ends: end}
		if r.burst() >= r.Limit {
			return []store.Limit{day}
		}
		return []store.Limit{day, shape}
	}
	per := r.Per + r.spread(c) + c.Lease
	if r.Limit > exact && 2*r.burst() <= r.Limit {
		rate := (size - burst) / per.Seconds()
		return []store.Limit{{Kind: store.MeterLimit, Size: burst, Rate: rate, Credit: size - burst}}
	}
	log := store.Limit{Kind: store.LogLimit, Size: size, Per: per}
	if r.Limit > exact {
		log.Grain = per / exact
	}
	if r.burst() >= r.Limit {
		return []store.Limit{log}
	}
	return []store.Limit{log, shape}
}

// storable returns an error if a Store cannot keep b's rates: more than 16
// limits (a small window counts twice), or a window beyond 400 days.
func storable(field string, b Budget, c FleetConfig) error {
	ls, units := storeLimits(b.Rates, c, time.Now())
	d := store.Draw{Limits: ls}
	for _, unit := range units {
		d.Units = append(d.Units, store.UnitCost{Unit: unit})
	}
	if err := d.Validate(); err != nil {
		return fmt.Errorf("throttle: %s: %v does not fit into a Store: %w", field, b, err)
	}
	return nil
}

// storableAll is storable of a whole configuration.
func storableAll(other Budget, by map[string]Budget, c FleetConfig) error {
	if err := storable("Default", other, c); err != nil {
		return err
	}
	for name, b := range by {
		if err := storable(fmt.Sprintf("Budgets[%q]", name), b, c); err != nil {
			return err
		}
	}
	return nil
}

func (r Rate) spread(c FleetConfig) time.Duration {
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

func unitIndex(list []string, s string) int {
	for i := range list {
		if list[i] == s {
			return i
		}
	}
	return -1
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
