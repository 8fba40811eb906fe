package throttle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/store"
)

// Rates as a store keeps them.
func TestStoreLimits(t *testing.T) {
	ms := time.Millisecond
	for _, test := range []struct {
		rate string
		c    FleetConfig
		want []store.Limit
	}{
		{"40 tokens/s bucket 5", FleetConfig{}, []store.Limit{{ID: "1stokens", Kind: store.MeterLimit, Unit: 1, Size: 5, Rate: 40, Credit: -1}}},
		{"64/m burst 64", FleetConfig{}, []store.Limit{{ID: "1m", Kind: store.LogLimit, Size: 64, Per: time.Minute + 50*ms}}},
		{"64/m burst 63", FleetConfig{}, []store.Limit{{ID: "1m", Kind: store.LogLimit, Size: 64, Per: time.Minute + 50*ms},
			{ID: "1m", Kind: store.MeterLimit, Size: 63, Rate: 64.0 / 60, Credit: -1}}},
		{"10/400ms burst 10", FleetConfig{}, []store.Limit{{ID: "400ms", Kind: store.LogLimit, Size: 10, Per: 420 * ms}}},
		{"10/s burst 10", FleetConfig{Spread: 5 * ms, Lease: 3 * ms}, []store.Limit{{ID: "1s", Kind: store.LogLimit, Size: 10, Per: 1008 * ms}}},
		{"100/h burst 50", FleetConfig{Spread: time.Hour}, []store.Limit{{ID: "1h", Kind: store.MeterLimit, Size: 50, Rate: 50.0 / 7200, Credit: 50}}},
		{"128/h burst 65", FleetConfig{Spread: time.Hour}, []store.Limit{{ID: "1h", Kind: store.LogLimit, Size: 128, Per: 2 * time.Hour, Grain: 2 * time.Hour / 64},
			{ID: "1h", Kind: store.MeterLimit, Size: 65, Rate: 128.0 / 3600, Credit: -1}}},
	} {
		got, units := storeLimits(MustParseBudget(test.rate).Rates, test.c, time.Unix(0, 0))
		if !reflect.DeepEqual(got, test.want) || units[0] != requests || (len(units) == 2) != (got[0].Unit == 1) {
			t.Errorf("%s: %+v of %v\nwant %+v", test.rate, got, units, test.want)
		}
	}
	got, units := storeLimits(MustParseBudget("5/s bucket 1, 6/s bucket 2, 7 tokens/s bucket 1, 9 tokens/90s bucket 1, 9/s burst 9").Rates, FleetConfig{}, time.Unix(0, 0))
	var ids []string
	for _, l := range got {
		ids = append(ids, fmt.Sprint(l.ID, " ", l.Kind, " ", l.Unit))
	}
	if want := []string{"1s 1 0", "1s#2 1 0", "1stokens 1 1", "1m30stokens 1 1", "1s 2 0"}; !slices.Equal(ids, want) || len(units) != 2 {
		t.Errorf("%v of %v, want %v", ids, units, want)
	}
	if id := limitID(nil, store.MeterLimit, Rate{Limit: 1, Per: time.Second, Unit: strings.Repeat("u", 60)}); id != "1s"+strings.Repeat("u", 40) {
		t.Errorf("a long unit: %s", id)
	}
	for d, want := range map[time.Duration]string{time.Hour: "1h", 36 * time.Hour: "36h", 90 * time.Minute: "90m", time.Minute: "1m", 90 * time.Second: "1m30s", time.Millisecond: "1ms"} {
		if got := shortly(d); got != want {
			t.Errorf("%v: %s", d, got)
		}
	}
}

// The part of a limit that one of several processes may spend alone.
func TestSharesOfALimit(t *testing.T) {
	for _, test := range []struct {
		l    store.Limit
		n    int
		used float64
		want store.Limit
	}{
		{store.Limit{ID: "a", Kind: store.MeterLimit, Size: 20, Rate: 8, Credit: 5}, 4, 3, store.Limit{ID: "a", Kind: store.MeterLimit, Size: 5, Rate: 2, Credit: -1}},
		{store.Limit{ID: "a", Kind: store.MeterLimit, Size: 2, Rate: 8}, 4, 0, store.Limit{ID: "a", Kind: store.MeterLimit, Size: 1, Rate: 2, Credit: -1}},
		{store.Limit{ID: "a", Kind: store.LogLimit, Size: 20, Per: 10 * sec}, 4, 0, store.Limit{ID: "la", Kind: store.MeterLimit, Size: 1, Rate: 0.5, Credit: -1, Per: 10 * sec}},
		{store.Limit{ID: "a", Kind: store.CalendarLimit, Size: 20}, 4, 3, store.Limit{ID: "a", Kind: store.CalendarLimit, Size: 4}},
		{store.Limit{ID: "a", Kind: store.CalendarLimit, Size: 20}, 4, 17, store.Limit{ID: "a", Kind: store.CalendarLimit, Size: 0.5}},
		{store.Limit{ID: "a", Kind: store.CalendarLimit, Size: 20}, 4, 30, store.Limit{ID: "a", Kind: store.CalendarLimit, Size: 0.5}},
	} {
		if got := partOf(test.l, test.n, test.used); got != test.want {
			t.Errorf("%+v: got %+v, want %+v", test.l, got, test.want)
		}
	}
}

// When the store may be asked again after a failure.
func TestFleetGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ms, gone := time.Millisecond, errors.New("gone")
		var saw []string
		g := &fleetGuard{f: &fleet{c: FleetConfig{Deadline: 50 * ms, OnStore: func(c StoreChange) {
			saw = append(saw, fmt.Sprint(c.From, ">", c.To, " ", c.Err == nil))
		}}}}
		start := time.Now()
		want := func(ok, probe bool, in time.Duration) {
			t.Helper()
			gotOK, gotProbe, retry := g.enter(time.Now())
			if gotOK != ok || gotProbe != probe || time.Until(retry) != in {
				t.Errorf("at %v: %t, probe %t, retry in %v; want %t, %t, %v", time.Since(start), gotOK, gotProbe, time.Until(retry), ok, probe, in)
			}
			if gotProbe {
				return
			}
			if got := g.allows(time.Now()); got != ok {
				t.Errorf("at %v: allows %t", time.Since(start), got)
			}
		}
		want(true, false, 0)
		g.heard(gone, false)
		want(false, false, 50*ms)
		time.Sleep(50 * ms)
		want(true, false, 0)
		g.heard(gone, false)
		g.heard(nil, false) // one success forgets them
		want(true, false, 0)
		for range 3 {
			g.heard(gone, false)
		}
		want(false, false, 200*ms)
		g.heard(gone, false) // a straggler
		want(false, false, 200*ms)
		time.Sleep(200 * ms)
		want(false, true, 50*ms)
		want(false, false, 50*ms) // one probe at a time
		g.abandon()
		want(false, true, 50*ms)
		pause := 200 * ms
		for range 6 {
			g.heard(gone, true)
			pause = min(2*pause, 5*time.Second)
			want(false, false, pause)
			time.Sleep(pause)
			want(false, true, 50*ms)
		}
		g.heard(nil, true)
		want(true, false, 0)
		g.heard(fmt.Errorf("x: %w", ErrStoreBusy), false)
		want(true, false, 0) // only the queue that was told leaves it alone
		time.Sleep(time.Second - 1)
		g.heard(nil, false)
		if g.now() != StoreBusy {
			t.Error("busy for a second at least")
		}
		time.Sleep(time.Nanosecond)
		g.heard(nil, false)
		if got, want := fmt.Sprint(saw), "[up>gone false gone>up true up>busy false busy>up true]"; got != want {
			t.Errorf("saw %s, want %s", got, want)
		}
	})
}

// News that came together is told together; a resume goes before a pause, the
// longer pause before the shorter, and the later word on a quota before the
// earlier.
func TestNewsJoins(t *testing.T) {
	s := func(id string, n int64) store.Stated { return store.Stated{ID: id, Unit: "u", Remaining: n} }
	for _, test := range []struct{ a, b, want store.News }{
		{store.News{}, store.News{}, store.News{}},
		{store.News{Pause: 3}, store.News{Pause: 2}, store.News{Pause: 3}},
		{store.News{Pause: 2}, store.News{Pause: 3}, store.News{Pause: 3}},
		{store.News{Pause: 2}, store.News{Pause: -1}, store.News{Pause: -1}},
		{store.News{Pause: -1}, store.News{Pause: 3}, store.News{Pause: 3}},
		{store.News{Pause: 2}, store.News{}, store.News{Pause: 2}},
		{store.News{Stated: []store.Stated{s("a", 1), s("b", 2)}}, store.News{Stated: []store.Stated{s("b", 3), s("c", 4)}}, store.News{Stated: []store.Stated{s("a", 1), s("b", 3), s("c", 4)}}},
		{store.News{Stated: []store.Stated{{ID: "a", Unit: "v"}}}, store.News{Stated: []store.Stated{s("a", 3)}}, store.News{Stated: []store.Stated{{ID: "a", Unit: "v"}, s("a", 3)}}},
	} {
		if got := join(test.a, test.b); got.Pause != test.want.Pause || !slices.Equal(got.Stated, test.want.Stated) {
			t.Errorf("%+v and %+v: %+v", test.a, test.b, got)
		}
	}
	var n store.News
	for i := range 2 * store.MaxStated {
		n = join(n, store.News{Stated: []store.Stated{s(fmt.Sprint(i), 1)}})
	}
	if len(n.Stated) != store.MaxStated {
		t.Errorf("%d quotas", len(n.Stated))
	}
}

// Which stated quotas are worth telling the other processes.
func TestQuotasWorthTelling(t *testing.T) {
	limit := func(change func(*headers.Limit)) headers.Limit {
		l := headers.Limit{Name: "core", Unit: requests, Remaining: known(10.0), Quota: known(100.0), Reset: known(time.Minute)}
		change(&l)
		return l
	}
	tell := store.Stated{ID: "core", Unit: requests, Remaining: 10, Reset: time.Minute}
	but := func(change func(*store.Stated)) *store.Stated {
		s := tell
		change(&s)
		return &s
	}
	for name, test := range map[string]struct {
		l    headers.Limit
		want *store.Stated
	}{
		"a tenth left":     {limit(func(*headers.Limit) {}), &tell},
		"more":             {limit(func(l *headers.Limit) { l.Remaining.Value = 10.5 }), nil},
		"none":             {limit(func(l *headers.Limit) { l.Remaining.Value = 0 }), but(func(s *store.Stated) { s.Remaining = 0 })},
		"less than none":   {limit(func(l *headers.Limit) { l.Remaining.Value = -1 }), but(func(s *store.Stated) { s.Remaining = 0 })},
		"no size":          {limit(func(l *headers.Limit) { l.Quota.Known = false }), nil},
		"none of no size":  {limit(func(l *headers.Limit) { l.Quota.Known, l.Remaining.Value = false, 0 }), but(func(s *store.Stated) { s.Remaining = 0 })},
		"no unit":          {limit(func(l *headers.Limit) { l.Unit = "" }), &tell},
		"tokens":           {limit(func(l *headers.Limit) { l.Unit = "tokens" }), nil},
		"a partition":      {limit(func(l *headers.Limit) { l.Partition = "x" }), nil},
		"no reset":         {limit(func(l *headers.Limit) { l.Reset.Known = false }), nil},
		"nothing left out": {limit(func(l *headers.Limit) { l.Remaining.Known = false }), nil},
		"full":             {limit(func(l *headers.Limit) { l.ResetMeans = headers.Full }), nil},
		"next":             {limit(func(l *headers.Limit) { l.ResetMeans = headers.Next }), nil},
		"a boundary":       {limit(func(l *headers.Limit) { l.ResetMeans = headers.Boundary }), &tell},
		"too many":         {limit(func(l *headers.Limit) { l.Remaining.Value, l.Quota.Value = 2e15, 1e17 }), nil},
		"a long name":      {limit(func(l *headers.Limit) { l.Name = strings.Repeat("n", 65) }), but(func(s *store.Stated) { s.ID = strings.Repeat("n", 64) })},
		"a far reset":      {limit(func(l *headers.Limit) { l.Reset.Value = math.MaxInt64 }), but(func(s *store.Stated) { s.Reset = store.MaxHorizon })},
		"a past reset":     {limit(func(l *headers.Limit) { l.Reset.Value = -1 }), but(func(s *store.Stated) { s.Reset = 0 })},
	} {
		got, ok := statedByServer(test.l)
		if ok != (test.want != nil) || ok && got != *test.want {
			t.Errorf("%s: %+v, %t", name, got, ok)
		}
	}
	keys := make(map[string]bool)
	for _, k := range [][3]string{{"h", "", ""}, {"h", "r", ""}, {"h", "", "p"}, {"h", "r", "p"}, {"h", "", "q"}, {"i", "", ""}} {
		key := storeKey(k[0], k[1], k[2])
		if keys[key] || strings.Contains(key, "p ") || !strings.HasPrefix(key, k[0]) {
			t.Errorf("%v: key %q", k, key)
		}
		keys[key] = true
	}
	if storeKey("h", "", "") != "h" || storeKey("h", "GET h/r", "") != "h GET h/r" {
		t.Error("keys that other processes know by other names")
	}
	if queueName([]fleetDraw{{key: "a"}, {key: "b"}}) == queueName([]fleetDraw{{key: "ab"}, {key: ""}}) || queueName([]fleetDraw{{key: "a"}}) != "a" {
		t.Error("names of queues")
	}
}

// Whose turn it is among processes: who missed most asks first.
func TestFleetTurns(t *testing.T) {
	now, reach := time.Unix(0, 0), time.Second
	var turn fleetTurn
	in := func(at time.Time) time.Duration { return at.Sub(now) }
	if got := in(turn.served(now, reach/2, reach)); got != reach/2 {
		t.Errorf("with room for more: %v", got)
	}
	if got := in(turn.served(now, reach/2+1, reach)); got != reach/2+1+reach/20 {
		t.Errorf("without: %v", got)
	}
	for i := 1; i <= fleetTurns+2; i++ {
		missed := min(i, fleetTurns)
		want := max(reach/200, reach/20*time.Duration(fleetTurns-missed)/fleetTurns)
		if got := in(turn.refused(now, reach, reach)); got != want || turn.missed != missed {
			t.Errorf("refusal %d: %v after %d, want %v", i, got, turn.missed, want)
		}
	}
	turn = fleetTurn{}
	if got := in(turn.refused(now, reach+reach/2, reach)); got != reach/2+reach/20*(fleetTurns-1)/fleetTurns {
		t.Errorf("beyond reach: %v", got)
	}
	if turn.refused(now.Add(reach/2-1), reach, reach); turn.missed != 1 {
		t.Errorf("a refusal before its turn: missed %d", turn.missed)
	}
	if got := in(turn.refused(now, 10*time.Second, reach)); got != store.Ahead {
		t.Errorf("far beyond reach: %v", got)
	}
	if got := in(turn.refused(now, reach/1000, reach)); got != reach/1000 {
		t.Errorf("just before: %v", got)
	}
}

// fleetAsking is a queue with waiters of these costs, and no store.
func fleetAsking(c FleetConfig, level float64, costs ...int64) (*fleetQueue, *store.Booking) {
	q := &fleetQueue{f: &fleet{c: c}, units: []string{requests}}
	for _, n := range costs {
		q.waiting = append(q.waiting, &fleetWaiter{cost: []int64{n}, done: make(chan struct{})})
	}
	return q, &store.Booking{Draws: []store.Draw{{Key: "k", Units: make([]store.UnitCost, 1), Limits: []store.Limit{{Kind: store.MeterLimit, Size: 20, Rate: 1}},
		Seen: store.Seen{Standing: store.Standing{Levels: []float64{level}}}}}}
}

// As many requests ride on one call as are thought to fit, one at least.
func TestFleetBatches(t *testing.T) {
	for _, test := range []struct {
		level      float64
		costs      []int64
		n          int
		first, all int64
	}{
		{0, []int64{5}, 1, 5, 5}, {0, []int64{5, 5, 5, 5, 5}, 4, 5, 20}, {0, []int64{50, 1}, 1, 50, 50}, {20, []int64{1, 1}, 1, 1, 1},
		{10, []int64{5, 5, 1}, 2, 5, 10}, {-3, []int64{20, 1}, 1, 20, 20}, {0, []int64{0, 0, 0}, 3, 0, 0},
	} {
		q, b := fleetAsking(FleetConfig{}, test.level, test.costs...)
		if n := q.batch(b); n != test.n || b.Draws[0].Units[0].First != test.first || b.Draws[0].Units[0].All != test.all {
			t.Errorf("%+v: %d, %+v", test, n, b.Draws[0].Units[0])
		}
	}
	q, b := fleetAsking(FleetConfig{}, 0, make([]int64, fleetBatchMost+1)...)
	if n := q.batch(b); n != fleetBatchMost {
		t.Errorf("%d on one call", n)
	}
	s := store.Seen{Standing: store.Standing{Levels: []float64{8, -2}}, Age: 2 * sec}
	meter, log := store.Limit{Kind: store.MeterLimit, Size: 10, Rate: 1}, store.Limit{Kind: store.LogLimit, Size: 10}
	for i, want := range map[int]float64{0: 4, 1: 10} {
		if got := s.Room(i, meter); got != want {
			t.Errorf("level %v has room for %v", s.Levels[i], got)
		}
	}
	if s.Room(0, log) != 2 || (store.Seen{}).Room(0, log) != 10 {
		t.Error("a log's room")
	}
}

// A lease takes at most half of what is thought to be left, for requests of one
// cost; it doubles when it is used up and halves when most of it is left.
func TestFleetLeases(t *testing.T) {
	leased := FleetConfig{Lease: sec}
	for _, test := range []struct {
		name  string
		c     FleetConfig
		level float64
		costs []int64
		size  int64
		want  int64
	}{
		{"the first", leased, 0, []int64{1}, 0, 1},
		{"of its size", leased, 0, []int64{1}, 8, 8},
		{"of half its size", leased, 0, []int64{1}, 16, 8},
		{"near exhaustion", leased, 18, []int64{1}, 8, 0},
		{"just enough", leased, 17, []int64{1}, 1, 1},
		{"of two costs", leased, 0, []int64{1, 2}, 8, 0},
		{"of two requests", leased, 0, []int64{1, 1}, 8, 8},
		{"of dear requests", leased, 0, []int64{4}, 8, 2},
		{"none", FleetConfig{}, 0, []int64{1}, 8, 0},
	} {
		q, b := fleetAsking(test.c, test.level, test.costs...)
		l := fleetLease{size: test.size}
		got := l.extend(q, b, len(test.costs))
		all := (int64(len(test.costs)) + got) * test.costs[0]
		if got != test.want || got > 0 && (b.Draws[0].Units[0].All != all || b.Draws[0].Units[0].First != test.costs[0]) {
			t.Errorf("%s: %d, %+v", test.name, got, b.Draws[0].Units[0])
		}
	}
	q, b := fleetAsking(leased, 0, 1)
	if l := (fleetLease{size: 8, left: 1}); l.extend(q, b, 1) != 0 {
		t.Error("while there is one")
	}
	q.short = true
	if l := (fleetLease{size: 8}); l.extend(q, b, 1) != 0 {
		t.Error("while the keys are short")
	}
	if l := (fleetLease{left: 1, until: time.Unix(5, 0)}); !l.held(time.Unix(4, 0)) || l.held(time.Unix(5, 0)) || (&fleetLease{until: time.Unix(5, 0)}).held(time.Unix(4, 0)) {
		t.Error("held while there is something left, until its end")
	}
}

// What a lease holds is spent without a call, comes back when it ends, and
// changes the size of the next.
func TestFleetLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlowStore(time.Millisecond)
		f := testFleet(t, s, FleetConfig{Lease: 100 * time.Millisecond})
		draws := fleetOn("k", Rate{Limit: 1000, Per: time.Hour, Burst: 1000})
		take := func(n int) {
			for range n {
				if _, err := f.take(t.Context(), draws, nil, 0, 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		lease := func() fleetLease {
			q := f.queues["k"]
			q.mu.Lock()
			defer q.mu.Unlock()
			return q.lease
		}
		take(2) // one books itself and one more, the other takes that
		if l := lease(); l.left != 0 || l.size != 2 || s.calls(&s.books) != 1 {
			t.Fatalf("%d left, size %d, %d calls", l.left, l.size, s.calls(&s.books))
		}
		take(3)
		if l := lease(); l.left != 0 || l.size != 4 || s.calls(&s.books) != 2 {
			t.Fatalf("%d left, size %d, %d calls", l.left, l.size, s.calls(&s.books))
		}
		take(3) // two of four are left
		time.Sleep(200 * time.Millisecond)
		if l := lease(); l.left != 0 || l.size != 4 || s.calls(&s.refunds) != 1 {
			t.Errorf("half used: %d left, size %d, %d refunds", l.left, l.size, s.calls(&s.refunds))
		}
		take(2) // three of four are left
		time.Sleep(200 * time.Millisecond)
		if l := lease(); l.left != 0 || l.size != 2 || s.calls(&s.refunds) != 2 {
			t.Errorf("less than half used: %d left, size %d, %d refunds", l.left, l.size, s.calls(&s.refunds))
		}
		other := testFleet(t, s, FleetConfig{})
		n := 0
		for {
			if _, err := other.take(t.Context(), draws, nil, 0, 0); err != nil {
				break
			}
			n++
		}
		if n != 990 {
			t.Errorf("%d are left for others of 1000, of which 10 were spent", n)
		}
	})
}

// A grant that was cancelled goes back to the store, also when its context ends
// while it waits for its time, and through a Limiter.
func TestFleetGrantsComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := sharedLimiters(t, store.NewMemory(), "10/h burst 10", 2)
		g, err := ls[0].Take(t.Context(), "k", Cost{requests: 10})
		if err != nil {
			t.Fatal(err)
		}
		g.Cancel()
		time.Sleep(sec)
		if _, err := ls[1].Take(police(t), "k", Cost{requests: 10}); err != nil {
			t.Error(err)
		}
		s := newSlowStore(time.Millisecond)
		f := testFleet(t, s, FleetConfig{})
		draws := fleetOn("k", Rate{Limit: 2, Per: time.Second, Bucket: 1})
		if _, err := f.take(t.Context(), draws, nil, 0, time.Minute); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*sec)
		time.AfterFunc(100*time.Millisecond, cancel)
		if _, err := f.take(ctx, draws, nil, 0, time.Minute); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		time.Sleep(10 * time.Millisecond)
		start := time.Now()
		if _, err := f.take(t.Context(), draws, nil, 0, time.Minute); err != nil || time.Since(start) > 450*time.Millisecond {
			t.Errorf("the next one waited %v: %v", time.Since(start), err)
		}
		if isZero([]int64{0, 1}) || !isZero([]int64{0, 0}) || !isZero(nil) {
			t.Error("what is nothing")
		}
	})
}

// Higher priorities are booked first, and among equals those that came first.
func TestFleetOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := testFleet(t, newSlowStore(time.Millisecond), FleetConfig{})
		draws := fleetOn("k", Rate{Limit: 1, Per: time.Second, Bucket: 1})
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		f.take(t.Context(), draws, nil, 0, time.Minute)
		f.take(t.Context(), draws, nil, 0, time.Minute) // the next one is booked ahead
		for i, priority := range []int{0, 0, 2, 1, 2, 0} {
			wg.Go(func() {
				if _, err := f.take(t.Context(), draws, nil, priority, time.Minute); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
			})
			synctest.Wait()
		}
		wg.Wait()
		if len(order) != 6 || !slices.Equal(order[1:], []int{2, 4, 3, 1, 5}) && !slices.Equal(order, []int{2, 4, 3, 0, 1, 5}) {
			t.Errorf("in the order %v", order)
		}
	})
}
