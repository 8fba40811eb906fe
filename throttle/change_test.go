package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle"
)

// changes is a Transport under budgets that change, and what its server saw.
// All budgets have windows of one length, so that nothing that was spent may be
// forgotten, whatever else changes.
type changes struct {
	tr     *throttle.Transport
	per    time.Duration
	mu     sync.Mutex
	limits []arrived            // in force from then on
	logs   map[string][]arrived // by host
	last   map[string]*http.Response
	counts map[string]int // of what occurred
	wg     sync.WaitGroup
	start  time.Time
}

var errMeter = meterRefusal{errors.New("open")}

// RoundTrip is the server.
func (c *changes) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Refuse") != "" {
		return nil, errMeter
	}
	cost, _ := strconv.ParseInt(r.URL.RawQuery, 10, 64)
	c.mu.Lock()
	i := len(c.logs[r.URL.Host])
	c.logs[r.URL.Host] = append(c.logs[r.URL.Host], arrived{time.Since(c.start), cost})
	c.mu.Unlock()
	resp := testnet.Answer(r, 200, http.Header{"Entry": {strconv.Itoa(i)}}, nil)
	return resp, nil
}

func (c *changes) note(what string) {
	c.mu.Lock()
	c.counts[what]++
	c.mu.Unlock()
}

// send sends a request that costs n, and waits at most that long.
func (c *changes) send(ctx context.Context, host string, n int64, refuse bool) {
	ctx = throttle.WithCost(ctx, throttle.Cost{requests: n})
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/?"+strconv.FormatInt(n, 10), nil)
	if err != nil {
		panic(err)
	}
	if refuse {
		r.Header.Set("Refuse", "yes")
	}
	begun := time.Now()
	resp, err := c.tr.RoundTrip(r)
	if time.Since(begun) > 0 {
		c.note("waits")
	}
	var e *throttle.Error
	switch {
	case errors.As(err, &e):
		c.note("refusals")
	case errors.Is(err, errMeter):
		c.note("refunds")
	case err != nil:
		c.note("cancels")
	default:
		c.note("grants")
		resp.Body.Close()
		c.mu.Lock()
		c.last[host] = resp
		c.mu.Unlock()
	}
}

// settle says that the last request to host cost n or less.
func (c *changes) settle(host string, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	resp := c.last[host]
	delete(c.last, host)
	if resp == nil {
		return
	}
	i, _ := strconv.Atoi(resp.Header.Get("Entry"))
	n = min(n, c.logs[host][i].n)
	if throttle.Settle(resp, throttle.Cost{requests: n}) == nil {
		c.logs[host][i].n = n
		c.counts["settlements"]++
	}
}

// set changes the budget of all hosts.
func (c *changes) set(limit, burst int) error {
	c.mu.Lock()
	c.limits = append(c.limits, arrived{time.Since(c.start), int64(limit)})
	c.mu.Unlock()
	c.note("changes")
	return c.tr.SetBudget("*", throttle.Budget{Rates: []throttle.Rate{{Limit: limit, Per: c.per, Burst: burst}}})
}

// limit is what was in force at some time: at the moment of a change, either.
func (c *changes) limit(at time.Duration) (most int64) {
	for i, l := range c.limits {
		if l.at <= at && (i+1 == len(c.limits) || c.limits[i+1].at >= at) {
			most = max(most, l.n)
		}
	}
	return most
}

func (c *changes) judge(fail func(string, ...any)) {
	for host, log := range c.logs {
		for i, a := range log {
			var sum int64
			for k := i; k >= 0 && a.at-log[k].at < c.per; k-- {
				sum += log[k].n
			}
			if most := c.limit(a.at); a.n > 0 && sum > most {
				fail("%s: %d units in the %v to %v, of %d; changes %v, log %v", host, sum, c.per, a.at, most, c.limits, log)
				return
			}
		}
	}
}

func (c *changes) step(ctx context.Context, s step) error {
	host := fmt.Sprint("h", s.which%5, ".example")
	switch limit := 1 + int(s.cost); {
	case s.op < 4:
		c.wg.Go(func() { c.send(ctx, host, 1+int64(s.which)%7, false) })
	case s.op == 4: // one that does not wait
		c.send(throttle.WithMaxWait(ctx, -1), host, 1+int64(s.which)%7, false)
	case s.op == 5:
		c.wg.Go(func() { c.send(ctx, host, 1+int64(s.which)%7, true) })
	case s.op == 6:
		c.settle(host, int64(s.which)%4)
	case s.op == 7:
		c.tr.Pause(host, time.Now().Add(time.Duration(s.which)*50*time.Millisecond))
	case s.op == 8:
		c.tr.Resume(host)
	default:
		return c.set(limit, 1+s.which%limit)
	}
	return nil
}

// TestNoWindowIsExceededByChanges: requests that wait, give up, are refused
// below or cost less in the end, pauses, budgets that change and hosts that are
// evicted, in any order: no window is above the limit in force.
func TestNoWindowIsExceededByChanges(t *testing.T) {
	all := make(map[string]int)
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(genStep(), 20, 120).Draw(rt, "steps")
		per := time.Second << rapid.IntRange(0, 2).Draw(rt, "per")
		limit := rapid.IntRange(1, 100).Draw(rt, "limit")
		bubble(t, rt, func(fail func(string, ...any)) {
			c := &changes{per: per, logs: make(map[string][]arrived), last: make(map[string]*http.Response), counts: all, start: time.Now()}
			c.limits = []arrived{{0, int64(limit)}}
			var err error
			if c.tr, err = throttle.New(metered{c}, throttle.Config{MaxKeys: 3, Budgets: map[string]throttle.Budget{"*": {Rates: []throttle.Rate{{Limit: limit, Per: per}}}}}); err != nil {
				panic(err)
			}
			for _, s := range steps {
				time.Sleep(s.sleep)
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(s.which+1)*s.sleep)
				defer cancel()
				if err := c.step(ctx, s); err != nil {
					fail("%v", err)
				}
			}
			c.wg.Wait()
			c.judge(fail)
			if len(c.tr.Stats().Hosts) > 3+1 {
				fail("%d hosts are kept", len(c.tr.Stats().Hosts))
			}
		})
	})
	for _, what := range []string{"grants", "waits", "cancels", "refunds", "refusals", "settlements", "changes"} {
		if all[what] == 0 {
			t.Errorf("no %s in all: the test has no teeth", what)
		}
	}
}

// The budget of one pattern leaves Default, and other patterns, as they are;
// the rules of a pool are those of all its members.
func TestSetBudgetOfOnePattern(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), throttle.Config{
			Default: throttle.MustParseBudget("5/s, pool x"),
			Budgets: map[string]throttle.Budget{"b": throttle.MustParseBudget("7/s"), "c": throttle.MustParseBudget("5/s, pool x")},
		})
		limits := func(a, b, c, other string) {
			t.Helper()
			got := make(map[string]string)
			for _, url := range []string{"http://a/", "http://b/", "http://c/", "http://other/"} {
				mustGet(t, tr, url)
				time.Sleep(time.Minute)
			}
			for _, h := range tr.Stats().Hosts {
				var all []string
				for _, x := range h.Budgets {
					all = append(all, x.Text)
				}
				got[h.Host] = strings.Join(all, ", ")
			}
			for host, want := range map[string]string{"a": a, "b": b, "c": c, "other": other} {
				if got[host] != want {
					t.Errorf("%s has %s, want %s", host, got[host], want)
				}
			}
		}
		limits("5/s", "7/s", "5/s", "5/s")
		for _, step := range []struct{ pattern, budget, a, b, c, other string }{
			{"a", "9/s", "9/s", "7/s", "5/s", "5/s"},
			{"B.", "8/s", "9/s", "8/s", "5/s", "5/s"},
			{"c", "3/s, pool x", "9/s", "8/s", "3/s", "3/s"},
			{"a", "2/s, pool y", "2/s", "8/s", "3/s", "3/s"},
		} {
			if err := tr.SetBudget(step.pattern, throttle.MustParseBudget(step.budget)); err != nil {
				t.Fatal(err)
			}
			limits(step.a, step.b, step.c, step.other)
		}
	})
}
