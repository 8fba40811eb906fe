package breaker_test

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/breaker"
)

// Stats are in the order of hosts, and of shards within one.
func TestStatsAreInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cs := circuits(t, breaker.Config{})
		rt := cs.Meter(&host{answer: down})
		for i := range 20 {
			get(rt, fmt.Sprintf("http://h%02d.example/", i*7%20))
		}
		cs.Force("h05.example", breaker.Open)
		cs.Force("a.example", breaker.Open)
		list := cs.Stats().Circuits
		if len(list) != 21 || !slices.IsSortedFunc(list, func(a, b breaker.CircuitStats) int { return cmp.Compare(a.Host, b.Host) }) {
			t.Errorf("%d circuits: %+v", len(list), list)
		}
	})
}

// Stats leaves out slow calls that have left the window.
func TestSlowCallsLeaveStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cs := circuits(t, breaker.Config{Window: 10 * time.Second, SlowCall: time.Second})
		rt := cs.Meter(&host{answer: func(r *http.Request) (*http.Response, error) {
			time.Sleep(2 * time.Second)
			return status(200)(r)
		}})
		get(rt, site)
		if list := cs.Stats().Circuits; len(list) != 1 || list[0].Slow != 1 {
			t.Fatalf("stats %+v, want one slow call", list)
		}
		time.Sleep(11 * time.Second)
		for _, c := range cs.Stats().Circuits {
			if c.Slow != 0 {
				t.Errorf("stats %+v eleven seconds later", c)
			}
		}
	})
}
