package throttle

import (
	"testing"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// These look inside: accounts are told apart by route, and rates from places in flight,
// also by those who call these functions, and no test in virtual time can set the clock
// on the wall.

// A meter that takes another's place is told only what counted the same.
func TestAMeterInheritsOnlyWhatCountedTheSame(t *testing.T) {
	old := func(rate, route string, spent int64) *queue.Account {
		r := MustParseBudget(rate).Rates[0]
		m := meter.NewRated(1, meter.NewRate(r.spec()), &meter.Wall{})
		m.Take(1, spent, false)
		return &queue.Account{Meter: m, Label: &queue.Label{Unit: r.unit(), Route: route, Rate: meter.NewRate(r.spec())}}
	}
	all := []*queue.Account{old("10/m", "", 1), old("10/h", "", 2), old("10/h", "/a", 3), old("10 tokens/d", "", 4), old("10/s", "", 5),
		{Meter: &meter.InFlight{}, Label: &queue.Label{Unit: requests}}}
	for _, test := range []struct {
		unit, route string
		want        int64
	}{{requests, "", 2}, {requests, "/a", 3}, {"tokens", "", 4}, {"tokens", "/a", 0}, {"bytes", "", 0}} {
		m := heir(all, &queue.Label{Unit: test.unit, Route: test.route})
		got := int64(0)
		if m != nil {
			got = 10 - int64(m.State(1).Unspent)
		}
		if got != test.want {
			t.Errorf("%+v: got the meter that saw %d", test, got)
		}
	}
}

// A rate does not go on as places in flight, nor these as a rate.
func TestWhatGoesOnAsTheSame(t *testing.T) {
	if r := meter.NewRate(MustParseBudget("5/m").Rates[0].spec()); sameCount(r, nil) || sameCount(nil, r) || !sameCount(nil, nil) {
		t.Error("a rate goes on as places in flight")
	}
}

// Rates that look at the clock on the wall are counted, whoever's they are.
func TestWallsOfBudgets(t *testing.T) {
	b, err := newBudgets(1, MustParseBudget("5/d align UTC, 1/s"), map[string]Budget{"a": MustParseBudget("5/d align UTC"), "b": MustParseBudget("7/s, 8/m")})
	if err != nil || b.walls() != 2 { // of five
		t.Errorf("%d, %v, want 2", b.walls(), err)
	}
}
