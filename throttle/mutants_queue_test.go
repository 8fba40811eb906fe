package throttle

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/internal/testnet"
)

// queued starts Takes, one after the other, and notes how each ended.
type queued struct {
	t     *testing.T
	l     *Limiter
	start time.Time
	mu    sync.Mutex
	at    map[string]time.Duration
	err   map[string]error
	wg    sync.WaitGroup
}

func newQueued(t *testing.T, l *Limiter) *queued {
	return &queued{t: t, l: l, start: time.Now(), at: make(map[string]time.Duration), err: make(map[string]error)}
}

func (q *queued) take(ctx context.Context, name string, c Cost) {
	q.wg.Go(func() {
		_, err := q.l.Take(ctx, "k", c)
		q.mu.Lock()
		defer q.mu.Unlock()
		q.at[name], q.err[name] = time.Since(q.start), err
	})
	synctest.Wait()
}

func (q *queued) want(name string, at time.Duration, granted bool) {
	q.t.Helper()
	if got := q.at[name]; got < at || got > at+time.Microsecond || (q.err[name] == nil) != granted {
		q.t.Errorf("%s: got %v at %v, want granted %t at %v", name, q.err[name], got, granted, at)
	}
}

// When one's wait becomes too long, those behind it move up at that moment.
func TestRefusedWaiterMovesOthersUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "1/s bucket 10")
		g, err := l.Take(t.Context(), "k", Cost{requests: 10})
		if err != nil {
			t.Fatal(err)
		}
		q := newQueued(t, l)
		q.take(WithMaxWait(t.Context(), 6*sec), "large", Cost{requests: 5})
		q.take(t.Context(), "small", nil)
		time.Sleep(sec)
		g.Settle(Cost{requests: 20})
		q.wg.Wait()
		q.want("large", 6*sec, false)
		q.want("small", 11*sec, true)
	})
}

// Each wait ends at its own time, in whatever order they began.
func TestEachWaitEndsAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "1 in flight")
		if _, err := l.Take(t.Context(), "k", nil); err != nil {
			t.Fatal(err)
		}
		q := newQueued(t, l)
		for name, d := range map[string]time.Duration{"10": 10 * sec, "5": 5 * sec, "20": 20 * sec, "7": 7 * sec, "7 too": 7 * sec} {
			q.take(WithMaxWait(t.Context(), d), name, nil)
		}
		q.wg.Wait()
		q.want("5", 5*sec, false)
		q.want("7", 7*sec, false)
		q.want("7 too", 7*sec, false)
		q.want("10", 10*sec, false)
		q.want("20", 20*sec, false)
		again := newQueued(t, l) // the timer has been stopped
		again.take(WithMaxWait(t.Context(), 3*sec), "3", nil)
		again.wg.Wait()
		again.want("3", 3*sec, false)
	})
}

// A caller who leaves is told its own cause, also if there is a deadline.
func TestCancelIsNotTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, "1/m")
		burst(t, l, 1)
		cause := errors.New("changed my mind")
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		ctx, leave := context.WithCancelCause(ctx)
		time.AfterFunc(time.Second, func() { leave(cause) })
		_, err := l.Take(ctx, "k", nil)
		var e *Error
		if err != cause || errors.As(err, &e) {
			t.Errorf("got %v, want the cause", err)
		}
	})
}

// A request's own Cancel ends its wait with an error of its own.
func TestRequestCancelEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), Config{Default: MustParseBudget("1/m")})
		mustGet(t, tr, "http://h/")
		r, _ := http.NewRequest("GET", "http://h/", nil)
		cancel := make(chan struct{})
		r.Cancel = cancel //lint:ignore SA1019 old callers still set it
		time.AfterFunc(sec, func() { close(cancel) })
		start := time.Now()
		if _, err := tr.RoundTrip(r); err != errCanceled && (err == nil || !strings.Contains(err.Error(), errCanceled.Error())) || time.Since(start) != sec {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

// Of two waiters the one of the higher class goes first, and of one class the
// older one.
func TestRank(t *testing.T) {
	for _, test := range []struct {
		p, q   int
		s, t   uint64
		before bool
	}{{0, 0, 1, 2, true}, {0, 0, 2, 1, false}, {1, 0, 2, 1, true}, {0, 1, 1, 2, false}, {-1, 0, 1, 2, false}} {
		w, v := &waiter{ask: ask{priority: test.p, seq: test.s}}, &waiter{ask: ask{priority: test.q, seq: test.t}}
		if w.before(v) != test.before {
			t.Errorf("%+v: %t", test, !test.before)
		}
	}
}

// fill makes a line of waiters: priority, lane and units of each, by arrival.
func fill(places ...ask) (*line, []*waiter) {
	l := &line{a: &account{}}
	var all []*waiter
	for i, q := range places {
		w := &waiter{ask: q}
		w.seq = uint64(i + 1)
		l.add(w, q.upTo)
		all = append(all, w)
	}
	return l, all
}

// What goes before a newcomer: all of higher classes, its own lane, and as many
// turns of each other lane as it has to await itself.
func TestUnitsAhead(t *testing.T) {
	l, _ := fill(ask{lane: "a", upTo: 1}, ask{lane: "a", upTo: 2}, ask{lane: "b", upTo: 10}, ask{lane: "b", upTo: 10},
		ask{lane: "b", upTo: 10}, ask{priority: 1, upTo: 100}, ask{priority: -1, upTo: 1000})
	for _, test := range []struct {
		priority int
		lane     string
		want     int64
	}{
		{2, "a", 0}, {1, "a", 100 / 1}, {1, "", 100}, {-1, "", 1000 + 33 + 100}, {-2, "", 1133},
		{0, "a", 100 + 3 + 30}, // third in its lane: three turns of the other
		{0, "b", 100 + 30 + 3}, // fourth: all of the other
		{0, "c", 100 + 33*2/5}, // first: one turn of each
	} {
		if got := l.ahead(&ask{priority: test.priority, lane: test.lane}); got != test.want {
			t.Errorf("priority %d, lane %q: %d units, want %d", test.priority, test.lane, got, test.want)
		}
	}
	l, _ = fill(ask{lane: "a", upTo: 10}, ask{lane: "a", upTo: 10})
	for lane, want := range map[string]int64{"a": 20, "b": 10} {
		if got := l.ahead(&ask{lane: lane}); got != want {
			t.Errorf("lane %q: %d units, want %d", lane, got, want)
		}
	}
}

// Of eight grants made while lower classes wait, one goes to the oldest of
// them; the count begins anew when they come.
func TestShareOfLowerClasses(t *testing.T) {
	var places []ask
	for range 20 {
		places = append(places, ask{priority: 1})
	}
	l, _ := fill(places...)
	grant := func() *waiter {
		w := l.pick()
		l.remove(w.claims[0], true)
		w.claims = nil
		return w
	}
	for range 3 {
		grant() // while nobody of a lower class waits
	}
	var low []*waiter
	for i, p := range []int{-1, 0, 0} {
		w := &waiter{ask: ask{priority: p, seq: uint64(100 + i)}}
		l.add(w, 1)
		low = append(low, w)
	}
	for round, want := range low[:2] {
		for i := range share - 1 {
			if w := grant(); w.priority != 1 {
				t.Fatalf("round %d: grant %d to class %d", round, i, w.priority)
			}
		}
		if w := grant(); w != want {
			t.Fatalf("round %d: the share went to %d, want %d", round, w.seq, want.seq)
		}
	}
	if l.size() != 4 || l.oldest() != l.pick() {
		t.Errorf("%d are left", l.size())
	}
}

// What a wait is for is told, also if no time is known.
func TestWhatIsWaitedForIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []Wait
		l, err := NewLimiter(LimiterConfig{Default: MustParseBudget("1 in flight"), OnWait: func(w Wait) { told = append(told, w) }})
		if err != nil {
			t.Fatal(err)
		}
		g, _ := l.Take(t.Context(), "k", nil)
		if d := l.Try("k", nil); d.Allowed || d.RetryAfter != unknown {
			t.Errorf("got %+v, want a wait of unknown length", d)
		}
		time.AfterFunc(sec, g.Cancel)
		if _, err := l.Take(t.Context(), "k", nil); err != nil {
			t.Fatal(err)
		}
		if len(told) != 2 || told[0].Why != "1 in flight, all taken" || told[0].Expect != 0 || told[1].Waited != sec || !told[1].Granted {
			t.Errorf("told %+v", told)
		}
	})
}

// A pause ends at its instant: who comes then does not wait.
func TestPauseEndsAtItsInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := 0
		l, err := NewLimiter(LimiterConfig{Default: MustParseBudget("10/s burst 10"), OnWait: func(Wait) { waits++ }})
		if err != nil {
			t.Fatal(err)
		}
		burst(t, l, 1)
		l.Pause("k", time.Now().Add(10*sec))
		time.Sleep(10 * sec)
		if _, err := l.Take(police(t), "k", nil); err != nil || waits != 0 {
			t.Errorf("got %v after %d waits", err, waits)
		}
	})
}

// Places in flight: how many are free, and that no time is known when none is.
func TestMeterOfPlaces(t *testing.T) {
	m := &flight{limit: 2}
	if m.eta(5, 0, 1) != 5 || m.eta(5, 1, 1) != never || m.at(5, 2) != 5 || m.at(5, 3) != 5 || !m.full(5) || m.room(5) != 2 {
		t.Error("two free places")
	}
	m.take(5, 1, true)
	if m.at(5, 1) != 5 || m.at(5, 2) != never || m.full(5) || m.room(5) != 1 {
		t.Error("one free place")
	}
	m.take(5, 2, true)
	if m.at(5, 1) != never || m.room(5) != 0 {
		t.Error("one too many")
	}
}

// A place is held until the body's end, and no longer, whatever is learned.
func TestPlaceIsHeldToTheEnd(t *testing.T) {
	for _, learning := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			tr := newTransport(t, newBase(slow(0)), Config{Default: Budget{InFlight: 1}, DisableLearning: !learning})
			free := func(want bool) {
				t.Helper()
				synctest.Wait()
				resp, err := get(t, police(t), tr, "http://a/")
				if (err == nil) != want {
					t.Fatalf("learning %t: a place is free: %t", learning, !want)
				}
				if err == nil {
					resp.Body.Close()
				}
			}
			resp := mustGet(t, tr, "http://a/")
			free(false)
			resp.Body.Read(make([]byte, 1))
			free(false)
			io.Copy(io.Discard, resp.Body)
			free(true)

			ctx, cancel := context.WithCancel(t.Context())
			if _, err := get(t, ctx, tr, "http://a/"); err != nil {
				t.Fatal(err)
			}
			free(false)
			cancel() // and nobody closes the body
			free(true)
		})
	}
}

// watchedContext is a context that counts who watches for its end.
type watchedContext struct {
	context.Context
	mu    sync.Mutex
	stops map[int]bool
}

func (w *watchedContext) AfterFunc(func()) func() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.stops)
	w.stops[n] = false
	return func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		was := w.stops[n]
		w.stops[n] = true
		return !was
	}
}

// A context that outlives its requests is not watched for them any more.
func TestContextIsNotWatchedLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		w := &watchedContext{Context: ctx, stops: make(map[int]bool)}
		tr := newTransport(t, newBase(slow(0)), Config{Default: Budget{InFlight: 1}})
		for range 3 {
			resp, err := get(t, w, tr, "http://a/")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		for n, stopped := range w.stops {
			if !stopped {
				t.Errorf("watch %d goes on after the body was closed", n)
			}
		}
	})
}

// PeekBody of a negative number reads nothing.
func TestPeekNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := testnet.NewBody(`{"error": "slow down"}`)
		base := newBase(func(r *http.Request) (*http.Response, error) {
			resp := testnet.Answer(r, 429, http.Header{"Content-Type": {"application/json"}}, body)
			resp.ContentLength = -1
			return resp, nil
		})
		resp := mustGet(t, newTransport(t, base, Config{PeekBody: -1}), "http://a/")
		if body.Reads() != 0 {
			t.Errorf("%d reads", body.Reads())
		}
		resp.Body.Close()
	})
}

// The budget of one pattern leaves Default, and other patterns, as they are;
// the rules of a pool are those of all its members.
func TestSetBudgetOfOnePattern(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), Config{
			Default: MustParseBudget("5/s, pool x"),
			Budgets: map[string]Budget{"b": MustParseBudget("7/s"), "c": MustParseBudget("5/s, pool x")},
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
			if err := tr.SetBudget(step.pattern, MustParseBudget(step.budget)); err != nil {
				t.Fatal(err)
			}
			limits(step.a, step.b, step.c, step.other)
		}
	})
}

// What a pool keeps per partition is bounded.
func TestPartitionsOfAPoolAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newTransport(t, newBase(nil), Config{MaxKeys: 2, Default: MustParseBudget("100/s, pool x"),
			Partition: func(r *http.Request) string { return r.URL.Path }})
		for _, path := range []string{"a", "b", "c", "d", "e"} {
			mustGet(t, tr, "http://h/"+path)
		}
		if n := len(tr.pools); n > 3 {
			t.Errorf("%d partitions of the pool are kept, want 2 and one that the others share", n)
		}
	})
}

// One who goes at once, as it ranks before those that wait, takes room from
// them: they are planned anew at once, not when something else happens.
func TestWhoGoesFirstReplansOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(slow(time.Minute))
		tr := newTransport(t, b, Config{Budgets: map[string]Budget{
			"h": MustParseBudget("12/m burst 2"), "h/b": MustParseBudget("7/m burst 1"),
		}})
		var wg sync.WaitGroup
		send := func(priority int, path string) {
			wg.Go(func() { get(t, WithPriority(t.Context(), priority), tr, "http://h/"+path) })
			synctest.Wait()
		}
		send(0, "b")
		send(0, "a")
		send(0, "b") // waits 5 s for the host and has room there then, but waits 9 s for its route
		time.Sleep(6 * time.Second)
		send(1, "a")
		if n := len(b.times()); n != 3 {
			t.Fatalf("%d have gone, want 3", n)
		}
		e := tr.engine
		e.mu.Lock()
		if len(e.dirty) > 0 {
			t.Errorf("%d lines are not planned anew", len(e.dirty))
		}
		e.mu.Unlock()
		wg.Wait()
	})
}

// A pause by hand that ends sooner than the one before, or has ended already,
// costs a host and its partitions no more than it lasts.
func TestPausesAreShortened(t *testing.T) {
	for name, until := range map[string]time.Duration{"soon": time.Second, "long ago": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBase(nil)
				tr := newTransport(t, b, Config{Default: MustParseBudget("10/s"), Partition: func(r *http.Request) string { return r.URL.Path[1:] }})
				urls := []string{"http://h/", "http://h/part"}
				for _, url := range urls {
					mustGet(t, tr, url)
				}
				tr.Pause("h", time.Now().Add(time.Hour))
				tr.Pause("h", time.Now().Add(until))
				time.Sleep(2 * time.Second)
				for _, url := range urls {
					mustGet(t, tr, url)
				}
				sameTimes(t, b.times(), 0, 0, 2*time.Second, 2*time.Second)
			})
		})
	}
}

// A pause that has ended before it was asked for takes no burst.
func TestAPauseOfThePastIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, Config{Default: MustParseBudget("6/m burst 3")})
		mustGet(t, tr, "http://h/")
		tr.Pause("h", time.Now().Add(-time.Second))
		mustGet(t, tr, "http://h/")
		mustGet(t, tr, "http://h/")
		sameTimes(t, b.times(), 0, 0, 0)
	})
}

// A wait that lasts just as long as allowed ends with room, whichever timer
// rings first.
func TestAWaitMayLastAsLongAsAllowed(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, "1/s burst 1")
			for range 2 {
				if _, err := l.Take(WithMaxWait(t.Context(), time.Second), "k", nil); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Pause and Resume reach those that wait in a partition of the host, and no
// other host's.
func TestPauseReachesPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBase(nil)
		tr := newTransport(t, b, Config{MaxWait: time.Hour, Partition: func(r *http.Request) string { return r.URL.Path }})
		for _, url := range []string{"http://h/a", "http://i/a"} {
			mustGet(t, tr, url)
		}
		tr.Pause("h", time.Now().Add(30*time.Minute))
		mustGet(t, tr, "http://i/a")
		var wg sync.WaitGroup
		long := make(chan error, 1)
		wg.Go(func() { mustGet(t, tr, "http://h/a") })
		wg.Go(func() {
			_, err := get(t, WithMaxWait(t.Context(), 50*time.Minute), tr, "http://h/a")
			long <- err
		})
		time.Sleep(sec)
		tr.Pause("i", time.Now().Add(24*time.Hour)) // is no matter to h
		time.Sleep(sec)
		tr.Pause("h", time.Now().Add(59*time.Minute))
		time.Sleep(sec)
		select {
		case err := <-long:
			if err == nil {
				t.Error("one was let through that cannot wait that long")
			}
		default:
			t.Error("one that cannot wait that long still does")
		}
		tr.Resume("h")
		wg.Wait()
		sameTimes(t, b.times(), 0, 0, 0, 3*sec)
	})
}

// Settling a shared grant settles it in the store.
func TestSettleReachesTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := sharedLimiters(t, NewMemoryStore(), "10/h burst 10", 2)
		g, err := ls[0].Take(t.Context(), "k", Cost{requests: 8})
		if err != nil {
			t.Fatal(err)
		}
		g.Settle(Cost{requests: 3})
		time.Sleep(sec)
		if _, err := ls[1].Take(police(t), "k", Cost{requests: 7}); err != nil {
			t.Error(err)
		}
		if _, err := ls[1].Take(police(t), "k", nil); err == nil {
			t.Error("more than the rest was granted")
		}
	})
}

// The figures of what is idle, and of what is not.
func TestIdleKeysAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := NewLimiter(LimiterConfig{Default: MustParseBudget("1/m"), MaxKeys: 2})
		if err != nil {
			t.Fatal(err)
		}
		try := func(key string) bool { return l.Try(key, nil).Allowed }
		if !try("a") || !try("b") || !try("c") || try("d") {
			t.Error("beyond two keys newcomers share one")
		}
		time.Sleep(time.Minute)
		if !try("c") || !try("d") || !try("e") || try("c") {
			t.Error("two keys that were idle had to make room")
		}
	})
}

// Reasons have words, and those that no constant names have a number.
func TestReasonsInWords(t *testing.T) {
	for r, want := range map[Reason]string{0: "unknown", WaitTooLong: "wait too long", StoreDown: "store down", StoreDown + 1: "reason 6"} {
		if got := r.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if (&Error{Reason: NeverFits}).Temporary() || !(&Error{Reason: QueueFull}).Temporary() {
		t.Error("only what never fits is refused for good")
	}
	if _, err := NewLimiter(LimiterConfig{Default: Budget{InFlight: math.MaxInt32}}); err != nil {
		t.Error(err)
	}
	most := math.MaxInt32
	if _, err := NewLimiter(LimiterConfig{Default: Budget{InFlight: most + 1}}); err == nil { // negative where an int is no longer
		t.Error("more places than can be counted")
	}
	for text, want := range map[string]string{
		"1/s warmup x": "a length of time", "1/s warmup 0s": "a time of more than zero", "1/s ,2/m": "", "1/s\t, 2/m ": "",
	} {
		_, err := ParseBudget(text)
		same(t, err, want)
	}
}

// A meter that takes another's place is told only what counted the same.
func TestHeirs(t *testing.T) {
	old := func(rate, route string, spent int64) *account {
		r := MustParseBudget(rate).Rates[0]
		m := newRated(1, newRateSpec(r), &wallClock{})
		m.take(1, spent, false)
		return &account{meter: m, terms: &terms{unit: r.unit(), route: route, spec: newRateSpec(r)}}
	}
	all := []*account{old("10/m", "", 1), old("10/h", "", 2), old("10/h", "/a", 3), old("10 tokens/d", "", 4), old("10/s", "", 5),
		{meter: &flight{}, terms: &terms{unit: requests}}}
	for _, test := range []struct {
		unit, route string
		want        int64
	}{{requests, "", 2}, {requests, "/a", 3}, {"tokens", "", 4}, {"tokens", "/a", 0}, {"bytes", "", 0}} {
		m := heir(all, &terms{unit: test.unit, route: test.route})
		got := int64(0)
		if m != nil {
			got = m.window.count
		}
		if got != test.want {
			t.Errorf("%+v: got the meter that saw %d", test, got)
		}
	}
}
