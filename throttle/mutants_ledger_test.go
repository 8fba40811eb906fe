package throttle

import (
	"slices"
	"testing"
	"time"
)

// micro is a time by a ledger's clock.
func micro(at int64) time.Time { return time.UnixMicro(at) }

// asking is a booking of one request, or n, on one limit.
func asking(l StoreLimit, n int64) Booking {
	return Booking{Draws: []Draw{{Key: "k", Limits: []StoreLimit{l}, Units: []UnitCost{{Unit: requests, First: 1, All: n}}}}}
}

// A meter of which nobody asked anything is empty, however slowly it drains.
func TestLedgerOfASlowMeterAtRest(t *testing.T) {
	slow := StoreLimit{ID: "m", Kind: MeterLimit, Size: 1e6, Rate: 1.0 / 86400, Credit: -1}
	if _, r := BookLedgers(time.Unix(1_800_000_000, 0), make([]Ledger, 1), asking(slow, 1e6)); r.Outcome != BookedAll {
		t.Errorf("%v, want all of it", r.Outcome)
	}
}

// A refusal writes nothing, unless the clock stepped back: what is dated has to
// be dated anew then, were it by a microsecond.
func TestLedgerRefusalWrites(t *testing.T) {
	const at = 1_800_000_000_000_000
	l := StoreLimit{ID: "l", Kind: LogLimit, Size: 2, Per: time.Second}
	full, r := BookLedgers(micro(at), make([]Ledger, 1), asking(l, 2))
	if r.Outcome != BookedAll {
		t.Fatal(r.Outcome)
	}
	for back, writes := range map[int64]bool{-1: false, 0: false, 1: true, 2: true} {
		next, r := BookLedgers(micro(at-back), full, asking(l, 1))
		if r.Outcome != Refused || (next != nil) != writes {
			t.Errorf("a clock %d µs back: %v, %d written", back, r.Outcome, len(next))
		}
		if writes && next[0].Accounts[0].Entries[0].At != at-back {
			t.Errorf("a clock %d µs back: the entry stands at %d, want %d", back, next[0].Accounts[0].Entries[0].At, at-back)
		}
	}
}

// What a store has lost is put back as far as a process saw it: to what was
// seen, not by it, and only what still counts.
func TestLedgerMerges(t *testing.T) {
	const now = 100_000_000 // µs
	meter := StoreLimit{Kind: MeterLimit, Size: 10, Rate: 2, Credit: -1}
	day := StoreLimit{Kind: CalendarLimit, Size: 10, Per: 10 * sec}
	log := StoreLimit{Kind: LogLimit, Size: 10, Per: 10 * sec}
	had := func(at int64, units float64) LedgerEntry { return LedgerEntry{At: at, Units: units} }
	for name, test := range map[string]struct {
		p     StoreLimit
		a     LedgerAccount
		ago   int64 // µs
		level float64
		want  float64 // level, or total
		order []int64 // of the entries
	}{
		"a meter":              {meter, LedgerAccount{Level: 1}, 1_000_000, 8, 6, nil},
		"a fuller meter":       {meter, LedgerAccount{Level: 7}, 1_000_000, 8, 7, nil},
		"an hour's debt":       {meter, LedgerAccount{}, 0, 7210, 7210, nil},
		"more":                 {meter, LedgerAccount{}, 0, 7210.5, 0, nil},
		"a day":                {day, LedgerAccount{Level: 1, Ends: now + 4_000_000}, 6_000_000, 8, 8, nil},
		"the day before":       {day, LedgerAccount{Level: 1, Ends: now + 4_000_000}, 6_000_001, 8, 1, nil},
		"more than a day":      {day, LedgerAccount{Level: 1, Ends: now + 4_000_000}, 0, 12, 10, nil},
		"a log":                {log, LedgerAccount{}, 1_000_000, 8, 8, []int64{now - 1_000_000}},
		"one entry missing":    {log, LedgerAccount{Entries: []LedgerEntry{had(now, 7)}}, 1_000_000, 8, 8, []int64{now - 1_000_000, now}},
		"half of one missing":  {log, LedgerAccount{Entries: []LedgerEntry{had(now, 7.5)}}, 1_000_000, 8, 8, []int64{now - 1_000_000, now}},
		"none missing":         {log, LedgerAccount{Entries: []LedgerEntry{had(now, 8)}}, 1_000_000, 8, 8, []int64{now}},
		"more than a log":      {log, LedgerAccount{}, 1_000_000, 12, 10, []int64{now - 1_000_000}},
		"hardly in the window": {log, LedgerAccount{}, 9_999_999, 8, 8, []int64{now - 9_999_999}},
		"out of the window":    {log, LedgerAccount{}, 10_000_000, 8, 0, nil},
		"between entries": {log, LedgerAccount{Entries: []LedgerEntry{had(now-5, 1), had(now-3, 1), had(now-1, 1)}}, 3, 5, 5,
			[]int64{now - 5, now - 3, now - 3, now - 1}},
	} {
		a := test.a
		a.merge(test.p, now, now-test.ago, test.level)
		got := a.Level
		var order []int64
		for _, e := range a.Entries {
			order = append(order, e.At)
		}
		if test.p.Kind == LogLimit {
			got = a.total()
		}
		if got != test.want || !slices.Equal(order, test.order) {
			t.Errorf("%s: %v at %v, want %v at %v", name, got, order, test.want, test.order)
		}
	}
}

// A quota stated again is that of the same window if it ends within a twentieth
// of the reset, a second at least: then the lower count holds. A later window
// replaces it, and an earlier one is old news.
func TestLedgerJoinsStated(t *testing.T) {
	const at, s = 1_000_000_000, 1_000_000
	for _, test := range []struct {
		ends  int64 // of what is known, µs from now
		reset time.Duration
		left  int64 // stated; 5 are known
		want  float64
	}{
		{38 * s, 40 * sec, 9, 5}, {38*s - 1, 40 * sec, 9, 9}, // a twentieth later, or more
		{38 * s, 40 * sec, 3, 3}, {42 * s, 40 * sec, 3, 3}, {42*s + 1, 40 * sec, 3, 5}, // or earlier
		{9 * s, 10 * sec, 9, 5}, {9*s - 1, 10 * sec, 9, 9}, // a second at least
		{0, sec, 9, 9}, {1, sec, 9, 5}, // it has ended
	} {
		known := []LedgerStated{{ID: "q", Unit: "v", Remaining: 5, Ends: at + test.ends}, {ID: "q", Unit: "u", Remaining: 5, Ends: at + test.ends}}
		got := withStated(known, Stated{ID: "q", Unit: "u", Remaining: test.left, Reset: test.reset}, at)
		if len(got) != 2 || got[0].Remaining != 5 || got[1].Remaining != test.want {
			t.Errorf("%+v: %+v", test, got)
		}
	}
	for reset, want := range map[time.Duration]string{9 * sec: "a", 10 * sec: "a", 11 * sec: "new"} {
		full := slices.Repeat([]LedgerStated{{ID: "b", Ends: at + 20*s}}, maxStated)
		full[3] = LedgerStated{ID: "a", Ends: at + 10*s}
		if got := withStated(full, Stated{ID: "new", Reset: reset}, at); len(got) != maxStated || got[3].ID != want {
			t.Errorf("full, with one that ends in %v: %+v", reset, got)
		}
	}
}

// Units of an earlier booking that count from another time.
func TestLedgerMoves(t *testing.T) {
	const now = 100_000_000
	day := StoreLimit{Kind: CalendarLimit, Size: 10, Per: 10 * sec} // began 6 s ago
	log := StoreLimit{Kind: LogLimit, Size: 10, Per: 10 * sec}
	for name, test := range map[string]struct {
		p     StoreLimit
		m     Moved
		known bool
		want  float64
	}{
		"within the day":         {day, Moved{From: now - 5_000_000, Age: sec, Units: []int64{2}}, true, 3},
		"from its start":         {day, Moved{From: now - 6_000_000, Age: sec, Units: []int64{2}}, true, 3},
		"from the day before":    {day, Moved{From: now - 6_000_001, Age: sec, Units: []int64{2}}, true, 5},
		"of another state":       {day, Moved{From: now - 5_000_000, Age: sec, Units: []int64{2}}, false, 5},
		"to the day's start":     {day, Moved{From: now - 9_000_000, Age: 6 * sec, Units: []int64{2}}, true, 5},
		"to the day before":      {day, Moved{From: now - 9_000_000, Age: 6*sec + time.Microsecond, Units: []int64{2}}, true, 3},
		"nothing":                {log, Moved{From: now - 5_000_000, Units: []int64{0}}, true, 3},
		"along a log":            {log, Moved{From: now - 5_000_000, Units: []int64{2}}, true, 3},
		"into a log":             {log, Moved{From: now - 5_000_000, Units: []int64{2}}, false, 5},
		"out of a log":           {log, Moved{From: now - 5_000_000, Age: 10 * sec, Units: []int64{2}}, true, 1},
		"hardly within a log":    {log, Moved{From: now - 5_000_000, Age: 10*sec - time.Microsecond, Units: []int64{2}}, true, 3},
		"what is not in a log":   {log, Moved{From: now - 5_000_001, Age: sec, Units: []int64{2}}, true, 5},
		"more than the log held": {log, Moved{From: now - 5_000_000, Age: 10 * sec, Units: []int64{4}}, true, 0},
	} {
		a := LedgerAccount{Level: 3, Ends: now + 4_000_000, Entries: []LedgerEntry{{At: now - 5_000_000, Units: 3}}}
		a.move(test.p, test.m, now, test.known)
		got := a.Level
		if test.p.Kind == LogLimit {
			got = a.total()
		}
		if got != test.want {
			t.Errorf("%s: %v units, want %v", name, got, test.want)
		}
	}
}

// What is said to have moved has bounds, and what lies on them is allowed.
func TestMovesAreValidated(t *testing.T) {
	for _, test := range []struct {
		m    Moved
		want string
	}{
		{Moved{Units: []int64{0}}, ""}, {Moved{Units: []int64{maxAmount}, Age: maxHorizon}, ""},
		{Moved{}, "moved 0 units of 1"}, {Moved{Units: []int64{1, 1}}, "moved 2 units of 1"},
		{Moved{Units: []int64{1}, Age: -1}, "-1ns ago"}, {Moved{Units: []int64{1}, Age: maxHorizon + 1}, "moved 1 units of 1"},
		{Moved{Units: []int64{-1}}, "moved -1 units"}, {Moved{Units: []int64{maxAmount + 1}}, "moved 1000000000000001 units"},
	} {
		b := asking(StoreLimit{ID: "l", Kind: LogLimit, Size: 2, Per: sec}, 1)
		b.Draws[0].Moved = []Moved{test.m}
		same(t, b.Validate(), test.want)
	}
	b := asking(StoreLimit{ID: "l", Kind: LogLimit, Size: 2, Per: sec}, 1)
	b.Draws[0].Moved = slices.Repeat([]Moved{{Units: []int64{1}}}, maxStored)
	same(t, b.Validate(), "")
	b.Draws[0].Moved = slices.Repeat([]Moved{{Units: []int64{1}}}, maxStored+1)
	same(t, b.Validate(), "17 moved")
}

// Which window of a Calendar an account is of, and what it holds then.
func TestLedgerCalendarRolls(t *testing.T) {
	const now, s = 100_000_000, 1_000_000
	day := StoreLimit{Kind: CalendarLimit, Size: 10, Per: 10 * sec, Ends: time.UnixMicro(4 * s)} // ends at 104 s
	for ends, kept := range map[int64]bool{104 * s: true, 104*s - 1: false, 94 * s: false, 114 * s: true, 114*s + 1: false} {
		a := LedgerAccount{Level: 3, Ends: ends}
		a.advance(day, now, now, 0)
		if kept && (a.Level != 3 || a.Ends != ends) || !kept && (a.Level != 0 || a.Ends != 104*s) {
			t.Errorf("ends at %d: %+v", ends, a)
		}
	}
	for ready, level := range map[int64]float64{94*s - 1: 3, 94 * s: 1, 104*s - 1: 1, 104 * s: 3} {
		l := Ledger{Gen: 1, At: now, Expires: now + s, Accounts: []LedgerAccount{{Kind: CalendarLimit, Level: 3, Ends: 104 * s}}}
		got := l.AfterRefund(micro(now), Refund{Gen: 1, Ready: ready, Limits: []StoreLimit{day}, Units: []float64{2}})
		if got.Accounts[0].Level != level || l.Accounts[0].Level != 3 {
			t.Errorf("given back of %d: %v, want %v", ready, got.Accounts[0].Level, level)
		}
	}
}

// Credit for idleness ends with a pause: it is gathered anew from its end.
func TestLedgerIdled(t *testing.T) {
	p := StoreLimit{Kind: MeterLimit, Size: 2, Rate: 1, Credit: 8}
	for _, test := range []struct {
		level float64
		pause int64 // µs from now; zero: none
		want  float64
	}{{-8, 0, -8}, {-8, -3_000_000, -3}, {-1, -3_000_000, -1}, {-8, 2_000_000, 2}, {5, 2_000_000, 5}} {
		v := ledgerView{now: 100_000_000}
		if test.pause != 0 {
			v.ledger.Pause = v.now + test.pause
		}
		if got := v.idled(p, &LedgerAccount{Level: test.level}); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

// A batch fits into a log when what is in it leaves, and not a microsecond before.
func TestLedgerBatchFits(t *testing.T) {
	const at = 1_800_000_000_000_000
	l := StoreLimit{ID: "l", Kind: LogLimit, Size: 2, Per: sec}
	full, _ := BookLedgers(micro(at), make([]Ledger, 1), asking(l, 2))
	for after, want := range map[int64]Outcome{999_998: Refused, 999_999: Refused, 1_000_000: BookedAll} {
		b := asking(l, 2)
		b.Draws[0].Units[0].First = 2
		if _, r := BookLedgers(micro(at+after), full, b); r.Outcome != want {
			t.Errorf("after %d µs: %v, want %v", after, r.Outcome, want)
		}
	}
}
