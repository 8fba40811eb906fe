package fleet

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/store"
)

// asking is a queue with waiters of these costs, and no store.
func asking(c Config, level float64, costs ...int64) (*queue, *store.Booking) {
	q := &queue{f: &Fleet{c: c}, units: []string{meter.Requests}}
	for _, n := range costs {
		q.waiting = append(q.waiting, &waiter{cost: []int64{n}, done: make(chan struct{})})
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
		q, b := asking(Config{}, test.level, test.costs...)
		if n := q.batch(b); n != test.n || b.Draws[0].Units[0].First != test.first || b.Draws[0].Units[0].All != test.all {
			t.Errorf("%+v: %d, %+v", test, n, b.Draws[0].Units[0])
		}
	}
	q, b := asking(Config{}, 0, make([]int64, mostInBatch+1)...)
	if n := q.batch(b); n != mostInBatch {
		t.Errorf("%d on one call", n)
	}
	s := store.Seen{Standing: store.Standing{Levels: []float64{8, -2}}, Age: 2 * time.Second}
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
