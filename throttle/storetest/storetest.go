// Package storetest checks that a [store.Store] keeps its contract.
//
// A store's own tests call [Run] with a function that opens a fresh state:
//
//	storetest.Run(t, func(t *testing.T) storetest.Setup { ... })
//
// [Test] runs the same checks without a testing.T and returns what failed. It is for
// tests that want to see that a broken store is found out.
package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/store"
)

// A Setup is a fresh, empty state and the Stores that share it. In the checks, each of
// these stands for one process.
type Setup struct {
	// Stores are at least two Stores that share the state, as those of two processes do.
	Stores []store.Store
	// Advance moves the store's clock on by d. A store that reads the
	// machine's clock is tested in a testing/synctest bubble, with time.Sleep.
	Advance func(d time.Duration)
	// Back says that Advance may be given a negative duration. False: checks of a clock
	// that steps back are left out.
	Back bool
	// Now reads the store's clock. It must stand still except when Advance moves it.
	Now func() time.Time
	// Lose makes the store forget everything, as a crash does. Nil if it cannot.
	Lose func()
	// Save keeps the state as it is and returns what puts it back, as a restart
	// from a dump or the promotion of a late replica does. Nil if it cannot, or
	// if the store cannot tell that this has happened.
	Save func() (restore func())
	// Era is the store's [store.Ledger.Era]. Nil: always zero.
	Era func() int64
}

type check struct {
	name string
	run  func(t trial)
}

func checks() []check {
	return []check{
		{"meter lets Size through at once and names the wait", meterWaits},
		{"a wait that was waited out is enough", waitIsEnough},
		{"log never holds more than Size per window", logIsExact},
		{"log with a grain never holds more than Size per window", grainIsSafe},
		{"calendar turns over at its boundary", calendarTurns},
		{"a refusal leaves no trace", refusalIsFree},
		{"limits of a key are charged all or none", limitsTogether},
		{"keys are charged all or none", keysTogether},
		{"a batch goes whole or its first request alone", batchOrFirst},
		{"bookings queue in order across handles", bookingsQueue},
		{"nothing is booked ahead on two keys", keysNeverAhead},
		{"a key without limits is only paused", limitless},
		{"a cost that never fits says so", neverFits},
		{"a cost above a bucket goes when it is full", aboveBucket},
		{"a cost above a burst goes after idling", aboveBurst},
		{"force charges above the size", forceCharges},
		{"a refund gives back what has not drained", refundGivesBack},
		{"a late refund gives back nothing that others have booked since", lateRefund},
		{"a refund lets nobody start together with those booked ahead", refundBehind},
		{"a refund of an older state changes nothing", refundOfOldState},
		{"a refund of what has left the window changes nothing", refundOfOldUnits},
		{"moved units count from when they came", movedCounts},
		{"moved units count in the window they came in", movedIntoWindow},
		{"what is under way is free when it ends or nobody speaks of it", underWay},
		{"a pause holds for every handle and ends without a herd", pauseHolds},
		{"a later pause wins and a resume ends it", pauseLaterWins},
		{"a guess holds but is no pause, and a resume ends it", guessHolds},
		{"a stated quota binds every handle until its reset", statedBinds},
		{"a stated quota only tightens within its window", statedTightens},
		{"a refill by hand is there for every handle", refills},
		{"a clock that steps back stalls nobody and mints nothing", clockBack},
		{"a clock that steps ahead ends no window", clockAhead},
		{"a clock that steps far ahead loses nothing that processes remember", clockFarAhead},
		{"a call that comes late is no step of the clock", clockSlow},
		{"a limit drains while others of its key are drawn on", undrawnDrains},
		{"a limit lasts while others of its key are drawn on", undrawnLasts},
		{"a clock that steps back moves limits that are not drawn on", undrawnKeepsItsDistance},
		{"keys are any bytes", anyKey},
		{"faulty bookings are refused by name", faults},
		{"state comes back from what a process has seen", heals},
		{"what comes back ends in time", healsInTime},
		{"nothing is charged to a lost state while others may remember more", healsBeforeCharging},
		{"a lost state is healed though a newcomer was served", healsAfterNewcomers},
		{"a restored state is healed whoever comes first", restoredHeals},
		{"a restored state that nobody remembers more of serves after a second", restoredServes},
		{"a refund of what a restored state does not know changes nothing", restoredRefund},
		{"handles that race never exceed the size", races},
		{"a cancelled context books nothing", cancelled},
		{"generated histories match store.Ledger", histories},
	}
}

// Run runs every check as a subtest, each on a state of its own.
func Run(t *testing.T, open func(t *testing.T) Setup) {
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			if err := c.do(open(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

// Test runs every check, each on a state of its own, and returns what failed,
// joined; nil if the store keeps the contract.
func Test(open func() Setup) error {
	var errs []error
	for _, c := range checks() {
		if err := c.do(open()); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.name, err))
		}
	}
	return errors.Join(errs...)
}

func meter(id string, size, rate float64) store.Limit {
	return store.Limit{ID: id, Kind: store.MeterLimit, Size: size, Rate: rate}
}

func windowLog(id string, size float64, per, grain time.Duration) store.Limit {
	return store.Limit{ID: id, Kind: store.LogLimit, Size: size, Per: per, Grain: grain}
}

// booking draws n requests one by one in a batch.
func booking(key string, wait time.Duration, first, all int64, ls ...store.Limit) store.Booking {
	return store.Booking{MaxWait: wait, Draws: []store.Draw{{
		Key: key, Limits: ls, Units: []store.UnitCost{{Unit: "requests", First: first, All: all}},
	}}}
}
