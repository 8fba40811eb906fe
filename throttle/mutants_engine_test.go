package throttle

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A refusal names the limit that is waited for longest, whichever stands first.
func TestRefusalNamesWhatBindsLongest(t *testing.T) {
	for _, budget := range []string{"1/s burst 1, 1 tokens/m burst 1", "1 tokens/m burst 1, 1/s burst 1"} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, budget)
			cost := Cost{"tokens": 1}
			if d := l.Try("k", cost); !d.Allowed {
				t.Fatal(d)
			}
			if d := l.Try("k", cost); d.RetryAfter != time.Minute || d.ResetAfter != time.Minute || d.Remaining != 0 {
				t.Errorf("%s: %+v", budget, d)
			}
			var e *Error
			_, err := l.Take(police(t), "k", cost)
			if !errors.As(err, &e) || e.Unit != "tokens" || e.RetryAfter != time.Minute {
				t.Errorf("%s: at once: %v", budget, err)
			}
			g, _ := l.Take(t.Context(), "j", cost)
			q := newQueued(t, l)
			q.wg.Go(func() { // whose wait becomes too long on its way
				_, err := l.Take(WithMaxWait(t.Context(), 61*sec), "j", cost)
				q.mu.Lock()
				q.err["j"], q.at["j"] = err, time.Since(q.start)
				q.mu.Unlock()
			})
			time.Sleep(2 * sec)
			g.Settle(Cost{requests: 1, "tokens": 2})
			q.wg.Wait()
			if err := q.err["j"]; !errors.As(err, &e) || e.Unit != "tokens" || e.Reason != WaitTooLong || !strings.Contains(err.Error(), "1 tokens/m") {
				t.Errorf("%s: on its way: %v", budget, err)
			}
		})
	}
}

// Lowered budgets refuse at once who cannot wait that long, raised ones let go
// who can go; whoever draws on what is no limit any more goes, too.
func TestBudgetsThatChangeReachEveryWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, Config{Default: MustParseBudget("1/10s burst 1, 1 tokens/10s burst 1"), MaxWait: time.Hour, DisableLearning: true,
			Cost: func(r *http.Request) Cost { return Cost{"tokens": 1} }})
		mustGet(t, tr, "http://h/")
		var wg sync.WaitGroup
		ends := make(map[string]time.Duration)
		errs := make(map[string]error)
		var mu sync.Mutex
		start := time.Now()
		send := func(name string, most time.Duration, cost Cost) {
			ctx := WithMaxWait(WithCost(t.Context(), cost), most)
			wg.Go(func() {
				_, err := get(t, ctx, tr, "http://h/")
				mu.Lock()
				defer mu.Unlock()
				ends[name], errs[name] = time.Since(start), err
			})
			synctest.Wait()
		}
		send("patient", time.Hour, Cost{"tokens": 1})
		send("hasty", 25*sec, nil)
		send("dear", time.Hour, Cost{requests: 0, "tokens": 1})
		time.Sleep(sec)
		if err := tr.SetBudget("h", MustParseBudget("1/m burst 1, 1 tokens/m burst 1")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var e *Error
		mu.Lock()
		if !errors.As(errs["hasty"], &e) || e.Reason != WaitTooLong || ends["hasty"] != sec {
			t.Errorf("hasty: %v at %v, want a refusal at once", errs["hasty"], ends["hasty"])
		}
		mu.Unlock()
		time.Sleep(sec)
		if err := tr.SetBudget("h", MustParseBudget("1/m burst 1")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		mu.Lock()
		if errs["dear"] != nil || ends["dear"] != 2*sec {
			t.Errorf("dear: %v at %v, want it sent when its limit was gone", errs["dear"], ends["dear"])
		}
		mu.Unlock()
		tr.SetBudget("h", Budget{})
		wg.Wait()
		if errs["patient"] != nil || ends["patient"] != 2*sec {
			t.Errorf("patient: %v at %v", errs["patient"], ends["patient"])
		}
	})
}

// A place that a part, or a try, needed is given back at once.
func TestPartsHoldNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "100/s burst 100, 1 in flight")
		for _, most := range []int64{1, 1, 7} {
			if n, err := l.TakeUpTo(police(t), "k", "", most); n != most || err != nil {
				t.Errorf("%d of %d, %v", n, most, err)
			}
			if d := l.Try("k", nil); !d.Allowed {
				t.Errorf("%+v", d)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.Take(ctx, "k", nil); err != context.Canceled {
			t.Errorf("a context that has ended: %v", err)
		}
		g, err := l.Take(t.Context(), "k", nil)
		if err != nil {
			t.Fatal(err)
		}
		q := newQueued(t, l)
		q.wg.Go(func() { // who waits for a part gets all there is then
			n, err := l.TakeUpTo(t.Context(), "k", "", 1000)
			if n < 90 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		})
		time.Sleep(2 * sec)
		g.Cancel()
		q.wg.Wait()
	})
}

func newBudgetsOf(t *testing.T, other string, hosts ...string) *budgets {
	t.Helper()
	by := make(map[string]Budget)
	for i, text := range hosts {
		by[string(rune('a'+i))] = MustParseBudget(text)
	}
	b, err := newBudgets(1, MustParseBudget(other), by)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The words of what is waited for, of each kind of learned limit.
func TestWaitsForWhatWasLearned(t *testing.T) {
	l := learning1()
	k := l.kindOf(kindKey{"GET", "x"}, hourIn)
	if got := l.host.Words(hourIn); !strings.HasPrefix(got, "at most ") {
		t.Errorf("a fresh host: %s", got)
	}
	k.hold = &hold{until: at0(30 * sec), source: "retry-after"}
	if got := k.Words(hourIn); !strings.HasPrefix(got, "paused until ") || !strings.HasSuffix(got, "said by Retry-After, for GET /x only") {
		t.Errorf("a paused kind: %s", got)
	}
	if got := k.Words(hourIn.Add(30 * sec)); strings.HasPrefix(got, "paused") {
		t.Errorf("afterwards: %s", got)
	}
	l.hold = &hold{until: at0(30 * sec)}
	if got := l.Words(hourIn); !strings.HasSuffix(got, ", a guess after a refusal") {
		t.Errorf("a paused credential: %s", got)
	}
	l.hold.capped, l.hold.source = true, "x-ratelimit-reset"
	if got := l.Words(hourIn); !strings.HasSuffix(got, "said by X-RateLimit-Reset, capped") {
		t.Errorf("a capped pause: %s", got)
	}
	if d := l.ETA(hourIn, 5, 1).Until(hourIn); d != 30*sec {
		t.Errorf("paused: %v", d)
	}
	if d := k.ETA(hourIn, 5, 1).Until(hourIn); d != 30*sec {
		t.Errorf("paused: %v", d)
	}
	for _, test := range []struct {
		f    finder
		want string
	}{
		{finder{rate: 12.5}, "about 12.5/s, found by its refusals"},
		{finder{rate: 2, windows: windows{stage: sureWindows, size: 60, period: time.Minute}}, "about 60 per 1m0s, found by its refusals"},
	} {
		if got := test.f.words(); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
	for x, want := range map[float64]float64{-1: 0, 0: 0, 5: 5} {
		if got := figure(x); got != want {
			t.Errorf("figure %v: %v", x, got)
		}
	}
}

// What was learned is shown field by field.
func TestLearnedLimitsInFields(t *testing.T) {
	zero := time.Date(2026, 1, 15, 12, 0, 0, 0, time.UTC)
	l := learning1()
	l.terms.zero = zero
	a, b := l.kindOf(kindKey{"GET", "a"}, hourIn), l.kindOf(kindKey{"GET", "b"}, hourIn)
	q := heardQuota(3, 10, 30*sec, time.Minute, func(q *quota) {
		q.source, q.key.name, q.key.unit, q.terms = "x-ratelimit-remaining", "core", "tokens", l.terms
	})
	l.quotas = append(l.quotas, q)
	l.bind(q, a, 1)
	limit := func(c cause) LearnedLimit {
		x := c.limit(at0(0), l)
		x.Why = ""
		return x
	}
	until := zero.Add(time.Hour + 30*sec)
	want := LearnedLimit{Kind: LearnedQuota, Name: "core", Unit: "tokens", Route: "GET /a", Source: "said by X-RateLimit-Remaining", Limit: 10, Per: time.Minute, Left: 3, Until: until}
	if got := limit(cause{what: causeQuota, quota: q}); got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	l.bind(q, b, 1)
	want.Route = ""
	if got := limit(cause{what: causeQuota, quota: q}); got != want {
		t.Errorf("of two kinds: got %+v", got)
	}
	q.asking = true
	want.Source, want.Left, want.Until = "after the reset said by X-RateLimit-Remaining", -1, time.Time{}
	if got := limit(cause{what: causeQuota, quota: q}); got != want {
		t.Errorf("asking: got %+v", got)
	}
	a.hold = &hold{until: at0(30 * sec), source: "retry-after"}
	want = LearnedLimit{Kind: LearnedPause, Route: "GET /a", Source: "said by Retry-After", Left: -1, Until: until}
	if got := limit(cause{what: causeHold, hold: a.hold, kind: a}); got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	want.Route = ""
	if got := limit(cause{what: causeHold, hold: a.hold}); got != want {
		t.Errorf("of the credential: %+v", got)
	}
	a.hold.until = at0(0)
	want.Until = time.Time{}
	if got := limit(cause{what: causeHold, hold: a.hold}); got != want {
		t.Errorf("at its end: %+v", got)
	}
	a.finder = &finder{rate: 4}
	want = LearnedLimit{Kind: LearnedRate, Unit: requests, Route: "GET /a", Source: "found by its refusals", Limit: 4, Per: sec, Left: -1}
	if got := limit(cause{what: causeRate, finder: a.finder, kind: a}); got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	want.Route, want.Limit, want.Per = "", 60, time.Minute
	f := &finder{rate: 4, windows: windows{stage: sureWindows, size: 60, period: time.Minute}}
	if got := limit(cause{what: causeRate, finder: f, kind: b}); got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	shown := 0
	l.restrictions(at0(0), func(c cause, d time.Duration) { shown++ })
	if shown != 1 { // the quota; a's pause is over, its finder is not apart
		t.Errorf("%d are shown", shown)
	}
	a.apart, a.hold.until, l.finder = true, at0(sec), f
	b.slow.ease = 3
	shown = 0
	l.restrictions(at0(0), func(c cause, d time.Duration) { shown++ })
	if shown != 5 {
		t.Errorf("%d are shown, want a quota, two rates, a pause and requests at a time", shown)
	}
	l.terms.pausesOnly = true
	shown = 0
	if l.restrictions(at0(0), func(c cause, d time.Duration) { shown++ }); shown != 0 {
		t.Errorf("%d are shown where only pauses of the credential count", shown)
	}
}

// What is learned of a kind apart, and of all others, begins anew where it
// proved wrong.
func TestRestartedLearning(t *testing.T) {
	l := learning1()
	k := l.kindOf(kindKey{"GET", "a"}, hourIn)
	for range 3 {
		l.Take(hourIn, 1, true)
	}
	l.accept(k, hourIn, hourIn)
	if l.flow.accepted != 1 || l.flow.started != 3 || l.flow.out != 3 {
		t.Errorf("%+v", l.flow)
	}
	l.Return(hourIn, 1, 0, hourIn, 0)
	l.restart(k)
	if l.flow != (flow{out: 2}) {
		t.Errorf("%+v", l.flow)
	}
	own, common := &finder{rate: 3}, &finder{rate: 5}
	k.finder, l.finder = own, common
	l.restart(k)
	if l.finderOf(k) != common || common.rate != 0 || own.rate != 3 {
		t.Errorf("the common rate %v, its own %v", common.rate, own.rate)
	}
	k.apart = true
	l.restart(k)
	if l.finderOf(k) != own || own.rate != 0 {
		t.Errorf("its own %v", own.rate)
	}
}

// Only a Retry-After makes a 503 one that throttles.
func TestA503ThatThrottles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for status, want := range map[int][2]int64{503: {0, 1}, 429: {1, 1}, 500: {0, 0}} {
			for i, header := range []http.Header{{}, {"Retry-After": {"1"}}} {
				tr := newTransport(t, newBase(func(r *http.Request) (*http.Response, error) {
					return testnet.Answer(r, status, header, nil), nil
				}), Config{})
				mustGet(t, tr, "http://h/")
				if got := statsOf(t, tr).Throttled; got != want[i] {
					t.Errorf("%d with %v: %d throttled", status, header, got)
				}
			}
		}
	})
}

// A server that says how many requests are left binds each credential by its
// own count, and none by another's.
func TestSpentQuotasOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		left := map[string]string{"a": "0", "b": "5"}
		tr := newTransport(t, newBase(func(r *http.Request) (*http.Response, error) {
			return testnet.Answer(r, 200, http.Header{"X-Ratelimit-Limit": {"10"}, "X-Ratelimit-Remaining": {left[r.Header.Get("Authorization")]}, "X-Ratelimit-Reset": {"30"}}, nil), nil
		}), Config{})
		send := func(who string) error {
			r, _ := http.NewRequestWithContext(police(t), "GET", "http://h/x", nil)
			r.Header.Set("Authorization", who)
			_, err := tr.RoundTrip(r)
			return err
		}
		for _, who := range []string{"a", "b", "b"} {
			if err := send(who); err != nil {
				t.Fatal(err)
			}
		}
		var e *Error
		if err := send("a"); !errors.As(err, &e) || e.RetryAfter > 30*sec || e.RetryAfter < 28*sec {
			t.Errorf("got %v", err)
		}
	})
}

// Budgets are equal if all of them is; a place in flight is no rate.
func TestBudgetsThatAreEqual(t *testing.T) {
	if r := meter.NewRate(MustParseBudget("5/m").Rates[0].spec()); sameCount(r, nil) || sameCount(nil, r) || !sameCount(nil, nil) {
		t.Error("a rate goes on as places in flight")
	}
	b := MustParseBudget("5/s, 6 tokens/m, 3 in flight, pool x")
	for _, other := range []string{"5/s, 6 tokens/m, 3 in flight", "5/s, 6 tokens/m, 2 in flight, pool x", "5/s, 3 in flight, pool x", "5/s, 6 bytes/m, 3 in flight, pool x",
		"5/s, 7 tokens/m, 3 in flight, pool x", "5/s, 6 tokens/m, 3 in flight, pool y", "5/s, 6 tokens/m align UTC, 3 in flight, pool x"} {
		if c := MustParseBudget(other); b.equal(c) || c.equal(b) || !c.equal(c.clone()) {
			t.Errorf("%s equals %s", other, b)
		}
	}
	if n := newBudgetsOf(t, "5/d align UTC, 1/s", "5/d align UTC", "7/s").walls(); n != 2 {
		t.Errorf("%d rates look at the clock on the wall", n)
	}
}
