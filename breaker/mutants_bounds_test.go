package breaker

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// What lies on a bound is allowed.
func TestConfigBounds(t *testing.T) {
	for _, c := range []Config{
		{Window: minWindow}, {Window: maxDuration}, {SlowCall: 1, SlowRate: 1}, {OpenFor: minOpenFor}, {MaxOpenFor: minOpenFor},
		{OpenFor: time.Second, MaxOpenFor: time.Second}, {MinCalls: maxCount}, {Probes: maxCount}, {Consecutive: maxCount}, {Consecutive: -1},
		{FailureRate: 1}, {Patience: maxDuration}, {RetriesOnly: true},
	} {
		if _, err := NewCircuits(c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Each Outcome has a word, and no other value has one.
func TestOutcomeWords(t *testing.T) {
	for o, want := range []string{"default", "success", "failure", "ignore", "invalid", "invalid"} {
		if got := Outcome(o).String(); got != want {
			t.Errorf("%d: %s, want %s", o, got, want)
		}
	}
}

// Stats are in the order of hosts, and of shards within one.
func TestStatsAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cs := circuits(t, Config{})
		rt := cs.Meter(&host{answer: down})
		for i := range 20 {
			get(rt, fmt.Sprintf("http://h%02d.example/", i*7%20))
		}
		cs.Force("h05.example", Open)
		cs.Force("a.example", Open)
		list := cs.Stats().Circuits
		if len(list) != 21 || !slices.IsSortedFunc(list, func(a, b CircuitStats) int { return cmp.Compare(a.Host, b.Host) }) {
			t.Errorf("%d circuits: %+v", len(list), list)
		}
	})
}
