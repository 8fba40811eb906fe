package store

import "slices"

// move lets units of an earlier booking count from another time. known says
// that the state is still that of the booking.
func (a *Account) move(p Limit, m Moved, now int64, known bool) {
	to, units := now-m.Age.Microseconds(), float64(m.Units[p.Unit])
	if units == 0 {
		return
	}
	switch p.Kind {
	case CalendarLimit:
		if starts := a.Ends - p.Per.Microseconds(); to >= starts && !(known && m.From >= starts) {
			a.Level += units // the window may have turned over on its way
		}
	case LogLimit:
		if known {
			a.Entries = withoutUnits(a.Entries, p, m.From, units)
		}
		if to+p.Per.Microseconds() > now {
			a.Entries = withUnits(a.Entries, p, to, units)
		}
	}
}

// withUnits adds units that count from the given time.
func withUnits(es []Entry, p Limit, at int64, units float64) []Entry {
	i := 0
	for i < len(es) && es[i].At < at {
		i++
	}
	switch {
	case i < len(es) && p.together(es[i].At, at):
		es[i].Units += units
	case i > 0 && p.together(es[i-1].At, at):
		es[i-1] = Entry{At: at, Units: es[i-1].Units + units}
	default:
		es = slices.Insert(es, i, Entry{At: at, Units: units})
	}
	return es
}

// withoutUnits takes units off the entry that holds what counts from the given
// time. If that has left the window there is none: others' entries are not touched.
func withoutUnits(es []Entry, p Limit, at int64, units float64) []Entry {
	es = slices.Clone(es)
	for i := range es {
		if es[i].At >= at && p.together(es[i].At, at) { // an entry takes the date of its last unit
			es[i].Units = max(0, es[i].Units-units)
			break
		}
	}
	return es
}

// together reports whether units of two times share an entry of a Log.
func (p Limit) together(a, b int64) bool {
	grain := p.Grain.Microseconds()
	return a == b || grain > 0 && floorDiv(a, grain) == floorDiv(b, grain)
}
