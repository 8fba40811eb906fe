package sim

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirhttp/weir"
	"github.com/weirhttp/weir/bench/rival"
	"github.com/weirhttp/weir/throttle"
)

// overload is E9: more than the quota is offered, and callers have deadlines.
func overload() scenario {
	c := weir.Config{}
	c.Throttle.Default = throttle.MustParseBudget("100/s burst 1")
	told := stubborn()
	told.Rate = rival.Rate{Limit: 100, Per: time.Second, Bucket: 1}
	return scenario{
		id: "E9", what: "150/s offered to a budget of 100/s for 60 s, deadline 2 s, service 100 ms", quick: true,
		strategies: append([]strategy{weirWith(c), rightRate(100, 1)}, libraries(told)...),
		targets:    []target{least("share in time", 0.62, 0.55), most("quota wasted", 0.06, 0.15), most("p99 time to rejection (ms)", 1, 2000)},
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			s := newServer(seed, newBucket(101, 10), silent)
			s.oneWay = [2]time.Duration{0, 0}
			s.work = func(*server, *http.Request) outcome { return outcome{took: 100 * time.Millisecond} }
			cl := st.make(s, seed)
			call := func(ctx context.Context) bool {
				ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
				defer cancel()
				return cl.call(ctx)
			}
			var mu sync.Mutex
			good, calls := 0, 0
			var rejected []float64
			offer(t.Context(), newDice(seed), 150, time.Minute, call, func(begin time.Time, ok bool) {
				mu.Lock()
				defer mu.Unlock()
				calls++
				if ok {
					good++
				} else {
					rejected = append(rejected, time.Since(begin).Seconds()*1000)
				}
			})
			r.add("share in time", float64(good)/float64(calls))
			r.add("quota wasted", float64(s.arrivals-good)/float64(s.arrivals))
			r.add("median time to rejection (ms)", quantile(rejected, 0.5))
			r.add("p99 time to rejection (ms)", quantile(rejected, 0.99))
		},
	}
}

// A tenant is who shares a budget with others.
type tenant struct {
	name      string
	perSecond float64
	lanes     int // that its requests take in turns: its weight
	priority  int
}

type tenantKey struct{}

// service is what became of a tenant's calls.
type service struct {
	calls, good float64
	waits       []float64 // of the good ones, in seconds
}

// share lets tenants offer what they do to a budget of 100/s, for half a
// minute.
func share(t *testing.T, st strategy, seed uint64, list []tenant) []service {
	c := st.make(newServer(seed, nil, silent), seed)
	out := make([]service, len(list))
	var all sync.WaitGroup
	for i, tn := range list {
		all.Go(func() {
			var mu sync.Mutex
			n := 0
			call := func(ctx context.Context) bool {
				mu.Lock()
				n++
				lane := tn.name + strings.Repeat("'", n%max(tn.lanes, 1))
				mu.Unlock()
				return c.call(throttle.WithPriority(context.WithValue(ctx, tenantKey{}, lane), tn.priority))
			}
			offer(t.Context(), newDice(seed*7+uint64(i)), tn.perSecond, 30*time.Second, call, func(begin time.Time, ok bool) {
				mu.Lock()
				defer mu.Unlock()
				if out[i].calls++; ok {
					out[i].good++
					out[i].waits = append(out[i].waits, time.Since(begin).Seconds()-0.04)
				}
			})
		})
	}
	all.Wait()
	return out
}

// budgeted is weir with 100/s, one lane per tenant or more.
func budgeted() strategy {
	c := weir.Config{}
	c.Throttle.Default = throttle.MustParseBudget("100/s burst 1")
	c.Throttle.MaxWait = time.Second
	c.Throttle.Lane = func(r *http.Request) string { lane, _ := r.Context().Value(tenantKey{}).(string); return lane }
	return weirWith(c)
}

// tenants is E10: those who share a budget. No plain strategy tells them
// apart.
func tenants() []scenario {
	equal := scenario{
		id: "E10", what: "budget 100/s; lanes offer 400, 20 and 20/s for 30 s", quick: true,
		strategies: []strategy{budgeted()},
		targets: []target{least("share of the large lane", 0.58, 0.5), most("share of the large lane ", 0.62, 0.7),
			most("p99 wait of small lanes (s)", 0.03, 0.3)},
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			got := share(t, st, seed, []tenant{{name: "large", perSecond: 400}, {name: "small 1", perSecond: 20}, {name: "small 2", perSecond: 20}})
			part := got[0].good / (got[0].good + got[1].good + got[2].good)
			r.add("share of the large lane", part)
			r.add("share of the large lane ", part)
			r.add("p99 wait of small lanes (s)", quantile(append(got[1].waits, got[2].waits...), 0.99))
		},
	}
	weighted := scenario{
		id: "E10", what: "budget 100/s; tenants of weight 1, 1 and 2 offer 100, 100 and 200/s for 30 s; two lanes are weight 2", quick: true,
		strategies: []strategy{budgeted()},
		targets:    []target{least("share of weight 2", 0.48, 0.45), most("share of weight 2 ", 0.52, 0.55), least("Jain index of the others", 0.99, 0.95)},
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			got := share(t, st, seed, []tenant{{name: "a", perSecond: 100}, {name: "b", perSecond: 100}, {name: "c", perSecond: 200, lanes: 2}})
			part := got[2].good / (got[0].good + got[1].good + got[2].good)
			r.add("share of weight 2", part)
			r.add("share of weight 2 ", part)
			r.add("Jain index of the others", jain([]float64{got[0].good, got[1].good}))
		},
	}
	critical := scenario{
		id: "E10", what: "budget 100/s; 190/s offered for 30 s, and 10/s of a higher priority", quick: true,
		strategies: []strategy{budgeted()},
		targets:    []target{least("share of critical served", 1, 0.99), most("p99 wait of critical (s)", 0.03, 0.1)},
		run: func(t *testing.T, st strategy, seed uint64, r *result) {
			got := share(t, st, seed, []tenant{{perSecond: 190}, {perSecond: 10, priority: 1}})
			r.add("share of critical served", got[1].good/got[1].calls)
			r.add("p50 wait of critical (s)", quantile(got[1].waits, 0.5))
			r.add("p99 wait of critical (s)", quantile(got[1].waits, 0.99))
		},
	}
	return []scenario{equal, weighted, critical}
}
