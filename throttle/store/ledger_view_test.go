package store

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// What a store has lost is put back as far as a process saw it: to what was
// seen, not by it, and only what still counts.
func TestLedgerMerges(t *testing.T) {
	const now = 100_000_000 // µs
	meter := Limit{Kind: MeterLimit, Size: 10, Rate: 2, Credit: -1}
	day := Limit{Kind: CalendarLimit, Size: 10, Per: 10 * time.Second}
	log := Limit{Kind: LogLimit, Size: 10, Per: 10 * time.Second}
	had := func(at int64, units float64) Entry { return Entry{At: at, Units: units} }
	for name, test := range map[string]struct {
		p     Limit
		a     Account
		ago   int64 // µs
		level float64
		want  float64 // level, or total
		order []int64 // of the entries
	}{
		"a meter":              {meter, Account{Level: 1}, 1_000_000, 8, 6, nil},
		"a fuller meter":       {meter, Account{Level: 7}, 1_000_000, 8, 7, nil},
		"an hour's debt":       {meter, Account{}, 0, 7210, 7210, nil},
		"more":                 {meter, Account{}, 0, 7210.5, 0, nil},
		"a day":                {day, Account{Level: 1, Ends: now + 4_000_000}, 6_000_000, 8, 8, nil},
		"the day before":       {day, Account{Level: 1, Ends: now + 4_000_000}, 6_000_001, 8, 1, nil},
		"more than a day":      {day, Account{Level: 1, Ends: now + 4_000_000}, 0, 12, 10, nil},
		"a log":                {log, Account{}, 1_000_000, 8, 8, []int64{now - 1_000_000}},
		"one entry missing":    {log, Account{Entries: []Entry{had(now, 7)}}, 1_000_000, 8, 8, []int64{now - 1_000_000, now}},
		"half of one missing":  {log, Account{Entries: []Entry{had(now, 7.5)}}, 1_000_000, 8, 8, []int64{now - 1_000_000, now}},
		"none missing":         {log, Account{Entries: []Entry{had(now, 8)}}, 1_000_000, 8, 8, []int64{now}},
		"more than a log":      {log, Account{}, 1_000_000, 12, 10, []int64{now - 1_000_000}},
		"hardly in the window": {log, Account{}, 9_999_999, 8, 8, []int64{now - 9_999_999}},
		"out of the window":    {log, Account{}, 10_000_000, 8, 0, nil},
		"between entries": {log, Account{Entries: []Entry{had(now-5, 1), had(now-3, 1), had(now-1, 1)}}, 3, 5, 5,
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

// Which window of a Calendar an account is of, and what it holds then.
func TestLedgerCalendarRolls(t *testing.T) {
	const now, s = 100_000_000, 1_000_000
	day := Limit{Kind: CalendarLimit, Size: 10, Per: 10 * time.Second, Ends: time.UnixMicro(4 * s)} // ends at 104 s
	for ends, want := range map[int64]Account{
		104 * s: {Level: 3, Ends: 104 * s}, 114 * s: {Level: 3, Ends: 114 * s},
		104*s - 1: {Ends: 104 * s}, 94 * s: {Ends: 104 * s},
		114*s + 1: {Level: 3, Ends: 104 * s}, // the clock was ahead when it was opened
	} {
		a := Account{Level: 3, Ends: ends}
		if a.advance(day, now); a.Level != want.Level || a.Ends != want.Ends {
			t.Errorf("ends at %d: %+v, want %+v", ends, a, want)
		}
	}
	for ready, level := range map[int64]float64{94*s - 1: 3, 94 * s: 1, 104*s - 1: 1, 104 * s: 3} {
		l := Ledger{Gen: 1, At: now, Expires: now + s, Accounts: []Account{{Kind: CalendarLimit, Level: 3, Ends: 104 * s}}}
		got := l.AfterRefund(micro(now), Refund{Gen: 1, Ready: ready, Limits: []Limit{day}, Units: []float64{2}, Held: []float64{3}})
		if got.Accounts[0].Level != level || l.Accounts[0].Level != 3 {
			t.Errorf("given back of %d: %v, want %v", ready, got.Accounts[0].Level, level)
		}
	}
}

// A memory of units that are over is not put back.
func TestMergeForgetsWhatIsOver(t *testing.T) {
	log := Limit{ID: "a", Kind: LogLimit, Size: 3, Per: time.Second}
	for seen, want := range map[int64]float64{0: 0, 1: 2} {
		var a Account
		a.merge(log, 1_000_000, seen, 2)
		if a.total() != want {
			t.Errorf("seen at %d: %v units, want %v", seen, a.total(), want)
		}
		a = Account{Entries: []Entry{{500, 2}}}
		a.merge(log, 1_000_000, 900, 2)
		if len(a.Entries) != 1 {
			t.Errorf("entries %v of which none was missing", a.Entries)
		}
	}
}

// Of a state that was rolled back everybody who remembers more is heard before
// it is charged; what everybody has seen by now is no memory.
func TestRolledBackStateIsHealedByAll(t *testing.T) {
	book := func(now time.Time, l Ledger, n int64, seen Standing) (Ledger, Booked) {
		limit := Limit{ID: "a", Kind: LogLimit, Size: 10, Per: time.Hour}
		next, r := Book(now, []Ledger{l}, Booking{Draws: []Draw{{Key: "k", Limits: []Limit{limit},
			Units: []UnitCost{{Unit: "requests", First: n, All: n}}, Seen: Seen{Standing: seen}}}})
		if next == nil {
			return l, r
		}
		return next[0], r
	}
	old, _ := book(ledgerNow, Ledger{}, 4, Standing{})
	newer, first := book(ledgerNow.Add(time.Second), old, 3, Standing{})
	_, last := book(ledgerNow.Add(2*time.Second), newer, 2, Standing{})
	now := ledgerNow.Add(3 * time.Second)
	l, r := book(now, old, 1, first.Keys[0])
	if r.Outcome != Refused || r.Wait != Ahead || r.Keys[0].Levels[0] != 7 || l.Gen == old.Gen {
		t.Fatalf("got %+v, want a second's wait at 7, in another state", r)
	}
	now = now.Add(Ahead - time.Microsecond)
	healed, r := book(now, l, 1, last.Keys[0])
	if r.Outcome != Refused || r.Wait != time.Microsecond || r.Keys[0].Levels[0] != 9 || healed.Gen != l.Gen {
		t.Errorf("got %+v, want the rest of the wait, at 9", r)
	}
	now = now.Add(time.Microsecond)
	if again, r := book(now, healed, 2, r.Keys[0]); r.Outcome != Refused || again.At != healed.At {
		t.Errorf("got %+v, want a refusal that writes nothing", r)
	}
	if l, r := book(now, healed, 1, Standing{}); r.Outcome != BookedAll || l.Heals != 0 {
		t.Errorf("got %+v, want the last of 10", r)
	}
}

// A refusal writes nothing for a key that has nothing to keep.
func TestRefusalHealsWhatThereIs(t *testing.T) {
	limit := Limit{ID: "a", Kind: LogLimit, Size: 1, Per: time.Hour}
	b := Booking{Draws: []Draw{
		{Key: "host", Units: []UnitCost{{Unit: "requests", First: 1, All: 1}}},
		{Key: "route", Limits: []Limit{limit}, Units: []UnitCost{{Unit: "requests", First: 1, All: 1}}},
	}}
	ls, r := Book(ledgerNow, make([]Ledger, 2), b)
	b.Draws[0].Seen = Seen{Standing: Standing{Gen: 7, At: 1}} // of a pause that is over
	b.Draws[1].Seen = Seen{Standing: r.Keys[1]}
	if next, r := Book(ledgerNow.Add(time.Second), ls, b); r.Outcome != Refused || next != nil {
		t.Errorf("got %+v and %+v, want a refusal that writes nothing", r, next)
	}
	b.Draws[0].Seen.Paused = time.Minute
	if next, r := Book(ledgerNow.Add(time.Second), ls, b); r.Outcome != Refused || len(next) != 2 || next[0].Pause == 0 || r.Keys[0].Gen != next[0].Gen {
		t.Errorf("got %+v and %+v, want a refusal that keeps the pause", r, next)
	}
}

// A key that is never idle keeps no limits that nobody draws on any more: their
// accounts go a second after they would be as good as new.
func TestLedgerForgetsLimitsThatNobodyUses(t *testing.T) {
	const most = 3 // the one drawn on, one that is still in use, one in its last second
	for _, kind := range []LimitKind{MeterLimit, LogLimit, CalendarLimit} {
		now, ls := ledgerNow, make([]Ledger, 1)
		for i := range 200 {
			limit := Limit{ID: fmt.Sprint(i), Kind: kind, Size: 1, Rate: 1, Per: time.Second, Ends: ledgerNow}
			next, r := Book(now, ls, Booking{Draws: []Draw{{Key: "k", Limits: []Limit{limit}, Units: []UnitCost{{"requests", 1, 1}}}}})
			if r.Outcome != BookedAll {
				t.Fatalf("limit %d: outcome %d", i, r.Outcome)
			}
			if ls = next; len(ls[0].Accounts) > most {
				t.Fatalf("kind %d: %d accounts after %d limits, want at most %d", kind, len(ls[0].Accounts), i+1, most)
			}
			now = now.Add(time.Second)
		}
	}
}
