package store

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// What is said to have moved has bounds, and what lies on them is allowed.
func TestMovesAreValidated(t *testing.T) {
	for _, test := range []struct {
		m    Moved
		want string
	}{
		{Moved{Units: []int64{0}}, ""}, {Moved{Units: []int64{MaxAmount}, Age: MaxHorizon}, ""},
		{Moved{}, "Moved has 0 units, want 1"}, {Moved{Units: []int64{1, 1}}, "Moved has 2 units, want 1"},
		{Moved{Units: []int64{1}, Age: -1}, "Age is -1ns"}, {Moved{Units: []int64{1}, Age: MaxHorizon + 1}, "Age is 9600h0m0.000000001s"},
		{Moved{Units: []int64{-1}}, "Moved: -1 units"}, {Moved{Units: []int64{MaxAmount + 1}}, "Moved: 1000000000000001 units"},
	} {
		b := asking(Limit{ID: "l", Kind: LogLimit, Size: 2, Per: time.Second}, 1)
		b.Draws[0].Moved = []Moved{test.m}
		same(t, b.Validate(), test.want)
	}
	b := asking(Limit{ID: "l", Kind: LogLimit, Size: 2, Per: time.Second}, 1)
	b.Draws[0].Moved = slices.Repeat([]Moved{{Units: []int64{1}}}, MaxParts)
	same(t, b.Validate(), "")
	b.Draws[0].Moved = slices.Repeat([]Moved{{Units: []int64{1}}}, MaxParts+1)
	same(t, b.Validate(), "17 moved")
}

// A store is asked for nothing that a script could stumble over: each field has
// bounds, and what lies on them is allowed.
func TestStoreValidatesEachField(t *testing.T) {
	meter := Limit{ID: "m", Kind: MeterLimit, Size: 5, Rate: 1}
	log := Limit{ID: "l", Kind: LogLimit, Size: 5, Per: time.Second}
	day := Limit{ID: "c", Kind: CalendarLimit, Size: 5, Per: 24 * time.Hour, Ends: time.Unix(0, 0)}
	limit := func(l Limit, f func(*Limit)) func(*Booking) {
		return func(b *Booking) {
			f(&l)
			b.Draws[0].Limits = []Limit{l}
		}
	}
	long := strings.Repeat("x", MaxID)
	for _, test := range []struct {
		change func(*Booking)
		want   string // "": it is valid
	}{
		{func(b *Booking) {}, ""},
		{func(b *Booking) { b.Draws = nil }, "0 draws"},
		{func(b *Booking) { b.Draws = make([]Draw, MaxParts+1) }, "17 draws"},
		{func(b *Booking) { b.Draws = append(b.Draws, b.Draws[0]) }, `key "k" twice`},
		{func(b *Booking) { b.MaxWait = MaxHorizon }, ""},
		{func(b *Booking) { b.MaxWait = MaxHorizon + 1 }, "MaxWait"},
		{func(b *Booking) { b.MaxWait = -1 }, "MaxWait -1ns"},
		{func(b *Booking) { b.Draws[0].Limits = make([]Limit, MaxParts+1) }, "17 limits"},
		{func(b *Booking) { b.Draws[0].Units = make([]UnitCost, MaxParts) }, ""},
		{func(b *Booking) { b.Draws[0].Units = make([]UnitCost, MaxParts+1) }, "17 units"},
		{func(b *Booking) { b.Draws[0].Units[0].Unit = long }, ""},
		{func(b *Booking) { b.Draws[0].Units[0].Unit = long + "x" }, "unit of 65 bytes"},
		{func(b *Booking) { b.Draws[0].Units[0] = UnitCost{"u", 0, MaxAmount} }, ""},
		{func(b *Booking) { b.Draws[0].Units[0] = UnitCost{"u", 0, MaxAmount + 1} }, `unit "u": cost 0 of the first request, 1000000000000001 of all`},
		{func(b *Booking) { b.Draws[0].Units[0] = UnitCost{"u", -1, 1} }, `unit "u": cost -1`},
		{func(b *Booking) { b.Draws[0].Units[0] = UnitCost{"u", 2, 1} }, `unit "u": cost 2 of the first request, 1 of all`},
		{func(b *Booking) { b.Draws[0].Limits = []Limit{meter, meter} }, `limit "m" is named twice`},
		{func(b *Booking) {
			b.Draws[0].Limits = []Limit{meter, {ID: "m", Kind: LogLimit, Size: 1, Per: 1}}
		}, ""},
		{func(b *Booking) { b.Draws[0].Seen.Levels = []float64{1} }, ""},
		{func(b *Booking) { b.Draws[0].Seen.Levels = []float64{1, 2} }, "2 levels for 1 limits"},
		{limit(meter, func(l *Limit) { l.ID = long }), ""},
		{limit(meter, func(l *Limit) { l.ID = long + "x" }), "ID of 65 bytes"},
		{limit(meter, func(l *Limit) { l.Unit = -1 }), "Unit is -1"},
		{limit(meter, func(l *Limit) { l.Unit = 1 }), "Unit is 1"},
		{limit(meter, func(l *Limit) { l.Size = 0 }), "Size 0 "},
		{limit(meter, func(l *Limit) { l.Size = math.NaN() }), "Size NaN"},
		{limit(meter, func(l *Limit) { l.Size = float64(MaxAmount) }), ""},
		{limit(meter, func(l *Limit) { l.Size = 2 * float64(MaxAmount) }), "Size 2e+15"},
		{limit(meter, func(l *Limit) { l.Rate = 0 }), "Rate 0 "},
		{limit(meter, func(l *Limit) { l.Rate = math.Inf(1) }), "Rate +Inf"},
		{limit(meter, func(l *Limit) { l.Credit = -1 }), ""},
		{limit(meter, func(l *Limit) { l.Credit = math.NaN() }), "Credit NaN"},
		{limit(meter, func(l *Limit) { l.Credit = math.Inf(-1) }), "Credit -Inf"},
		{limit(log, func(l *Limit) { l.Per = 0 }), "Per 0s"},
		{limit(log, func(l *Limit) { l.Per = 1 }), ""},
		{limit(log, func(l *Limit) { l.Per = MaxHorizon }), ""},
		{limit(log, func(l *Limit) { l.Per = MaxHorizon + 1 }), "Per "},
		{limit(log, func(l *Limit) { l.Grain = -1 }), "Grain -1ns"},
		{limit(log, func(l *Limit) { l.Size = maxEntries }), ""},
		{limit(log, func(l *Limit) { l.Size = maxEntries + 1 }), "Grain 0s is out of range for 129 units in 1s"},
		{limit(log, func(l *Limit) { l.Size, l.Grain = 1000, time.Second/maxEntries }), ""},
		{limit(log, func(l *Limit) { l.Size, l.Grain = 1000, time.Second/maxEntries-1 }), "Grain"},
		{limit(day, func(l *Limit) {}), ""},
		{limit(day, func(l *Limit) { l.Ends = time.Time{} }), "Ends is zero"},
		{limit(day, func(l *Limit) { l.Kind++ }), "kind 4"},
		{limit(day, func(l *Limit) { l.Kind = 0 }), "kind 0"},
	} {
		b := Booking{Draws: []Draw{{Key: "k", Limits: []Limit{meter}, Units: []UnitCost{{"u", 1, 1}}}}}
		test.change(&b)
		same(t, b.Validate(), test.want)
	}
	for _, test := range []struct {
		r    Refund
		want string
	}{
		{Refund{Key: "k", Limits: []Limit{meter}, Units: []float64{0}, Held: []float64{0}}, ""},
		{Refund{Key: "k", Limits: []Limit{meter}, Units: []float64{float64(MaxAmount)}, Held: []float64{0}}, ""},
		{Refund{Key: "k", Limits: []Limit{meter}, Units: []float64{2 * float64(MaxAmount)}, Held: []float64{0}}, `2e+15 units of limit "m"`},
		{Refund{Key: "k", Limits: []Limit{meter}, Units: []float64{-1}, Held: []float64{0}}, `-1 units of limit "m"`},
		{Refund{Key: "k", Limits: []Limit{meter}, Units: []float64{math.NaN()}, Held: []float64{0}}, "NaN units"},
		{Refund{Key: "k", Limits: []Limit{meter}}, "0 Units and 0 Held for 1 Limits"},
		{Refund{Key: "k", Limits: []Limit{meter}, Units: []float64{1}}, "1 Units and 0 Held for 1 Limits"},
		{Refund{Key: "k", Limits: []Limit{meter}, Units: []float64{1}, Held: []float64{math.Inf(1)}}, `limit "m": Held +Inf`},
		{Refund{Key: "k", Limits: slices.Repeat([]Limit{meter}, MaxParts), Units: make([]float64, MaxParts), Held: make([]float64, MaxParts)}, ""},
		{Refund{Key: "k", Limits: slices.Repeat([]Limit{meter}, MaxParts+1), Units: make([]float64, MaxParts+1), Held: make([]float64, MaxParts+1)}, "17 Limits"},
		{Refund{Key: "k", Limits: []Limit{{ID: "m", Kind: MeterLimit, Size: 5}}, Units: []float64{1}, Held: []float64{0}}, `limit "m": Rate 0`},
	} {
		same(t, test.r.Validate(), test.want)
	}
	for _, test := range []struct {
		n    News
		want string
	}{
		{News{Pause: MaxHorizon}, ""},
		{News{Pause: MaxHorizon + 1}, "News.Pause"},
		{News{Pause: -1}, "News.Pause"},
		{News{Guess: MaxHorizon}, ""},
		{News{Guess: MaxHorizon + 1}, "News.Guess"},
		{News{Guess: -1}, "News.Guess"},
		{News{Stated: make([]Stated, MaxStated)}, ""},
		{News{Stated: make([]Stated, MaxStated+1)}, "9 entries"},
		{News{Stated: []Stated{{ID: long, Unit: long, Remaining: MaxAmount, Reset: MaxHorizon}}}, ""},
		{News{Stated: []Stated{{ID: long + "x"}}}, "News.Stated"},
		{News{Stated: []Stated{{Unit: long + "x"}}}, "News.Stated"},
		{News{Stated: []Stated{{Remaining: -1}}}, "-1 remaining"},
		{News{Stated: []Stated{{Remaining: MaxAmount + 1}}}, "News.Stated"},
		{News{Stated: []Stated{{Reset: -1}}}, "for -1ns"},
		{News{Stated: []Stated{{Reset: MaxHorizon + 1}}}, "News.Stated"},
	} {
		same(t, test.n.Validate(), test.want)
	}
}

// same compares an error's text with a piece of it; "" is no error.
func same(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("got %v, want no error", err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("got %v, want ... %s ...", err, want)
	}
}

// A ledger that a store has kept is believed only if a process can have written it: each
// field has bounds, and what lies on them is allowed.
func TestLedgersAreValidated(t *testing.T) {
	const at = 1_800_000_000_000_000
	const latest = at + 3*int64(MaxHorizon/time.Microsecond)
	const amount = float64(MaxAmount)
	long := strings.Repeat("x", MaxID)
	stated := func(s LedgerStated) Ledger { return Ledger{At: at, Stated: []LedgerStated{s}} }
	account := func(a Account) Ledger { return Ledger{At: at, Accounts: []Account{a}} }
	for _, test := range []struct {
		l    Ledger
		want string
	}{
		{Ledger{}, ""},
		{Ledger{Gen: math.MaxInt64, At: at, Pause: latest, Heals: latest, Expires: latest}, ""},
		{Ledger{At: math.MaxInt64, Expires: math.MaxInt64}, ""},
		{Ledger{Gen: -1}, "gen -1"},
		{Ledger{At: -1}, "at -1"},
		{Ledger{At: at, Pause: latest + 1}, "pause"},
		{Ledger{At: at, Guess: latest + 1}, "guess"},
		{Ledger{At: at, Heals: latest + 1}, "heals"},
		{Ledger{At: at, Expires: latest + 1}, "expires"},
		{Ledger{At: at, Stated: make([]LedgerStated, MaxStated)}, ""},
		{Ledger{At: at, Stated: make([]LedgerStated, MaxStated+1)}, "9 stated"},
		{stated(LedgerStated{ID: long, Unit: long, Remaining: amount, Ends: latest}), ""},
		{stated(LedgerStated{ID: long + "x"}), "remaining"},
		{stated(LedgerStated{Unit: long + "x"}), "remaining"},
		{stated(LedgerStated{Remaining: -1}), "-1 remaining"},
		{stated(LedgerStated{Remaining: math.NaN()}), "NaN remaining"},
		{stated(LedgerStated{Remaining: 2 * amount}), "2e+15 remaining"},
		{stated(LedgerStated{Ends: -1}), "until -1"},
		{stated(LedgerStated{Ends: latest + 1}), "remaining"},
		{account(Account{Kind: MeterLimit, ID: long, Level: -amount, At: latest, Idle: latest}), ""},
		{account(Account{Kind: CalendarLimit, Level: 1000 * amount, Ends: latest}), ""},
		{account(Account{Kind: MeterLimit - 1}), "kind"},
		{account(Account{Kind: CalendarLimit + 1}), "kind"},
		{account(Account{Kind: MeterLimit, ID: long + "x"}), "ID of 65 bytes"},
		{account(Account{Kind: MeterLimit, Level: -2 * amount}), "level"},
		{account(Account{Kind: CalendarLimit, Level: -1}), "level -1"},
		{account(Account{Kind: MeterLimit, Level: 2000 * amount}), "level"},
		{account(Account{Kind: MeterLimit, At: latest + 1}), "at"},
		{account(Account{Kind: CalendarLimit, Ends: -1}), "ends -1"},
		{account(Account{Kind: LogLimit, Entries: []Entry{{at, 0}, {at, 1000 * amount}, {latest, 1}}}), ""},
		{account(Account{Kind: LogLimit, Entries: []Entry{{at + 1, 1}, {at, 1}}}), "after some at"},
		{account(Account{Kind: LogLimit, Entries: []Entry{{latest + 1, 1}}}), "units at"},
		{account(Account{Kind: LogLimit, Entries: []Entry{{at, -1}}}), "-1 units"},
		{account(Account{Kind: LogLimit, Entries: []Entry{{at, 2000 * amount}}}), "units at"},
	} {
		same(t, test.l.Validate(), test.want)
	}
}
