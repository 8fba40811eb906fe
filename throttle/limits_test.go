package throttle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

func TestBadSettingsAreNamed(t *testing.T) {
	rate := func(r Rate) Config { return Config{Default: Budget{Rates: []Rate{r}}} }
	tests := []struct {
		c    Config
		want string
	}{
		{rate(Rate{Per: time.Second}), "Default.Rates[0].Limit: 0 is less than 1"},
		{rate(Rate{Limit: -3, Per: time.Second}), "Limit: -3"},
		{rate(Rate{Limit: 1}), "Per: 0s is not positive"},
		{rate(Rate{Limit: 1, Per: -time.Second}), "Per: -1s"},
		{rate(Rate{Limit: 1, Per: math.MaxInt64}), "is more than 10 years"},
		{rate(Rate{Limit: 1, Per: 1, Burst: -1}), "Burst: -1"},
		{rate(Rate{Limit: 1, Per: 1, Burst: 2}), "Burst: 2 exceeds the limit of 1"},
		{rate(Rate{Limit: 1, Per: 1, Bucket: -1}), "Bucket: -1"},
		{rate(Rate{Limit: 1, Per: 1, Bucket: 2, Burst: 1}), "Bucket: 2 stands beside Burst 1"},
		{rate(Rate{Limit: 1, Per: 1, Bucket: 2, Align: time.UTC}), "Bucket: 2 stands beside Align UTC"},
		{rate(Rate{Limit: 1, Per: 1, WarmUp: -1}), "WarmUp: -1ns"},
		{rate(Rate{Limit: 9, Per: 1, WarmUp: 1, Burst: 2}), "WarmUp: 1ns stands beside a burst of 2"},
		{rate(Rate{Limit: 1, Per: 1, Unit: "a b"}), `Unit: "a b"`},
		{Config{Default: Budget{InFlight: -1}}, "Default.InFlight: -1"},
		{Config{Budgets: map[string]Budget{"a": {InFlight: -1}}}, `Budgets["a"].InFlight: -1`},
		{Config{Budgets: map[string]Budget{"a b c": {}}}, "Budgets: "},
		{Config{Budgets: map[string]Budget{"A": {}, "a.": {}}}, "mean the same"},
		{Config{Budgets: map[string]Budget{"a": MustParseBudget("1/s, pool x"), "b": MustParseBudget("2/s, pool x")}}, "a pool is one budget"},
		{Config{MaxQueue: -1}, "MaxQueue: -1"},
		{Config{MaxKeys: -1}, "MaxKeys: -1"},
		{Config{MaxPause: -1}, "MaxPause: -1"},
		{Config{MaxKeys: 1, Budgets: map[string]Budget{"a": {}, "b": {}}}, "MaxKeys: 1 is too few"},
	}
	for _, test := range tests {
		_, err := New(nil, test.c)
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "throttle: ") {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
	for _, test := range []struct {
		c    LimiterConfig
		want string
	}{
		{LimiterConfig{Default: Budget{InFlight: -3}}, "Default.InFlight: -3"},
		{LimiterConfig{Budgets: map[string]Budget{"k": {Pool: "x"}}}, `Budgets["k"].Pool: "x"`},
		{LimiterConfig{MaxKeys: -2}, "MaxKeys: -2"},
	} {
		if _, err := NewLimiter(test.c); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
	tr := newTransport(t, nil, Config{})
	for pattern, b := range map[string]Budget{"a": {InFlight: -1}, "a b c": {}} {
		if err := tr.SetBudget(pattern, b); err == nil {
			t.Errorf("SetBudget(%q, %v) is accepted", pattern, b)
		}
	}
}

// TestDecision: the same allowed, limit, remaining, retry-after, reset-after as
// redis-cell with a burst of 5 and 60 a minute.
func TestDecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const s = time.Second
		l := newLimiter(t, "60/m bucket 5")
		steps := []struct {
			sleep time.Duration
			cost  int64
			want  Decision
		}{
			{0, 1, Decision{true, 5, 4, 0, s}},
			{0, 3, Decision{true, 5, 1, 0, 4 * s}},
			{0, 2, Decision{false, 5, 1, s, 4 * s}},
			{s, 2, Decision{true, 5, 0, 0, 5 * s}},
			{0, 1, Decision{false, 5, 0, s, 5 * s}},
			{2500 * time.Millisecond, 1, Decision{true, 5, 1, 0, 3500 * time.Millisecond}},
			{time.Hour, 1, Decision{true, 5, 4, 0, s}},
		}
		for i, step := range steps {
			time.Sleep(step.sleep)
			if got := l.Try("k", Cost{requests: step.cost}); got != step.want {
				t.Errorf("step %d: got %+v, want %+v", i, got, step.want)
			}
		}
	})
}

func TestTakeUpTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "10/s burst 4, 100 tokens/m burst 100")
		start := time.Now()
		for _, step := range []struct {
			unit       string
			most, want int64
			at         time.Duration
		}{
			{"", 3, 3, 0}, {"", 3, 1, 0}, {"", 9, 1, 100 * time.Millisecond},
			{"tokens", 70, 70, 100 * time.Millisecond}, {"tokens", 70, 30, 100 * time.Millisecond},
			{"unheard", 8, 8, 100 * time.Millisecond}, {"", 0, 0, 100 * time.Millisecond},
		} {
			n, err := l.TakeUpTo(t.Context(), "k", step.unit, step.most)
			if err != nil || n != step.want || time.Since(start) != step.at {
				t.Errorf("%+v: got %d, %v at %v", step, n, err, time.Since(start))
			}
		}
	})
}

func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := NewLimiter(LimiterConfig{Default: MustParseBudget("1/s"), MaxQueue: 3})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() { l.Take(t.Context(), "k", nil) })
		}
		synctest.Wait()
		_, err = l.Take(t.Context(), "k", nil)
		var e *Error
		if !errors.As(err, &e) || e.Reason != QueueFull || e.RetryAfter != 4*time.Second {
			t.Errorf("got %v, %+v, want a full queue and 4s", err, e)
		}
		if _, err := l.Take(t.Context(), "other", nil); err != nil {
			t.Errorf("another key: %v", err)
		}
		wg.Wait()
	})
}

// TestWaitsEndWhenTheyTooLong: MaxWait holds also where no estimate was possible.
func TestMaxWaitEndsWaitsOfUnknownLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(slow(0))
		tr := newTransport(t, b, Config{Default: Budget{InFlight: 1}, MaxWait: 5 * time.Second})
		mustGet(t, tr, "http://a/") // never closed
		_, err := get(t, t.Context(), tr, "http://a/")
		var e *Error
		if !errors.As(err, &e) || e.Reason != WaitTooLong || e.Timeout() || time.Since(b.start) != 5*time.Second {
			t.Errorf("got %v after %v, want a refusal after 5s", err, time.Since(b.start))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = get(t, ctx, tr, "http://a/")
		if !errors.As(err, &e) || !e.Timeout() || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want a refusal because of the deadline", err)
		}
		if got, want := err.Error(), "throttle: a: wait of unknown length exceeds the deadline (1 in flight)"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if s := tr.Stats().Hosts[0]; s.Queue != 0 || s.InFlight != 0 {
			t.Errorf("left behind: %+v", s)
		}
	})
}

func TestHooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type mark struct{}
		var l *Limiter
		var got []string
		l, err := NewLimiter(LimiterConfig{Default: MustParseBudget("1/s"), OnWait: func(w Wait) {
			l.Try("other", nil) // a hook may call back
			got = append(got, fmt.Sprintf("%s %s: %s, %d ahead, expect %v, over %v after %v, granted %v, %v",
				w.Key, w.Unit, w.Why, w.Ahead, w.Expect, w.Over, w.Waited, w.Granted, w.Ctx.Value(mark{})))
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.WithValue(t.Context(), mark{}, "mine")
		l.Take(ctx, "k", nil)
		l.Take(ctx, "k", nil)
		want := []string{
			"k requests: 1/s is spent, 0 ahead, expect 1s, over false after 0s, granted false, mine",
			"k requests: 1/s is spent, 0 ahead, expect 1s, over true after 1s, granted true, mine",
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestPanickingHookLeavesNothing behind: no waiter, no place.
func TestPanickingHookLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), Config{Default: MustParseBudget("1/s"), OnWait: func(Wait) { panic("hook") }})
		mustGet(t, tr, "http://a/")
		func() {
			defer func() { recover() }()
			get(t, t.Context(), tr, "http://a/")
		}()
		if s := tr.Stats().Hosts[0]; s.Queue != 0 || s.InFlight != 0 || tr.engine.waiting != 0 {
			t.Errorf("left behind: %+v", s)
		}
		time.Sleep(time.Second)
		mustGet(t, tr, "http://a/")
	})
}

// A request whose wait ended badly counts once, also if the hook panics that is
// told so.
func TestPanickingHookCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), Config{Default: MustParseBudget("1/m"), OnWait: func(w Wait) {
			if w.Over {
				panic("hook")
			}
		}})
		mustGet(t, tr, "http://a/")
		ctx, cancel := context.WithCancel(t.Context())
		for _, end := range []func(){cancel, func() { tr.Pause("a", time.Now().Add(time.Hour)) }} {
			time.AfterFunc(time.Second, end)
			func() {
				defer func() { recover() }()
				get(t, ctx, tr, "http://a/")
			}()
			ctx = t.Context()
		}
		if c := tr.Stats().Hosts[0].Counts; c.Waited != 2 || c.Cancelled != 1 || c.Refused != 1 {
			t.Errorf("%d waited, %d were cancelled, %d refused, want 2, 1 and 1", c.Waited, c.Cancelled, c.Refused)
		}
	})
}

// TestKeysAreBounded: a million keys touched once each stay within MaxKeys, those
// with something spent are not forgotten, newcomers share one account.
func TestKeysAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := NewLimiter(LimiterConfig{Default: MustParseBudget("2/h burst 2"), MaxKeys: 100})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			for range 2 {
				if !l.Try(strconv.Itoa(i), nil).Allowed {
					t.Fatal("refused")
				}
			}
		}
		n := 0
		for i := 100; i < 10000; i++ {
			if l.Try(strconv.Itoa(i), nil).Allowed {
				n++
			}
		}
		if n != 2 {
			t.Errorf("%d of the newcomers go, want 2: they share one account", n)
		}
		for i := range 100 {
			if l.Try(strconv.Itoa(i), nil).Allowed {
				t.Fatalf("key %d was forgotten with its hour not over", i)
			}
		}
		time.Sleep(2 * time.Hour)
		for i := range 10000 {
			l.Try("new"+strconv.Itoa(i), nil)
		}
		if l.keys.Len() > 100 {
			t.Errorf("%d keys kept, want at most 100", l.keys.Len())
		}
	})
}

// TestHostsBeyondMaxKeysKeepTheirBudgets: the overflow has one account for each
// set of budgets, so that no configured limit is loosened.
func TestHostsBeyondMaxKeysKeepTheirBudgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, Config{
			MaxKeys: 3, MaxWait: -1, DisableLearning: true,
			Default: MustParseBudget("1/h"),
			Budgets: map[string]Budget{"*.x": MustParseBudget("2/h burst 2"), "named": MustParseBudget("3/h burst 3")},
		})
		n := make(map[string]int)
		for i := range 300 {
			for _, host := range []string{"a" + strconv.Itoa(i) + ".x", "b" + strconv.Itoa(i)} {
				if _, err := get(t, t.Context(), tr, "http://"+host); err == nil {
					n[host[:1]]++
				}
			}
		}
		for range 10 {
			if _, err := get(t, t.Context(), tr, "http://named"); err == nil {
				n["named"]++
			}
		}
		// named, two others of their own, then 2 for *.x and 1 for the rest.
		if n["a"]+n["b"] > 2*2+3 || n["named"] != 3 {
			t.Errorf("granted %v, want 3 for named and at most 7 for all others", n)
		}
	})
}

func TestNoAllocation(t *testing.T) {
	for _, test := range []struct {
		budget string
		cost   Cost
	}{
		{"1000000000/s", nil},
		{"1000000000/s burst 1000000000", nil},
		{"1000000000/s bucket 1000000000", nil},
		{"1000000000/s, 2000000000/h burst 2000000000, 1000000000 tokens/s", Cost{"tokens": 3}},
	} {
		l := newLimiter(t, test.budget)
		for what, f := range map[string]func(){
			"Take": func() {
				if _, err := l.Take(context.Background(), "k", test.cost); err != nil {
					t.Error(err)
				}
			},
			"Try": func() {
				if !l.Try("k", test.cost).Allowed {
					t.Error("refused")
				}
			},
		} {
			if n := testing.AllocsPerRun(2000, f); n != 0 {
				t.Errorf("%s of %s: %v allocations, want 0", what, test.budget, n)
			}
		}
	}
}

// TestKeysAreSmall: an idle key with one plain rate takes at most 768 bytes.
func TestKeysAreSmall(t *testing.T) {
	const n = 20000
	l, err := NewLimiter(LimiterConfig{Default: MustParseBudget("100/m"), MaxKeys: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "user-" + strconv.Itoa(i)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for _, k := range keys {
		l.Try(k, nil)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	size := float64(after.HeapAlloc-before.HeapAlloc) / n
	t.Logf("%.0f bytes a key", size)
	if size > 768 {
		t.Errorf("%.0f bytes a key, want at most 768", size)
	}
	runtime.KeepAlive(l)
}

// TestMemoryDoesNotDependOnLimit: however large the limit and the load.
func TestMemoryDoesNotDependOnLimit(t *testing.T) {
	for _, limit := range []int{5, 64, 65, 1000000} {
		s := newRateSpec(Rate{Limit: limit, Per: time.Hour, Burst: limit})
		m := newRated(1, s, nil)
		now := instant(1)
		for i := range instant(200000) {
			now += instant(time.Second) / 7
			if m.at(now, 1) > now {
				continue
			}
			k := m.take(now, 1, false)
			if i%3 == 0 {
				m.back(now, 1, k, now, false)
			}
			if len(m.window.log) > 2*exact {
				t.Fatalf("limit %d: %d entries", limit, len(m.window.log))
			}
		}
	}
}

// TestPathsOfOneHost: every pattern that matches applies, also far beyond 64.
func TestManyRoutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budgets := map[string]Budget{"a": MustParseBudget("1000/s burst 1000")}
		for i := range 200 {
			budgets["POST a/r"+strconv.Itoa(i)] = MustParseBudget("1/h")
		}
		tr := newTransport(t, newBase(nil), Config{Budgets: budgets, MaxWait: -1, DisableLearning: true})
		for i := range 200 {
			for n := range 2 {
				r, _ := http.NewRequestWithContext(t.Context(), "POST", "http://a/r"+strconv.Itoa(i), testnet.NewBody("x"))
				_, err := tr.RoundTrip(r)
				if (err != nil) != (n == 1) {
					t.Fatalf("route %d, request %d: %v", i, n, err)
				}
			}
		}
	})
}

// TestRefusalsInWords: each says what was refused, with its figures.
func TestRefusalsInWords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := NewLimiter(LimiterConfig{Default: MustParseBudget("1/90s, 5 tokens/s burst 5"), MaxWait: time.Minute, MaxQueue: 1})
		if err != nil {
			t.Fatal(err)
		}
		take := func(ctx context.Context, key string, c Cost) string {
			_, err := l.Take(ctx, key, c)
			return fmt.Sprint(err)
		}
		take(t.Context(), "k", nil)
		take(t.Context(), "p", nil)
		l.Pause("p", time.Now().Add(time.Hour))
		short, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		long := WithMaxWait(t.Context(), time.Hour)
		go take(long, "k", nil)
		synctest.Wait()
		for got, want := range map[string]string{
			take(t.Context(), "k", nil):                         "throttle: k: wait of 3m0s exceeds the 1m0s limit (1/90s)",
			take(short, "k", nil):                               "throttle: k: wait of 3m0s exceeds the 1.5s left until the deadline (1/90s)",
			take(WithMaxWait(t.Context(), -1), "k", nil):        "throttle: k: wait of 3m0s where none is allowed (1/90s)",
			take(long, "k", nil):                                "throttle: k: queue is full (1/90s)",
			take(t.Context(), "k", Cost{"tokens": 6}):           "throttle: k: cost exceeds what can ever be spent at once (5 tokens/s burst 5)",
			take(t.Context(), "p", nil):                         "throttle: p: paused: wait of 1h0m0s exceeds the 1m0s limit (paused by hand)",
			take(t.Context(), "k", Cost{"tokens": -1}):          "throttle: cost of -1 tokens is negative",
			Reason(99).String() + WaitTooLong.String():          "reason 99wait too long",
			(&Error{Key: "k", Reason: StoreDown}).Error():       "throttle: k: store down",
			fmt.Sprint((&Error{Reason: NeverFits}).Temporary()): "false",
		} {
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		time.Sleep(time.Hour)
	})
}

// TestLimiterInFlight: a place is held until the grant is settled or cancelled.
func TestLimiterInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "100/s burst 100, 2 in flight")
		take := func() (Grant, error) { return l.Take(police(t), "k", nil) }
		first, _ := take()
		if n, err := l.TakeUpTo(police(t), "k", "", 7); n != 7 || err != nil {
			t.Errorf("a part: got %d, %v, want 7", n, err)
		}
		for range 2 {
			if !l.Try("k", nil).Allowed {
				t.Error("Try held a place")
			}
		}
		second, err := take()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := take(); err == nil || l.Try("k", nil).Allowed {
			t.Error("a third one goes")
		}
		var wg sync.WaitGroup
		start := time.Now()
		wg.Go(func() {
			if _, err := l.Take(t.Context(), "k", nil); err != nil || time.Since(start) != time.Second {
				t.Errorf("the one that waits got %v after %v, want a place after 1s", err, time.Since(start))
			}
		})
		time.Sleep(time.Second)
		first.Settle(nil)
		first.Cancel()
		wg.Wait()
		if _, err := take(); err == nil {
			t.Error("one end freed two places")
		}
		second.Cancel()
		if _, err := take(); err != nil {
			t.Error(err)
		}
	})
}

// TestLimiterPauseReachesTheQueue: who cannot wait that long is refused at once,
// and the others go one by one after it.
func TestLimiterPauseReachesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "10/s burst 2")
		burst(t, l, 2)
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := l.Take(WithMaxWait(t.Context(), 5*time.Second), "k", nil)
			var e *Error
			if !errors.As(err, &e) || e.Reason != Paused || time.Since(start) != 50*time.Millisecond {
				t.Errorf("got %v after %v, want a refusal at once", err, time.Since(start))
			}
		})
		at := make([]time.Duration, 3)
		for i := range at {
			wg.Go(func() {
				l.Take(t.Context(), "k", nil)
				at[i] = time.Since(start)
			})
		}
		time.Sleep(50 * time.Millisecond)
		l.Pause("k", time.Now().Add(10*time.Second))
		wg.Wait()
		slices.Sort(at)
		sameTimes(t, at, 10050*time.Millisecond, 10150*time.Millisecond, 10250*time.Millisecond)
	})
}

// TestOnlyTheMetersRefusalRefunds: what may have reached the server stays spent.
func TestOnlyTheMetersRefusalRefunds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			err  error
			left float64
		}{
			{meterRefusal{errors.New("open")}, 10},
			{fmt.Errorf("wrapped: %w", meterRefusal{errors.New("open")}), 10},
			{errors.New("dial tcp: connection refused"), 9},
			{&Error{Key: "a", Reason: QueueFull}, 9},
			{context.DeadlineExceeded, 9},
		} {
			tr := newTransport(t, metered{newBase(func(*http.Request) (*http.Response, error) { return nil, test.err })},
				Config{Default: MustParseBudget("10/m burst 10, 3 in flight"), DisableLearning: true})
			if _, err := get(t, t.Context(), tr, "http://a/"); !errors.Is(err, test.err) {
				t.Errorf("got %v, want %v itself", err, test.err)
			}
			b := tr.Stats().Hosts[0].Budgets
			if b[0].Left != test.left || b[1].Left != 3 {
				t.Errorf("after %v: %v units and %v places left, want %v and 3", test.err, b[0].Left, b[1].Left, test.left)
			}
		}
	})
}

// TestRoutesOfHostsBeyondMaxKeys: in the overflow too, a host's routes count.
func TestRoutesOfHostsBeyondMaxKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), Config{
			MaxKeys: 1, MaxWait: -1, DisableLearning: true,
			Budgets: map[string]Budget{"*.x": MustParseBudget("100/h burst 100"), "*.z.x/y": MustParseBudget("1/h")},
		})
		for _, step := range []struct {
			url  string
			goes bool
		}{
			{"http://first.x/", true}, {"http://a.x/y", true}, {"http://a.x/y", true},
			{"http://b.z.x/y", true}, {"http://b.z.x/y", false}, {"http://b.z.x/", true}, {"http://a.x/y", true},
		} {
			if _, err := get(t, t.Context(), tr, step.url); (err == nil) != step.goes {
				t.Errorf("%s: got %v, goes should be %v", step.url, err, step.goes)
			}
		}
	})
}

// threeTokens takes three times a token of key k.
func threeTokens(t *testing.T, l *Limiter) (grants []Grant) {
	for range 3 {
		g, err := l.Take(t.Context(), "k", Cost{"tokens": 1})
		if err != nil {
			t.Fatal(err)
		}
		grants = append(grants, g)
	}
	return grants
}

// However large what was settled is said to be, it frees nothing.
func TestHugeSettlementsDoNotOverflow(t *testing.T) {
	budgets := []string{"9 tokens/m burst 9", "9 tokens/m", "9 tokens/m bucket 9", "9 tokens/m align UTC burst 9", "900 tokens/m burst 900"}
	for _, budget := range budgets {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, budget)
			grants := threeTokens(t, l)
			for i, n := range []int64{math.MaxInt64, math.MaxInt64 / 2, math.MaxInt64 / 2} {
				grants[i].Settle(Cost{"tokens": n})
				if l.Try("k", Cost{"tokens": 1}).Allowed {
					t.Errorf("%s: there is room after settling %d units", budget, n)
				}
			}
		})
	}
}

// A store is not taken for gone because it is not told of more than it can count.
func TestHugeSettlementsReachTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := NewLimiter(LimiterConfig{Default: MustParseBudget("9 tokens/m bucket 9"), Store: NewMemoryStore(), Fleet: FleetConfig{Members: 1}})
		if err != nil {
			t.Fatal(err)
		}
		grants := threeTokens(t, l)
		for _, g := range grants {
			g.Settle(Cost{"tokens": math.MaxInt64})
			time.Sleep(time.Second)
		}
		if got := l.StoreState(); got != StoreUp {
			t.Errorf("the store is %v, want up", got)
		}
		l.Close()
	})
}
