package fleet

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/farstore"
	"github.com/weirhttp/weir/throttle/store"
)

// held is a grant of a request whose units count from at, and who watches it.
func held(q *queue, place *place, n int64, open bool) *Grant {
	g := &Grant{q: q, batch: &batch{q: q}, cost: []int64{n}, place: place}
	if open {
		q.late.open = append(q.late.open, g)
		g.open = len(q.late.open)
	}
	return g
}

func placeAt(at time.Time, gen int64) *place {
	return &place{begins: at, gens: []int64{gen}, from: []int64{gen}}
}

// What is told is one line for each place and for what is answered there and
// what is not; it counts from the last answer, or from now.
func TestFleetLateTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queueOn(testFleet(t, farstore.New(0), Config{}), "5/s burst 5") // told within 125 ms, 50 ms of slack
		ms, now := time.Millisecond, time.Now()
		one, two := placeAt(now.Add(-200*ms), 1), placeAt(now.Add(-100*ms), 2)
		held(q, one, 1, true)
		held(q, two, 2, true) // not open for long enough
		held(q, one, 4, true)
		for i, p := range []*place{one, two, one} {
			g := held(q, p, int64(8<<i), false)
			g.came = now.Add(-time.Duration(i+1) * ms)
			q.late.late = append(q.late.late, g)
		}
		b := q.booking(now)
		q.late.tell(&b, now, q.late.due)
		want := []store.Moved{{Gen: 1, Age: 51 * ms}, {Gen: 2, Age: 52 * ms}, {Gen: 1}}
		units := []int64{8 + 32, 16, 1 + 4}
		got := b.Draws[0].Moved
		if len(got) != len(want) || len(q.late.late) != 0 {
			t.Fatalf("%+v", got)
		}
		for i, m := range got {
			if m.Gen != want[i].Gen || m.Age != want[i].Age || m.Units[0] != units[i] {
				t.Errorf("line %d: %+v, want %+v of %d", i, m, want[i], units[i])
			}
		}
		b = q.booking(now)
		if told := q.late.tell(&b, now, -1); len(told) != 0 || len(q.late.open) != 3 {
			t.Errorf("%d more", len(told))
		}
	})
}

// A call that failed leaves what was answered late to another one, and what is
// open where it was. One that did not has dated both anew.
func TestFleetLateHears(t *testing.T) {
	booked := store.Booked{Outcome: store.BookedOne, Keys: []store.Standing{{Gen: 7, At: 900}}}
	for name, test := range map[string]struct {
		r     store.Booked
		err   error
		due   time.Duration
		again int
		gen   int64
	}{
		"served":              {booked, nil, time.Second, 0, 7},
		"refused":             {store.Booked{Outcome: store.Refused, Keys: booked.Keys}, nil, time.Second, 1, 1},
		"an error":            {booked, errors.New("gone"), time.Second, 1, 1},
		"an error at the end": {booked, errors.New("gone"), 0, 0, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := queueOn(testFleet(t, farstore.New(0), Config{}), "5/s burst 5")
			q.late.due = test.due
			now := time.Now()
			p := placeAt(now, 1)
			open, late := held(q, p, 1, true), held(q, p, 1, false)
			told := []*move{{place: p, open: true, grants: []*Grant{open}}, {place: p, age: time.Millisecond, grants: []*Grant{late}}}
			q.late.heard(q, told, now, test.r, test.err)
			if len(q.late.late) != test.again || open.place.gens[0] != test.gen || late.place.gens[0] != test.gen {
				t.Errorf("%s: %d to tell again, of states %d and %d", name, len(q.late.late), open.place.gens[0], late.place.gens[0])
			}
			if late.place != p && (late.place.from[0] != 900-1000 || !late.place.begins.Equal(now.Add(-time.Millisecond))) {
				t.Errorf("%s: counts from %d", name, late.place.from[0])
			}
			if q.late.timer != nil {
				q.late.timer.Stop()
			}
		})
	}
}

// What was answered while the store was being told that it is open is told again if that call
// came to nothing, and else only if a window has ended since.
func TestFleetLateAnsweredMeanwhile(t *testing.T) {
	booked := store.Booked{Outcome: store.BookedOne, Keys: []store.Standing{{Gen: 7, At: 990_000}}}
	for name, test := range map[string]struct {
		answered time.Duration // after the window's end
		r        store.Booked
		again    int
	}{
		"refused":           {time.Millisecond, store.Booked{Outcome: store.Refused, Keys: booked.Keys}, 1},
		"told before":       {-time.Millisecond, booked, 0},
		"told of no more":   {-time.Millisecond, store.Booked{Outcome: store.Refused, Keys: booked.Keys}, 0},
		"over since it was": {11 * time.Millisecond, booked, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := queueOn(testFleet(t, farstore.New(0), Config{}), "20/s burst 20 align UTC")
			end := time.Now().Add(time.Second)
			p := placeAt(end.Add(-q.late.slack/2), 1)
			p.ends = end
			g := held(q, p, 1, true)
			time.Sleep(time.Until(p.begins))
			b, sent := q.booking(time.Now()), time.Now()
			told := q.late.tell(&b, sent, 0)
			time.Sleep(time.Until(end.Add(test.answered)))
			g.Answered()
			b = q.booking(time.Now())
			if again := q.late.tell(&b, time.Now(), -1); len(told) != 1 || len(again) != 0 {
				t.Errorf("%s: %d told, then %d", name, len(told), len(again))
			}
			q.mu.Lock()
			q.late.heard(q, told, sent, test.r, nil)
			again := q.late.tell(&b, time.Now(), -1)
			q.mu.Unlock()
			if len(again) != test.again {
				t.Errorf("%s: %d to tell again, want %d", name, len(again), test.again)
			}
			if q.late.timer != nil {
				q.late.timer.Stop()
			}
		})
	}
}

// Of two calls on their way at once both may bring a lease: the first goes back.
func TestFleetLeaseReplaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(0)
		q := queueOn(testFleet(t, s, Config{Lease: time.Second}), "200/s")
		b := newBatch(q, q.booking(time.Now()), store.Booked{Outcome: store.BookedAll, Keys: []store.Standing{{Gen: 1, Levels: []float64{9}}}}, time.Now())
		for i, refunds := range []int{0, 1} {
			q.mu.Lock()
			q.lease.begin(q, b, []int64{1}, 4)
			q.mu.Unlock()
			synctest.Wait()
			q.mu.Lock()
			if n := s.Refunds(); n != refunds || q.lease.left != 4 {
				t.Errorf("lease %d: %d refunds, %d left", i, n, q.lease.left)
			}
			q.mu.Unlock()
		}
		time.Sleep(time.Second)
		synctest.Wait()
		q.mu.Lock()
		defer q.mu.Unlock()
		if n := s.Refunds(); n != 2 || q.lease.left != 0 {
			t.Errorf("in the end %d refunds, %d left", n, q.lease.left)
		}
	})
}

// After close nothing starts, and who has given up asks for nothing.
func TestFleetAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := farstore.New(0)
		f := testFleet(t, s, Config{})
		gone := errors.New("gave up")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		draws := on("k", rates("5/s")...)
		if g, err := take(f, ctx, draws, nil, 0, time.Second); g != nil || err == nil || err.Err != gone {
			t.Errorf("given up: %v, %v", g, err)
		}
		f.Close()
		for range 2 {
			if f.start(func(context.Context) { t.Error("a call") }) {
				t.Error("started")
			}
			if g, err := take(f, t.Context(), draws, nil, 0, time.Second); g != nil || err == nil || err.Reason != Ended {
				t.Errorf("closed: %v, %v", g, err)
			}
		}
		if n := s.Books(); n != 0 {
			t.Errorf("%d calls", n)
		}
	})
}
