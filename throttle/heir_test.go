package throttle

import (
	"testing"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A meter that takes another's place is told only what counted the same.
func TestHeirs(t *testing.T) {
	old := func(rate, route string, spent int64) *account {
		r := MustParseBudget(rate).Rates[0]
		m := meter.NewRated(1, meter.NewRate(r.spec()), &meter.Wall{})
		m.Take(1, spent, false)
		return &account{meter: m, terms: &terms{unit: r.unit(), route: route, spec: meter.NewRate(r.spec())}}
	}
	all := []*account{old("10/m", "", 1), old("10/h", "", 2), old("10/h", "/a", 3), old("10 tokens/d", "", 4), old("10/s", "", 5),
		{meter: &meter.InFlight{}, terms: &terms{unit: requests}}}
	for _, test := range []struct {
		unit, route string
		want        int64
	}{{requests, "", 2}, {requests, "/a", 3}, {"tokens", "", 4}, {"tokens", "/a", 0}, {"bytes", "", 0}} {
		m := heir(all, &terms{unit: test.unit, route: test.route})
		got := int64(0)
		if m != nil {
			got = 10 - int64(m.State(1).Unspent)
		}
		if got != test.want {
			t.Errorf("%+v: got the meter that saw %d", test, got)
		}
	}
}
