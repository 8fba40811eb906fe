package fleet

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/farstore"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/store"
)

func testFleet(t *testing.T, s store.Store, c Config) *Fleet {
	t.Helper()
	if c.Members == 0 {
		c.Members = 4
	}
	f := New(s, c)
	t.Cleanup(f.Close)
	return f
}

// take books for a request of which nobody will tell the answer.
func take(f *Fleet, ctx context.Context, keys []Key, cost map[string]int64, priority int, maxWait time.Duration) (*Grant, *Refusal) {
	return f.Book(ctx, keys, cost, Options{Priority: priority, MaxWait: maxWait})
}

// on is a key with these rates, where a burst of zero is a tenth of the limit.
func on(key string, rates ...meter.Spec) []Key {
	for i := range rates {
		rates[i].Unit = cmp.Or(rates[i].Unit, meter.Requests)
		rates[i].Burst = cmp.Or(rates[i].Burst, max(1, rates[i].Limit/10))
	}
	return []Key{{ID: key, Name: key, Rates: rates}}
}

// rates are those of a text such as "5 tokens/s burst 2, 9/90s bucket 3".
func rates(text string) []meter.Spec {
	var list []meter.Spec
	for _, one := range strings.Split(text, ", ") {
		var s meter.Spec
		limit, rest, _ := strings.Cut(one, "/")
		if _, err := fmt.Sscanf(limit, "%d %s", &s.Limit, &s.Unit); err != nil && s.Limit == 0 {
			panic(text)
		}
		words := strings.Fields(rest)
		if words[0][0] > '9' {
			words[0] = "1" + words[0]
		}
		words[0] = strings.Replace(words[0], "1d", "24h", 1)
		per, err := time.ParseDuration(words[0])
		if err != nil {
			panic(err)
		}
		s.Per = per
		for i := 1; i+1 < len(words); i += 2 {
			switch words[i] {
			case "burst", "bucket":
				fmt.Sscan(words[i+1], &s.Burst)
				s.Bucket = words[i] == "bucket"
			case "align":
				s.Align = time.UTC
			case "warmup":
				s.WarmUp, _ = time.ParseDuration(words[i+1])
			default:
				panic(text)
			}
		}
		list = append(list, on("", s)[0].Rates...)
	}
	return list
}

// load runs callers that take again and again for d.
func load(f *Fleet, draws []Key, callers int, d time.Duration, s *farstore.Sends, count *atomic.Int64) *sync.WaitGroup {
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	for range callers {
		wg.Go(func() {
			for {
				left := time.Until(end)
				if left <= 0 {
					return
				}
				if _, err := take(f, context.Background(), draws, nil, 0, left); err != nil {
					return
				}
				s.Add()
				count.Add(1)
			}
		})
	}
	return &wg
}

func TestFleetStaysWithinRates(t *testing.T) {
	for _, tc := range []struct {
		name  string
		rate  meter.Spec
		most  int // per window
		least int // in 10 s
		lease time.Duration
	}{
		{"meter", meter.Spec{Limit: 100, Per: time.Second}, 100, 850, 0},
		{"log", meter.Spec{Limit: 20, Per: time.Second}, 20, 180, 0},
		{"burst of everything", meter.Spec{Limit: 200, Per: time.Second, Burst: 200}, 200, 1800, 0},
		{"bucket", meter.Spec{Limit: 50, Per: time.Second, Burst: 10, Bucket: true}, 60, 490, 0},
		{"leaky", meter.Spec{Limit: 100, Per: time.Second, Burst: 1}, 100, 930, 0},
		{"lease", meter.Spec{Limit: 100, Per: time.Second}, 100, 700, 200 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := farstore.New(time.Millisecond)
				var out farstore.Sends
				var wgs []*sync.WaitGroup
				var count atomic.Int64
				for range 16 {
					f := testFleet(t, s, Config{Lease: tc.lease})
					wgs = append(wgs, load(f, on("k", tc.rate), 3, 10*time.Second, &out, &count))
				}
				for _, wg := range wgs {
					wg.Wait()
				}
				if got := out.Most(tc.rate.Per); got > tc.most {
					t.Errorf("%d requests in one window, want at most %d", got, tc.most)
				}
				if count.Load() < int64(tc.least) {
					t.Errorf("%d requests in 10 s, want at least %d", count.Load(), tc.least)
				}
				t.Logf("%d requests, %d in a window, %d calls", count.Load(), out.Most(tc.rate.Per), s.Books())
			})
		})
	}
}

func TestFleetCoalesces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		f := testFleet(t, s, Config{})
		draws := on("k", meter.Spec{Limit: 100000, Per: time.Second, Burst: 100000, Bucket: true})
		var wg sync.WaitGroup
		begin := time.Now()
		for range 256 {
			wg.Go(func() {
				for range 10 {
					if _, err := take(f, t.Context(), draws, nil, 0, time.Second); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if got := time.Since(begin); got > 25*time.Millisecond {
			t.Errorf("10 rounds of 256 took %v of 1 ms round trips, want at most 25 ms", got)
		}
		if s.Books() > 45 {
			t.Errorf("%d calls for 2560 requests, want at most 45", s.Books())
		}
	})
}

func TestFleetTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := testFleet(t, farstore.New(time.Millisecond), Config{})
		draws := on("k", meter.Spec{Limit: 2, Per: time.Minute})
		for range 2 {
			if _, err := take(f, t.Context(), draws, nil, 0, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second) // who was served last asks last
		begin := time.Now()
		_, err := take(f, t.Context(), draws, nil, 0, 20*time.Second)
		if err == nil || err.Reason != TooLong || err.Wait < 28*time.Second || err.Wait > time.Minute {
			t.Fatalf("got %v, want TooLong of most of a minute", err)
		}
		if d := time.Since(begin); d > 5*time.Millisecond {
			t.Errorf("told after %v, want one round trip", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err = take(f, ctx, draws, nil, 0, time.Hour); err == nil || !err.ByCaller && err.Err != context.DeadlineExceeded {
			t.Errorf("got %v, want DeadlineExceeded", err)
		}
		if _, err = take(f, t.Context(), draws, map[string]int64{meter.Requests: 3}, 0, time.Hour); err == nil || err.Reason != NeverFits {
			t.Errorf("got %v, want NeverFits", err)
		}
	})
}

func TestFleetCancelGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		f := testFleet(t, s, Config{})
		draws := on("k", meter.Spec{Limit: 5, Per: time.Minute, Burst: 5})
		g, err := take(f, t.Context(), draws, map[string]int64{meter.Requests: 5}, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		g.Cancel()
		g.Cancel()
		synctest.Wait()
		time.Sleep(time.Second)
		if s.Refunds() != 1 {
			t.Errorf("%d refunds were sent, want 1", s.Refunds())
		}
		if _, err := take(f, t.Context(), draws, map[string]int64{meter.Requests: 5}, 0, time.Second); err != nil {
			t.Errorf("after a refund of everything: %v", err)
		}
	})
}

func TestFleetSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := testFleet(t, farstore.New(time.Millisecond), Config{})
		draws := on("k", meter.Spec{Limit: 60, Per: time.Minute, Burst: 60, Unit: "tokens"})
		spend := func(n int64) (*Grant, *Refusal) {
			return take(f, t.Context(), draws, map[string]int64{"tokens": n}, 0, time.Second)
		}
		g, err := spend(30)
		if err != nil {
			t.Fatal(err)
		}
		g.Settle(map[string]int64{"tokens": 10})
		time.Sleep(time.Second)
		if _, err = spend(50); err != nil {
			t.Fatalf("50 of 50 left: %v", err)
		}
		time.Sleep(65 * time.Second)
		if g, err = spend(10); err != nil {
			t.Fatal(err)
		}
		g.Settle(map[string]int64{"tokens": 40})
		time.Sleep(time.Second)
		if _, err = spend(21); err == nil {
			t.Error("21 of 20 left were granted")
		}
		if _, err = spend(20); err != nil {
			t.Errorf("20 of 20 left: %v", err)
		}
	})
}

func TestFleetPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := testFleet(t, farstore.New(time.Millisecond), Config{})
		draws := on("k", meter.Spec{Limit: 1, Per: time.Second})
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				if _, err := take(f, t.Context(), draws, nil, i/4, time.Minute); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
			})
			time.Sleep(10 * time.Millisecond)
		}
		wg.Wait()
		if got, want := fmt.Sprint(order), fmt.Sprint([]int{0, 4, 5, 1, 2, 3}); got != want {
			t.Errorf("order %v, want %v", got, want)
		}
	})
}

// TestNewRatesAreBookedAtOnce: who comes when the rates of a key were changed books by the
// new ones.
func TestNewRatesAreBookedAtOnce(t *testing.T) {
	f := testFleet(t, store.NewMemory(), Config{})
	for _, test := range []struct {
		rates string
		want  bool
	}{{"1/1h burst 1", true}, {"1/1h burst 1", false}, {"2/1h burst 2", true}, {"2/1h burst 2", false}, {"1/1h burst 1", false}, {"9/1h burst 9", true}} {
		if _, r := take(f, t.Context(), on("k", rates(test.rates)...), nil, 0, 0); (r == nil) != test.want {
			t.Errorf("%s: %+v, want a grant: %t", test.rates, r, test.want)
		}
	}
}

// What a process remembers of a key is what the store served last.
func TestFleetRemembersTheLatest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := testFleet(t, farstore.New(0), Config{})
		b := store.Booking{Draws: []store.Draw{{Key: "k"}}}
		hear := func(gen, at int64, level float64) {
			f.heard(b, store.Booked{Keys: []store.Standing{{Gen: gen, At: at, Levels: []float64{level}}}}, time.Now())
		}
		want := func(level float64, age time.Duration) {
			t.Helper()
			s := f.recall("k", 1, time.Now())
			if len(s.Levels) != 1 || s.Levels[0] != level || s.Age != age {
				t.Errorf("%+v, want a level of %v and an age of %v", s, level, age)
			}
		}
		if s := f.recall("k", 1, time.Now()); s.Gen != 0 || s.Levels != nil {
			t.Errorf("%+v of a key that was never heard of", s)
		}
		hear(0, 5, 9) // no state
		if s := f.recall("k", 1, time.Now()); s.Levels != nil {
			t.Errorf("%+v of a key at rest", s)
		}
		hear(1, 5, 3)
		want(3, 0)
		time.Sleep(time.Second)
		want(3, time.Second)
		hear(1, 4, 7) // an earlier one, overtaken
		want(3, time.Second)
		hear(1, 5, 4)
		want(4, 0)
		hear(2, 1, 6) // a new state
		want(6, 0)
		if s := f.recall("k", 2, time.Now()); s.Levels != nil {
			t.Errorf("%+v for two limits", s)
		}
		if covers([]int64{1, 2}, []int64{1, 3}) || !covers([]int64{1, 3}, []int64{1, 3}) || !covers([]int64{2, 3}, []int64{1, 3}) {
			t.Error("who asks for as much")
		}
	})
}

// How old a state is that was seen is read from the monotonic clock: a step of the
// wall's makes no state older, or younger, than it is.
func TestAgesDoNotFollowTheWallClock(t *testing.T) {
	f := testFleet(t, store.NewMemory(), Config{Members: 1})
	if _, r := f.Book(context.Background(), on("k", rates("10/s")...), nil, Options{MaxWait: time.Second}); r != nil {
		t.Fatal(r)
	}
	when := f.seen["k"].when
	if !strings.Contains(when.String(), " m=") {
		t.Errorf("seen at %v, without a reading of the monotonic clock", when)
	}
	if age := f.recall("k", len(f.seen["k"].Levels), when.Add(3*time.Second)).Age; age != 3*time.Second {
		t.Errorf("an age of %v, want 3s", age)
	}
}

// What the store's clock should read is sent with each call: what it read when the store served
// the last one, and the time since that was sent, by the clock by which more has passed. A machine
// that is suspended with its processes stops one of them.
func TestTheStoresClockIsForeseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(40 * time.Millisecond)
		f := testFleet(t, s, Config{Members: 1})
		begin := time.Now()
		for range 2 {
			if _, r := f.Book(context.Background(), on("k", rates("10/s burst 10")...), nil, Options{MaxWait: time.Second}); r != nil {
				t.Fatal(r)
			}
			time.Sleep(3 * time.Second)
		}
		asked, h := s.Asked(), f.seen["k"]
		if first, second := asked[0].Draws[0].Seen.Clock, asked[1].Draws[0].Seen.Clock; first != 0 || second != h.sent.Sub(begin).Microseconds()+begin.UnixMicro()+40_000 {
			t.Errorf("foreseen were %d and %d", first, second-begin.UnixMicro())
		}
		for name, now := range map[string]time.Time{"monotonic": h.sent.Add(time.Hour), "wall": h.sent.Round(0).Add(time.Hour)} {
			if got := h.now(now) - h.clock; got != time.Hour.Microseconds() {
				t.Errorf("%s: %d microseconds later, want an hour", name, got)
			}
		}
		h.clock = 0
		if got := h.now(time.Now()); got != 0 {
			t.Errorf("foreseen is %d by a clock of which nothing is known", got)
		}
	})
}
