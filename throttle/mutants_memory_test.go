package throttle

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/farstore"
)

// How the store does is told by Limiters and Transports alike.
func TestStoreStateIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		l, err := NewLimiter(LimiterConfig{Default: MustParseBudget("10/s"), Store: s, Fleet: FleetConfig{WhenDown: FailOpen}})
		if err != nil {
			t.Fatal(err)
		}
		tr := sharedTransports(t, s, Config{Default: MustParseBudget("10/s"), Fleet: FleetConfig{WhenDown: FailOpen}}, 1, newBase(nil))[0]
		defer tr.Close()
		ask := func(n int) {
			for range n {
				l.Take(t.Context(), "k", nil)
				mustGet(t, tr, "http://h/")
				time.Sleep(100 * time.Millisecond)
			}
		}
		ask(1)
		if l.StoreState() != StoreUp || tr.StoreState() != StoreUp {
			t.Error("it is up")
		}
		s.Fail(errors.New("gone"), false)
		ask(5)
		if l.StoreState() != StoreGone || tr.StoreState() != StoreGone {
			t.Errorf("it is gone, and said to be %v and %v", l.StoreState(), tr.StoreState())
		}
		l.Close()
		alone := newLimiter(t, "10/s")
		if alone.StoreState() != StoreUp || newTransport(t, nil, Config{}).StoreState() != StoreUp {
			t.Error("without a store nothing is down")
		}
		if _, err := (FleetConfig{WhenDown: FailOpen, Spread: -1}).new(s); err == nil || err.Error() != "throttle: Fleet.Spread: -1ns is negative" {
			t.Error(err)
		}
		for lease, ok := range map[time.Duration]bool{-1: false, 0: true, time.Minute: true, time.Minute + 1: false} {
			if _, err := (FleetConfig{WhenDown: FailOpen, Lease: lease}).new(s); (err == nil) != ok {
				t.Errorf("a lease of %v: %v", lease, err)
			}
		}
	})
}

// A trail is kept of short windows whose size is known.
func TestTrailsOfShortWindows(t *testing.T) {
	limit := headers.Limit{Remaining: known(8.0)}
	for name, test := range map[string]struct {
		q    *quota
		kept bool
	}{
		"short":       {heardQuota(8, 10, 2*sec, 2*sec, nil), true},
		"the longest": {heardQuota(8, 10, shortWindow, shortWindow, nil), true},
		"longer":      {heardQuota(8, 10, shortWindow, shortWindow+1, nil), false},
		"no window":   {heardQuota(8, 10, sec, 0, nil), false},
		"no size":     {heardQuota(8, 10, sec, sec, func(q *quota) { q.size.Known = false }), false},
		"not counted": {heardQuota(8, 10, sec, sec, func(q *quota) { q.counted = false }), false},
		"of less":     {heardQuota(8, 0.5, sec, sec, nil), false},
		"of one":      {heardQuota(1, 1, sec, sec, nil), true},
	} {
		if test.q.trace(at0(sec), at0(0), limit, 1, true, false); (test.q.trail != nil) != test.kept {
			t.Errorf("%s: kept %t", name, !test.kept)
		}
	}
	q := heardQuota(8, 10, 2*sec, 2*sec, nil)
	if d := q.trail.wait(at0(0), 10, 1, 0, 2*sec); d != forever {
		t.Errorf("none: %v", d)
	}
	for i := range 4 {
		q.trace(at0(time.Duration(i)*sec/4), at0(0), headers.Limit{Remaining: known(9 - float64(i))}, 1, false, false)
	}
	if n := q.trail.count(at0(-1)); n != 4 {
		t.Errorf("%v units on the trail", n)
	}
	if n := q.trail.count(at0(sec / 4)); n != 2 {
		t.Errorf("%v units after the second", n)
	}
	for _, test := range []struct {
		at   time.Duration
		cost float64
		want time.Duration
	}{{sec, 6, 0}, {sec, 7, sec}, {sec, 8, 5 * sec / 4}, {2 * sec, 7, 0}, {2 * sec, 8, sec / 4}, {sec, 11, forever}} {
		if got := q.trail.wait(at0(test.at), 10, test.cost, 0, 2*sec); got != test.want {
			t.Errorf("%v units at %v: %v, want %v", test.cost, test.at, got, test.want)
		}
	}
	if got := q.trail.wait(at0(sec), 10, 5, 2, 2*sec); got != sec {
		t.Errorf("with two that it misses: %v", got)
	}
	q.trace(at0(sec), at0(0), headers.Limit{Remaining: known(2.0)}, 1, true, false) // others spend of it
	if got := q.trail.wait(at0(sec), 10, 1, 0, 2*sec); got != forever {
		t.Errorf("while others spend of it: %v", got)
	}
	if got := q.trail.wait(at0(9*sec), 10, 1, 0, 2*sec); got != 0 {
		t.Errorf("four windows later: %v", got)
	}
	q.trace(at0(4*sec), at0(0), headers.Limit{}, 1, true, true)
	if q.trail.shared != at0(12*sec) {
		t.Errorf("after a refusal it is not believed until %v", q.trail.shared.Sub(at0(0)))
	}
}

// Refusals that belong to one kind take its pause and its rate along, and leave
// the others free.
func TestBlameMovesThePause(t *testing.T) {
	l := learning1()
	a, b := l.kindOf(kindKey{"GET", "a"}, hourIn), l.kindOf(kindKey{"GET", "b"}, hourIn)
	refuse := func(at time.Duration) {
		g := under(a, 1, hourIn.Add(at))
		l.finish(at0(at), g, replied, 429, headers.Signal{Throttled: true, RetryAfter: known(5 * sec)})
	}
	for i := range 3 {
		at := time.Duration(i) * 10 * sec
		refuse(at)
		for j := range 8 {
			g := under(b, 1, hourIn.Add(at+sec+time.Duration(j)))
			l.finish(at0(at+2*sec), g, replied, 200, headers.Signal{})
		}
	}
	if !a.apart || a.hold == nil || a.finder == nil || b.apart {
		t.Fatalf("apart %t, hold %v", a.apart, a.hold)
	}
	if l.hold.wait(at0(20*sec)) != 0 || a.hold.wait(at0(20*sec)) < 5*sec {
		t.Errorf("all wait %v, the kind %v", l.hold.wait(at0(20*sec)), a.hold.wait(at0(20*sec)))
	}
}
