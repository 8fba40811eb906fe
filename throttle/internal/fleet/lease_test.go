package fleet

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/farstore"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A lease takes at most half of what is thought to be left, for requests of one
// cost; it doubles when it is used up and halves when most of it is left.
func TestFleetLeases(t *testing.T) {
	leased := Config{Lease: time.Second}
	for _, test := range []struct {
		name  string
		c     Config
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
		{"none", Config{}, 0, []int64{1}, 8, 0},
	} {
		q, b := asking(test.c, test.level, test.costs...)
		l := lease{size: test.size}
		got := l.extend(q, b, len(test.costs))
		all := (int64(len(test.costs)) + got) * test.costs[0]
		if got != test.want || got > 0 && (b.Draws[0].Units[0].All != all || b.Draws[0].Units[0].First != test.costs[0]) {
			t.Errorf("%s: %d, %+v", test.name, got, b.Draws[0].Units[0])
		}
	}
	q, b := asking(leased, 0, 1)
	if l := (lease{size: 8, left: 1}); l.extend(q, b, 1) != 0 {
		t.Error("while there is one")
	}
	q.short = true
	if l := (lease{size: 8}); l.extend(q, b, 1) != 0 {
		t.Error("while the keys are short")
	}
	if l := (lease{left: 1, until: time.Unix(5, 0)}); !l.held(time.Unix(4, 0)) || l.held(time.Unix(5, 0)) || (&lease{until: time.Unix(5, 0)}).held(time.Unix(4, 0)) {
		t.Error("held while there is something left, until its end")
	}
}

// What a lease holds is spent without a call, comes back when it ends, and
// changes the size of the next.
func TestFleetLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(time.Millisecond)
		f := testFleet(t, s, Config{Lease: 100 * time.Millisecond})
		draws := on("k", meter.Spec{Limit: 1000, Per: time.Hour, Burst: 1000})
		spend := func(n int) {
			for range n {
				if _, err := take(f, t.Context(), draws, nil, 0, 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		lease := func() lease {
			q := f.queues["k"]
			q.mu.Lock()
			defer q.mu.Unlock()
			return q.lease
		}
		spend(2) // one books itself and one more, the other takes that
		if l := lease(); l.left != 0 || l.size != 2 || s.Books() != 1 {
			t.Fatalf("%d left, size %d, %d calls", l.left, l.size, s.Books())
		}
		spend(3)
		if l := lease(); l.left != 0 || l.size != 4 || s.Books() != 2 {
			t.Fatalf("%d left, size %d, %d calls", l.left, l.size, s.Books())
		}
		spend(3) // two of four are left
		time.Sleep(200 * time.Millisecond)
		if l := lease(); l.left != 0 || l.size != 4 || s.Refunds() != 1 {
			t.Errorf("half used: %d left, size %d, %d refunds", l.left, l.size, s.Refunds())
		}
		spend(2) // three of four are left
		time.Sleep(200 * time.Millisecond)
		if l := lease(); l.left != 0 || l.size != 2 || s.Refunds() != 2 {
			t.Errorf("less than half used: %d left, size %d, %d refunds", l.left, l.size, s.Refunds())
		}
		other := testFleet(t, s, Config{})
		n := 0
		for {
			if _, err := take(other, t.Context(), draws, nil, 0, 0); err != nil {
				break
			}
			n++
		}
		if n != 990 {
			t.Errorf("%d are left for others of 1000, of which 10 were spent", n)
		}
	})
}
