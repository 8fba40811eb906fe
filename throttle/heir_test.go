package throttle

import (
	"testing"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// A meter that takes another's place is told only what counted the same.
func TestHeirs(t *testing.T) {
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
