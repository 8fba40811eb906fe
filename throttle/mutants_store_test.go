package throttle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A store is asked for nothing that a script could stumble over: each field has
// bounds, and what lies on them is allowed.
func TestStoreValidatesEachField(t *testing.T) {
	meter := StoreLimit{ID: "m", Kind: MeterLimit, Size: 5, Rate: 1}
	log := StoreLimit{ID: "l", Kind: LogLimit, Size: 5, Per: time.Second}
	day := StoreLimit{ID: "c", Kind: CalendarLimit, Size: 5, Per: 24 * time.Hour, Ends: time.Unix(0, 0)}
	limit := func(l StoreLimit, f func(*StoreLimit)) func(*Booking) {
		return func(b *Booking) {
			f(&l)
			b.Draws[0].Limits = []StoreLimit{l}
		}
	}
	long := strings.Repeat("x", maxID)
	for _, test := range []struct {
		change func(*Booking)
		want   string // "": it is valid
	}{
		{func(b *Booking) {}, ""},
		{func(b *Booking) { b.Draws = nil }, "0 draws"},
		{func(b *Booking) { b.Draws = make([]Draw, maxStored+1) }, "17 draws"},
		{func(b *Booking) { b.Draws = append(b.Draws, b.Draws[0]) }, `key "k" twice`},
		{func(b *Booking) { b.MaxWait = maxHorizon }, ""},
		{func(b *Booking) { b.MaxWait = maxHorizon + 1 }, "MaxWait"},
		{func(b *Booking) { b.MaxWait = -1 }, "MaxWait -1ns"},
		{func(b *Booking) { b.Draws[0].Limits = make([]StoreLimit, maxStored+1) }, "17 limits"},
		{func(b *Booking) { b.Draws[0].Units = make([]UnitCost, maxStored) }, ""},
		{func(b *Booking) { b.Draws[0].Units = make([]UnitCost, maxStored+1) }, "17 units"},
		{func(b *Booking) { b.Draws[0].Units[0].Unit = long }, ""},
		{func(b *Booking) { b.Draws[0].Units[0].Unit = long + "x" }, "unit of 65 bytes"},
		{func(b *Booking) { b.Draws[0].Units[0] = UnitCost{"u", 0, maxAmount} }, ""},
		{func(b *Booking) { b.Draws[0].Units[0] = UnitCost{"u", 0, maxAmount + 1} }, `unit "u" costs 0, 1000000000000001`},
		{func(b *Booking) { b.Draws[0].Units[0] = UnitCost{"u", -1, 1} }, `unit "u" costs -1`},
		{func(b *Booking) { b.Draws[0].Units[0] = UnitCost{"u", 2, 1} }, `unit "u" costs 2, 1`},
		{func(b *Booking) { b.Draws[0].Limits = []StoreLimit{meter, meter} }, `limit "m" stands twice`},
		{func(b *Booking) {
			b.Draws[0].Limits = []StoreLimit{meter, {ID: "m", Kind: LogLimit, Size: 1, Per: 1}}
		}, ""},
		{func(b *Booking) { b.Draws[0].Seen.Levels = []float64{1} }, ""},
		{func(b *Booking) { b.Draws[0].Seen.Levels = []float64{1, 2} }, "2 levels for 1 limits"},
		{limit(meter, func(l *StoreLimit) { l.ID = long }), ""},
		{limit(meter, func(l *StoreLimit) { l.ID = long + "x" }), "ID of 65 bytes"},
		{limit(meter, func(l *StoreLimit) { l.Unit = -1 }), "unit -1 of 1"},
		{limit(meter, func(l *StoreLimit) { l.Unit = 1 }), "unit 1 of 1"},
		{limit(meter, func(l *StoreLimit) { l.Size = 0 }), "size 0"},
		{limit(meter, func(l *StoreLimit) { l.Size = math.NaN() }), "size NaN"},
		{limit(meter, func(l *StoreLimit) { l.Size = float64(maxAmount) }), ""},
		{limit(meter, func(l *StoreLimit) { l.Size = 2 * float64(maxAmount) }), "size 2e+15"},
		{limit(meter, func(l *StoreLimit) { l.Rate = 0 }), "rate 0"},
		{limit(meter, func(l *StoreLimit) { l.Rate = math.Inf(1) }), "rate +Inf"},
		{limit(meter, func(l *StoreLimit) { l.Credit = -1 }), ""},
		{limit(meter, func(l *StoreLimit) { l.Credit = math.NaN() }), "credit NaN"},
		{limit(meter, func(l *StoreLimit) { l.Credit = math.Inf(-1) }), "credit -Inf"},
		{limit(log, func(l *StoreLimit) { l.Per = 0 }), "window of 0s"},
		{limit(log, func(l *StoreLimit) { l.Per = 1 }), ""},
		{limit(log, func(l *StoreLimit) { l.Per = maxHorizon }), ""},
		{limit(log, func(l *StoreLimit) { l.Per = maxHorizon + 1 }), "window of"},
		{limit(log, func(l *StoreLimit) { l.Grain = -1 }), "grain -1ns"},
		{limit(log, func(l *StoreLimit) { l.Size = maxEntries }), ""},
		{limit(log, func(l *StoreLimit) { l.Size = maxEntries + 1 }), "grain 0s for 129 units in 1s"},
		{limit(log, func(l *StoreLimit) { l.Size, l.Grain = 1000, time.Second/maxEntries }), ""},
		{limit(log, func(l *StoreLimit) { l.Size, l.Grain = 1000, time.Second/maxEntries-1 }), "grain"},
		{limit(day, func(l *StoreLimit) {}), ""},
		{limit(day, func(l *StoreLimit) { l.Ends = time.Time{} }), "no end"},
		{limit(day, func(l *StoreLimit) { l.Kind++ }), "kind 4"},
		{limit(day, func(l *StoreLimit) { l.Kind = 0 }), "kind 0"},
	} {
		b := Booking{Draws: []Draw{{Key: "k", Limits: []StoreLimit{meter}, Units: []UnitCost{{"u", 1, 1}}}}}
		test.change(&b)
		same(t, b.Validate(), test.want)
	}
	for _, test := range []struct {
		r    Refund
		want string
	}{
		{Refund{Key: "k", Limits: []StoreLimit{meter}, Units: []float64{0}}, ""},
		{Refund{Key: "k", Limits: []StoreLimit{meter}, Units: []float64{float64(maxAmount)}}, ""},
		{Refund{Key: "k", Limits: []StoreLimit{meter}, Units: []float64{2 * float64(maxAmount)}}, `2e+15 units of limit "m"`},
		{Refund{Key: "k", Limits: []StoreLimit{meter}, Units: []float64{-1}}, `-1 units of limit "m"`},
		{Refund{Key: "k", Limits: []StoreLimit{meter}, Units: []float64{math.NaN()}}, "NaN units"},
		{Refund{Key: "k", Limits: []StoreLimit{meter}}, "0 units for 1 limits"},
		{Refund{Key: "k", Limits: slices.Repeat([]StoreLimit{meter}, maxStored), Units: make([]float64, maxStored)}, ""},
		{Refund{Key: "k", Limits: slices.Repeat([]StoreLimit{meter}, maxStored+1), Units: make([]float64, maxStored+1)}, "17 limits"},
		{Refund{Key: "k", Limits: []StoreLimit{{ID: "m", Kind: MeterLimit, Size: 5}}, Units: []float64{1}}, `limit "m": rate 0`},
	} {
		same(t, test.r.Validate(), test.want)
	}
	for _, test := range []struct {
		n    News
		want string
	}{
		{News{Pause: maxHorizon}, ""},
		{News{Pause: maxHorizon + 1}, "News.Pause"},
		{News{Stated: make([]Stated, maxStated)}, ""},
		{News{Stated: make([]Stated, maxStated+1)}, "9 entries"},
		{News{Stated: []Stated{{ID: long, Unit: long, Remaining: maxAmount, Reset: maxHorizon}}}, ""},
		{News{Stated: []Stated{{ID: long + "x"}}}, "News.Stated"},
		{News{Stated: []Stated{{Unit: long + "x"}}}, "News.Stated"},
		{News{Stated: []Stated{{Remaining: -1}}}, "-1 remaining"},
		{News{Stated: []Stated{{Remaining: maxAmount + 1}}}, "News.Stated"},
		{News{Stated: []Stated{{Reset: -1}}}, "for -1ns"},
		{News{Stated: []Stated{{Reset: maxHorizon + 1}}}, "News.Stated"},
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

// A store in memory forgets what is idle, and beyond its bound it is busy for
// new keys alone.
func TestMemoryStoreIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewMemoryStore().(*memoryStore)
		book := func(key string) error {
			_, err := s.Book(t.Context(), Booking{Draws: []Draw{{Key: key, Units: []UnitCost{{"u", 1, 1}},
				Limits: []StoreLimit{{ID: "m", Kind: MeterLimit, Size: 1000, Rate: 1000}}}}})
			return err
		}
		tell := func(key string) error { return s.Tell(t.Context(), key, News{Pause: time.Second}) }
		for i := range 300 {
			book(fmt.Sprint(i))
		}
		time.Sleep(time.Hour)
		for range 300 {
			book("still")
		}
		if len(s.ledgers) != 1 {
			t.Errorf("%d keys are kept after an hour, want the one in use", len(s.ledgers))
		}
		for i := range 300 {
			tell(fmt.Sprint(i))
		}
		time.Sleep(time.Hour)
		for range 310 {
			tell("still")
		}
		if len(s.ledgers) != 1 {
			t.Errorf("%d keys are kept after an hour, want the one that was told of", len(s.ledgers))
		}
		for i := range memoryKeys - 1 {
			s.ledgers[fmt.Sprint(i)] = Ledger{Gen: 1, Expires: math.MaxInt64}
		}
		if err := errors.Join(book("still"), book("0"), tell("still"), tell("0")); err != nil {
			t.Errorf("keys that are there: %v", err)
		}
		if err := book("new"); !errors.Is(err, ErrStoreBusy) {
			t.Errorf("a new key: %v", err)
		}
		if err := tell("new"); !errors.Is(err, ErrStoreBusy) {
			t.Errorf("news of a new key: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Book(ctx, Booking{Draws: []Draw{{Key: "0"}}}); !errors.Is(err, context.Canceled) {
			t.Errorf("a context that has ended: %v", err)
		}
	})
}

var ledgerNow = time.Unix(1_800_000_000, 0)

// bookOn books units of one log or meter and returns the ledger and the reply.
func bookOn(l Ledger, now time.Time, maxWait time.Duration, n int64, limits ...StoreLimit) (Ledger, Booked) {
	next, r := BookLedgers(now, []Ledger{l}, Booking{MaxWait: maxWait,
		Draws: []Draw{{Key: "k", Limits: limits, Units: []UnitCost{{"u", n, n}}}}})
	if next == nil {
		return l, r
	}
	return next[0], r
}

// News of a quota neither end a pause nor change the ledger they are given.
func TestNewsOfAQuotaLeaveThePause(t *testing.T) {
	l := Ledger{}.AfterNews(ledgerNow, News{Pause: time.Minute})
	l = l.AfterNews(ledgerNow, News{Stated: []Stated{{ID: "a", Unit: "u", Remaining: 5, Reset: time.Minute}}})
	before := l.Stated[0]
	next := l.AfterNews(ledgerNow, News{Stated: []Stated{{ID: "a", Unit: "u", Remaining: 3, Reset: time.Minute}}})
	if l.Stated[0] != before || next.Stated[0].Remaining != 3 {
		t.Errorf("the ledger that was given says %+v, the new one %+v", l.Stated, next.Stated)
	}
	if _, r := bookOn(next, ledgerNow, 0, 1); r.Outcome != Refused || r.Wait != time.Minute {
		t.Errorf("during the pause: %+v", r)
	}
	next = next.AfterNews(ledgerNow, News{Pause: -1})
	if _, r := bookOn(next, ledgerNow, 0, 1); r.Outcome == Refused {
		t.Errorf("after the pause was ended: %+v", r)
	}
}

// Of the quotas a key was told of, those that end last are kept.
func TestAKeyKeepsTheQuotasThatEndLast(t *testing.T) {
	var l Ledger
	for i := range 2 * maxStated { // the later half, from the inside out
		minutes := []int{7, 8, 6, 9, 5, 10, 4, 11, 3, 12, 2, 13, 1, 14, 0, 15}[i] + 1
		l = l.AfterNews(ledgerNow, News{Stated: []Stated{{ID: fmt.Sprint(minutes), Unit: "u", Reset: time.Duration(minutes) * time.Minute}}})
	}
	var ids []string
	for _, s := range l.Stated {
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	if got, want := fmt.Sprint(ids), "[10 11 12 13 14 15 16 9]"; got != want {
		t.Errorf("kept %s, want %s", got, want)
	}
}

// A refund touches the limits it names, as far as they are known, and no other.
func TestRefundOfSomeLimits(t *testing.T) {
	meter := StoreLimit{ID: "a", Kind: MeterLimit, Size: 10, Rate: 1}
	log := StoreLimit{ID: "a", Kind: LogLimit, Size: 10, Per: time.Second}
	other := StoreLimit{ID: "b", Kind: LogLimit, Size: 10, Per: time.Second}
	l, r := bookOn(Ledger{}, ledgerNow, 0, 4, meter, log, other)
	l = l.AfterRefund(ledgerNow, Refund{Key: "k", Gen: l.Gen, Ready: r.Ready,
		Limits: []StoreLimit{log, {ID: "c", Kind: LogLimit, Size: 1, Per: 1}, meter}, Units: []float64{3, 3, 0}})
	_, r = bookOn(l, ledgerNow, 0, 0, meter, log, other)
	if got := r.Keys[0].Levels; !slices.Equal(got, []float64{4, 1, 4}) {
		t.Errorf("levels %v, want 4, 1 and 4", got)
	}
}

// In a log nothing starts before what was booked earlier, and what was forced
// in takes the place of the last.
func TestLogKeepsItsOrder(t *testing.T) {
	log := StoreLimit{ID: "a", Kind: LogLimit, Size: 3, Per: time.Second}
	at := ledgerNow.UnixMicro()
	a := LedgerAccount{Kind: LogLimit, ID: "a", Entries: []LedgerEntry{{at + 500, 1}}}
	if got := a.logWait(log, at, 1); got != 500 {
		t.Errorf("a wait of %d µs, want 500 as the one before", got)
	}
	l, _ := bookOn(Ledger{}, ledgerNow, 0, 3, log)
	l, r := bookOn(l, ledgerNow, time.Second, 1, log)
	if r.Wait != time.Second {
		t.Fatalf("%+v", r)
	}
	l, r = bookOn(l, ledgerNow.Add(time.Second), time.Second, 1, log)
	if r.Wait != 0 {
		t.Fatalf("%+v", r)
	}
	next, _ := BookLedgers(ledgerNow.Add(time.Second/2), []Ledger{{Gen: 1, Expires: math.MaxInt64,
		Accounts: []LedgerAccount{{Kind: LogLimit, ID: "a", Entries: []LedgerEntry{{at + 1_000_000, 1}}}}}},
		Booking{Force: true, Draws: []Draw{{Key: "k", Limits: []StoreLimit{log}, Units: []UnitCost{{"u", 2, 2}}}}})
	if es := next[0].Accounts[0].Entries; len(es) != 1 || es[0] != (LedgerEntry{at + 1_000_000, 3}) {
		t.Errorf("entries %+v, want 3 units at the last one's instant", es)
	}
	_, r = bookOn(l, ledgerNow.Add(2*time.Second), 0, 1, log)
	if got := r.Keys[0].Levels[0]; got != 1 {
		t.Errorf("level %v when all others have left, want 1", got)
	}
}

// With two keys the first request goes if the batch does not fit but it does,
// and nothing is booked ahead.
func TestTwoKeysAreBookedTogether(t *testing.T) {
	limit := StoreLimit{ID: "m", Kind: MeterLimit, Size: 5, Rate: 1}
	b := Booking{MaxWait: time.Minute, Draws: []Draw{
		{Key: "a", Limits: []StoreLimit{limit}, Units: []UnitCost{{"u", 3, 9}}},
		{Key: "b", Limits: []StoreLimit{limit}, Units: []UnitCost{{"u", 3, 9}}},
	}}
	next, r := BookLedgers(ledgerNow, make([]Ledger, 2), b)
	if r.Outcome != BookedOne || r.Wait != 0 || r.Draw != -1 {
		t.Fatalf("got %+v, want the first one now", r)
	}
	if _, r = BookLedgers(ledgerNow, next, b); r.Outcome != Refused || r.Wait != time.Second || r.Draw != 0 || r.Limit != 0 {
		t.Errorf("got %+v, want a wait of 1s at the first of two that are as short", r)
	}
	b.Draws = b.Draws[:1]
	if _, r = BookLedgers(ledgerNow, next[:1], b); r.Outcome != BookedOne || r.Wait != time.Second {
		t.Errorf("got %+v, want one booked 1s ahead", r)
	}
}

// A memory of units that are over is not put back.
func TestMergeForgetsWhatIsOver(t *testing.T) {
	log := StoreLimit{ID: "a", Kind: LogLimit, Size: 3, Per: time.Second}
	for seen, want := range map[int64]float64{0: 0, 1: 2} {
		var a LedgerAccount
		a.merge(log, 1_000_000, seen, 2)
		if a.total() != want {
			t.Errorf("seen at %d: %v units, want %v", seen, a.total(), want)
		}
		a = LedgerAccount{Entries: []LedgerEntry{{500, 2}}}
		a.merge(log, 1_000_000, 900, 2)
		if len(a.Entries) != 1 {
			t.Errorf("entries %v of which none was missing", a.Entries)
		}
	}
}

// Of a state that was rolled back everybody who remembers more is heard, also
// after another has written; what everybody has seen by now is no memory.
func TestRolledBackStateIsHealedByAll(t *testing.T) {
	book := func(now time.Time, l Ledger, n int64, seen Standing) (Ledger, Booked) {
		limit := StoreLimit{ID: "a", Kind: LogLimit, Size: 10, Per: time.Hour}
		next, r := BookLedgers(now, []Ledger{l}, Booking{Draws: []Draw{{Key: "k", Limits: []StoreLimit{limit},
			Units: []UnitCost{{Unit: requests, First: n, All: n}}, Seen: Seen{Standing: seen}}}})
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
	if r.Outcome != BookedAll || r.Keys[0].Levels[0] != 8 || l.Gen == old.Gen {
		t.Fatalf("got %+v, want the last of 8, of another state", r)
	}
	healed, r := book(now, l, 2, last.Keys[0])
	if r.Outcome != Refused || r.Keys[0].Levels[0] != 9 || healed.Gen != l.Gen {
		t.Errorf("got %+v, want a refusal at 9", r)
	}
	if again, r := book(now.Add(time.Second), healed, 2, r.Keys[0]); r.Outcome != Refused || again.At != healed.At {
		t.Errorf("got %+v, want a refusal that writes nothing", r)
	}
}

// A refusal writes nothing for a key that has nothing to keep.
func TestRefusalHealsWhatThereIs(t *testing.T) {
	limit := StoreLimit{ID: "a", Kind: LogLimit, Size: 1, Per: time.Hour}
	b := Booking{Draws: []Draw{
		{Key: "host", Units: []UnitCost{{Unit: requests, First: 1, All: 1}}},
		{Key: "route", Limits: []StoreLimit{limit}, Units: []UnitCost{{Unit: requests, First: 1, All: 1}}},
	}}
	ls, r := BookLedgers(ledgerNow, make([]Ledger, 2), b)
	b.Draws[0].Seen = Seen{Standing: Standing{Gen: 7, At: 1}} // of a pause that is over
	b.Draws[1].Seen = Seen{Standing: r.Keys[1]}
	if next, r := BookLedgers(ledgerNow.Add(time.Second), ls, b); r.Outcome != Refused || next != nil {
		t.Errorf("got %+v and %+v, want a refusal that writes nothing", r, next)
	}
	b.Draws[0].Seen.Paused = time.Minute
	if next, r := BookLedgers(ledgerNow.Add(time.Second), ls, b); r.Outcome != Refused || len(next) != 2 || next[0].Pause == 0 || r.Keys[0].Gen != next[0].Gen {
		t.Errorf("got %+v and %+v, want a refusal that keeps the pause", r, next)
	}
}
