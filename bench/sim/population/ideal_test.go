package population

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// some calls f with cases of both sets.
func some(n int, f func(c *Case)) {
	for _, set := range []Set{Train, Test} {
		for i := range n {
			f(Draw(set, 1<<40, i)) // a seed of no table
		}
	}
}

// TestIdealIsNeverRefused holds that the server, met at the instants of the
// plan, accepts every request.
func TestIdealIsNeverRefused(t *testing.T) {
	some(100, func(c *Case) {
		var order []int
		p := c.Ideal()
		for k := range p.Calls {
			order = append(order, k)
		}
		slices.SortStableFunc(order, func(a, b int) int { return int(p.Calls[a].arrives - p.Calls[b].arrives) })
		w := &world{c: c}
		for _, g := range c.gates() {
			w.gates = append(w.gates, &gate{Limiter: g})
		}
		for _, k := range order {
			s := p.Calls[k]
			if _, ok := w.gates[c.Demand.Routes[k]].best(s.arrives); !ok {
				t.Errorf("%s: %v: call %d is refused at %v", c.Replay(), c, k, s.arrives)
				break
			}
			if up, down := c.way(k, 0); s.arrives < s.want+up || s.done < s.arrives+down {
				t.Errorf("%s: call %d is faster than its way: %+v", c.Replay(), k, s)
			}
		}
	})
}

// TestIdealHoldsOverTheWire sends the plan through the world itself: nothing is
// refused, and the last answer comes when the plan says.
func TestIdealHoldsOverTheWire(t *testing.T) {
	some(20, func(c *Case) {
		if c.Kind == "instances" {
			return // the plan chooses the instance, and the balancer would not listen
		}
		synctest.Test(t, func(t *testing.T) {
			w, p := newWorld(c), c.Ideal()
			var wg sync.WaitGroup
			for k, s := range p.Calls {
				up, _ := c.way(k, 0)
				wg.Go(func() {
					time.Sleep(s.arrives - up)
					resp, err := w.RoundTrip(request(context.Background(), &call{number: k, route: c.Demand.Routes[k]}))
					if err != nil || resp.StatusCode != 200 {
						t.Errorf("%s: call %d: %v %v", c.Replay(), k, resp, err)
					}
				})
			}
			wg.Wait()
			// What arrives in the same instant may change places, and with it the work.
			if got, want := w.now().Seconds(), p.Span.Seconds(); got < .95*want-.1 || got > 1.05*want+.1 {
				t.Errorf("%s: took %.3f s, planned %.3f s", c.Replay(), got, want)
			}
		})
	})
}

// TestNobodyIsFasterThanTheIdeal holds that the plan is a bound: no caller that
// loses nothing has as many calls accepted sooner, and none takes less time. A
// thousandth is left to the luck of jitter.
func TestNobodyIsFasterThanTheIdeal(t *testing.T) {
	some(testnet.Drawn(6, 2), func(c *Case) {
		plan := c.Ideal()
		var best []time.Duration
		for _, s := range plan.Calls {
			best = append(best, s.arrives)
		}
		slices.Sort(best)
		for _, who := range Callers() {
			r, log := playAlone(t, c, who)
			if r.Lost > 0 {
				continue
			}
			if r.Time < .999 {
				t.Errorf("%s: %s: %s takes %.4f of the time", c.Replay(), c, who.Name, r.Time)
			}
			if c.Demand.Load == 0 || len(c.gates()) > 1 {
				continue // who begins sooner depends on the answers before
			}
			k := 0
			for _, a := range log {
				if a.OK {
					if a.At < best[k]-time.Microsecond {
						t.Errorf("%s: %s: acceptance %d at %v, planned at %v", c.Replay(), who.Name, k, a.At, best[k])
						break
					}
					k++
				}
			}
		}
	})
}
