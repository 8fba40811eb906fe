package store_test

import (
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle/store"
)

// More are for a run by hand: with -ledger.underway 3 a model has a few million states.
var (
	modelOrderAsks  = flag.Int("ledger.asks", testnet.Drawn(2, 1), "how often each of two processes asks in all orders")
	modelOrderUnder = flag.Int("ledger.underway", 2, "how many messages are under way at most in all orders")
)

// modelOrders are the models of which all orders are explored. Time goes on by half a second, and a
// message that takes longer than that is lost.
func modelOrders() map[string]model {
	models := map[string]model{
		"log":           {limit: store.Limit{ID: "l", Kind: store.LogLimit, Size: 2, Per: 500 * time.Millisecond}},
		"log, ahead":    {limit: store.Limit{ID: "l", Kind: store.LogLimit, Size: 1, Per: 500 * time.Millisecond}, wait: 500 * time.Millisecond},
		"meter":         {limit: store.Limit{ID: "m", Kind: store.MeterLimit, Size: 2, Rate: 2}},
		"meter, ahead":  {limit: store.Limit{ID: "m", Kind: store.MeterLimit, Size: 1, Rate: 4}, wait: 500 * time.Millisecond},
		"calendar":      {limit: store.Limit{ID: "c", Kind: store.CalendarLimit, Size: 2, Per: time.Hour, Ends: modelStart.Add(time.Minute)}},
		"log, of three": {limit: store.Limit{ID: "l", Kind: store.LogLimit, Size: 2, Per: 500 * time.Millisecond}},
	}
	for name, m := range models {
		m.most, m.tick, m.delay, m.still = *modelOrderUnder, 2, 2, true
		models[name] = m
	}
	return models
}

// asking is the state in which nobody has asked yet, and each of two processes will so often; of
// three each will once less.
func asking(name string, asks int) modelState {
	first := modelFirst(name)
	for i := range first.procs {
		first.procs[i].asks = max(1, asks+2-len(first.procs))
	}
	return first
}

// No order of what two processes that ask twice each, or three that ask once, do breaks a limit,
// whatever is late, lost or overtaken by what was sent after it, and whenever the server is put
// back to an earlier state or loses it. Nothing is left to explore at the end.
func TestLedgerModelInAllOrders(t *testing.T) {
	for name, m := range modelOrders() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, broken := m.exhaust(asking(name, *modelOrderAsks))
			t.Log("all of", n, "states")
			if broken != "" {
				t.Error(broken)
			}
		})
	}
}

// The model finds a ledger that does not heal, one that takes back what has drained or was lost,
// and a process that forgets what the ledger has lost when a call is answered that did not tell it.
func TestLedgerModelFindsFaults(t *testing.T) {
	for _, test := range []struct{ fault, name string }{{"no heal", "log"}, {"no heal", "meter"}, {"no heal", "calendar"}, {"mint", "meter, ahead"}, {"forget", "log"}} {
		m := modelOrders()[test.name]
		m.fault = test.fault
		n, broken := m.exhaust(asking(test.name, 2))
		t.Logf("%s of a %s: %s (%d states)", test.fault, test.name, broken, n)
		if broken == "" {
			t.Errorf("%s of a %s was not found", test.fault, test.name)
		}
	}
}

func joined(path []string) string { return strings.Join(path, ", ") }

// broken is b as a ledger gets it that does not hear what processes remember.
func (m *model) broken(b store.Booking) store.Booking {
	if m.fault == "no heal" {
		b.Draws[0].Seen = store.Seen{}
	}
	return b
}

// brokenRestore is l as a ledger that does not notice that it was put back.
func (m *model) brokenRestore(l store.Ledger) store.Ledger {
	if m.fault == "no heal" && l.Gen != 0 {
		l.Gen = l.Era<<19 | l.Gen&(1<<19-1)
	}
	return l
}

// brokenRefund is r for a ledger that takes back whatever is given.
func (m *model) brokenRefund(l store.Ledger, r store.Refund) store.Refund {
	if m.fault == "mint" {
		r.Gen, r.At, r.Held = l.Gen, l.At, []float64{1e9}
	}
	return r
}
