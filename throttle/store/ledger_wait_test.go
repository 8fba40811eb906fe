package store

import (
	"math"
	"testing"
	"time"
)

// A meter of which nobody asked anything is empty, however slowly it drains.
func TestLedgerOfASlowMeterAtRest(t *testing.T) {
	slow := Limit{ID: "m", Kind: MeterLimit, Size: 1e6, Rate: 1.0 / 86400, Credit: -1}
	if _, r := Book(time.Unix(1_800_000_000, 0), make([]Ledger, 1), asking(slow, 1e6)); r.Outcome != BookedAll {
		t.Errorf("%v, want all of it", r.Outcome)
	}
}

// Credit for idleness ends with a pause: it is gathered anew from its end.
func TestLedgerIdled(t *testing.T) {
	p := Limit{Kind: MeterLimit, Size: 2, Rate: 1, Credit: 8}
	for _, test := range []struct {
		level float64
		pause int64 // µs from now; zero: none
		want  float64
	}{{-8, 0, -8}, {-8, -3_000_000, -3}, {-1, -3_000_000, -1}, {-8, 2_000_000, 2}, {5, 2_000_000, 5}} {
		v := ledgerView{now: 100_000_000}
		if test.pause != 0 {
			v.ledger.Pause = v.now + test.pause
		}
		if got := v.idled(p, &Account{Level: test.level}); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

// A cost within the credit goes when the meter has been empty for as long as its excess
// takes to drain, also if the credit is a part of a unit.
func TestACreditOfPartOfAUnit(t *testing.T) {
	const at = 1_800_000_000_000_000
	p := Limit{ID: "m", Kind: MeterLimit, Size: 1.75, Rate: 1, Credit: .5}
	for idle, want := range map[int64]int64{0: 250_000, 100_000: 150_000, 250_000: 0, 400_000: 0} {
		v := ledgerView{now: at}
		if got := v.limitWait(p, &Account{Level: -float64(idle) / 1e6, At: at}, 2); got != want {
			t.Errorf("empty for %d µs: a wait of %d µs, want %d", idle, got, want)
		}
	}
}

// A batch fits into a log when what is in it leaves, and not a microsecond before.
func TestLedgerBatchFits(t *testing.T) {
	const at = 1_800_000_000_000_000
	l := Limit{ID: "l", Kind: LogLimit, Size: 2, Per: time.Second}
	full, _ := Book(micro(at), make([]Ledger, 1), asking(l, 2))
	for after, want := range map[int64]Outcome{999_998: Refused, 999_999: Refused, 1_000_000: BookedAll} {
		b := asking(l, 2)
		b.Draws[0].Units[0].First = 2
		if _, r := Book(micro(at+after), full, b); r.Outcome != want {
			t.Errorf("after %d µs: %v, want %v", after, r.Outcome, want)
		}
	}
}

// In a log nothing starts before what was booked earlier, and what was forced
// in takes the place of the last.
func TestLogKeepsItsOrder(t *testing.T) {
	log := Limit{ID: "a", Kind: LogLimit, Size: 3, Per: time.Second}
	at := ledgerNow.UnixMicro()
	a := Account{Kind: LogLimit, ID: "a", Entries: []Entry{{at + 500, 1}}}
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
	next, _ := Book(ledgerNow.Add(time.Second/2), []Ledger{{Gen: 1, Expires: math.MaxInt64,
		Accounts: []Account{{Kind: LogLimit, ID: "a", Entries: []Entry{{at + 1_000_000, 1}}}}}},
		Booking{Force: true, Draws: []Draw{{Key: "k", Limits: []Limit{log}, Units: []UnitCost{{"u", 2, 2}}}}})
	if es := next[0].Accounts[0].Entries; len(es) != 1 || es[0] != (Entry{at + 1_000_000, 3}) {
		t.Errorf("entries %+v, want 3 units at the last one's instant", es)
	}
	_, r = bookOn(l, ledgerNow.Add(2*time.Second), 0, 1, log)
	if got := r.Keys[0].Levels[0]; got != 1 {
		t.Errorf("level %v when all others have left, want 1", got)
	}
}
