package queue

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A tally counts what is asked of meters and owners: nearly all that is done under
// the lock, but for steps in trees and heaps.
type tally struct{ n int }

// counted is a meter whose questions are counted.
type counted struct {
	*meter.Rated
	asked *tally
}

func (m counted) At(now meter.Instant, n int64) meter.Instant {
	m.asked.n++
	return m.Rated.At(now, n)
}

func (m counted) ETA(now meter.Instant, ahead, n int64) meter.Instant {
	m.asked.n++
	return m.Rated.ETA(now, ahead, n)
}

func (m counted) Sure(now, from meter.Instant, ahead, n int64) meter.Instant {
	m.asked.n++
	return m.Rated.Sure(now, from, ahead, n)
}

func (m counted) State(now meter.Instant) meter.State {
	m.asked.n++
	return m.Rated.State(now)
}

// A throng is very many that wait. Its lock is held throughout: the timers that go
// on with what was left find it locked, and step does what they would do.
type throng struct {
	*shop
	asked tally
	pool  *Account // of no group; nobody has to wait for it
	now   meter.Instant
	all   []*Waiter
}

const (
	throngs = 20000 // who wait

	// mostAsked is how many questions may be asked before the lock is given up: of
	// slice/look waiters, six for each of those that change one account for another.
	mostAsked = 8 * slice / look
)

func newThrong(t *testing.T, set func(i int, q *Request), p Patience) *throng {
	th := &throng{shop: newShop(), now: 1, pool: &Account{Meter: meter.Open{}, Label: &Label{Unit: "requests"}}}
	for range 2 {
		th.add(rateOf(1, 1))
	}
	th.mu.Lock()
	t.Cleanup(th.mu.Unlock)
	if !th.Enter(th.now, th.Needs(1, nil), th.request(0)) {
		t.Fatal("not idle")
	}
	p.Ctx, p.Queue, p.Full = context.Background(), throngs, p.Most
	for i := range throngs {
		q := th.request(uint64(i + 1))
		q.By = th
		set(i, q)
		th.step(t, "a newcomer", 30, func() {
			w, _, r := th.Queue(th.now, q, q.By.Needs(1, nil), &p)
			if r != nil {
				t.Fatalf("number %d may not wait: %+v", i, r)
			}
			th.all = append(th.all, w)
		})
	}
	return th
}

func (th *throng) add(m *meter.Rated) {
	th.accounts = append(th.accounts, &Account{Meter: counted{m, &th.asked}, Label: &Label{Unit: "requests", Text: "a limit"}, Group: &th.group})
}

func (th *throng) Needs(now meter.Instant, buf []Need) []Need {
	th.asked.n++
	return append(th.shop.Needs(now, buf), Need{Account: th.pool, N: 1})
}

// A loner waits for an account of its own, too.
type loner struct {
	*throng
	own Account
}

func (l *loner) Needs(now meter.Instant, buf []Need) []Need {
	return append(l.throng.Needs(now, buf), Need{Account: &l.own, N: 1})
}

// step does what, and checks that it asks at most so much.
func (th *throng) step(t *testing.T, name string, most int, what func()) {
	was := th.asked.n
	what()
	if n := th.asked.n - was; n > most {
		t.Fatalf("%s asks %d times before the lock is given up, want at most %d", name, n, most)
	}
}

// rest is all that follows by itself at this instant, and returns in how many slices.
func (th *throng) rest(t *testing.T, name string) (slices int) {
	for ; th.crowd != nil && th.crowd.working; slices++ {
		th.step(t, name, mostAsked, func() {
			th.crowd.working = false
			th.work(th.now)
			th.Run(th.now)
		})
	}
	if err := th.Check(); err != nil {
		t.Error(err)
	}
	if th.crowd != nil && th.crowd.drawn[th.pool] != int(th.Waiting) {
		t.Errorf("%d draw on the pool, want the %d that wait", th.crowd.drawn[th.pool], th.Waiting)
	}
	return slices
}

// TestWorkUnderTheLockIsBounded: whatever befalls very many that wait, the lock is
// given up after a bounded part of it.
func TestWorkUnderTheLockIsBounded(t *testing.T) {
	hour := meter.Instant(time.Hour)
	long := Patience{Most: throngs * 10 * time.Hour}
	alike := func(int, *Request) {}
	many := func(slices, least int, t *testing.T) {
		if t.Helper(); slices < least {
			t.Errorf("%d slices, want at least %d", slices, least)
		}
	}
	for name, test := range map[string]func(t *testing.T){
		"a pause that all can bear": func(t *testing.T) {
			th := newThrong(t, alike, long)
			th.step(t, "the pause", mostAsked, func() { th.Pause(1, &th.group.Gate, hour, hour, "paused") })
			th.rest(t, "the rest")
		},
		"a pause, where each waits for itself, too": func(t *testing.T) {
			th := newThrong(t, func(i int, q *Request) {
				l := &loner{throng: q.By.(*throng), own: Account{Meter: meter.Open{}, Label: &Label{Unit: "requests"}}}
				l.own.Rest(hour, hour, "paused")
				q.By = l
			}, long)
			th.step(t, "the pause", mostAsked, func() { th.Pause(1, th.accounts[0], hour, hour, "paused") })
			if n := len(th.crowd.dirty); n > 2*slice/look {
				t.Errorf("%d waitlists are marked before the lock is given up, want at most %d", n, 2*slice/look)
			}
			many(th.rest(t, "the rest"), throngs*look/slice-1, t)
		},
		"a pause that nobody can bear": func(t *testing.T) {
			th := newThrong(t, alike, long)
			end := meter.Instant(long.Most) * 2
			th.step(t, "the pause", mostAsked, func() { th.Pause(1, &th.group.Gate, end, end, "paused") })
			many(th.rest(t, "the rest"), throngs*look/slice-1, t)
			if th.Waiting != 0 {
				t.Errorf("%d still wait", th.Waiting)
			}
		},
		"other limits": func(t *testing.T) {
			th := newThrong(t, alike, long)
			th.accounts = th.accounts[1:]
			th.add(rateOf(2, 2))
			th.step(t, "the change", mostAsked, func() { th.Redraw(1, &th.group) })
			many(th.rest(t, "the rest"), throngs*look/slice-1, t)
			for i, w := range th.all {
				if w.version != th.group.version || len(w.places) == 0 {
					t.Fatalf("number %d was not asked anew, or waits nowhere", i)
				}
			}
		},
		"no limit any more": func(t *testing.T) {
			th := newThrong(t, alike, long)
			th.accounts = nil
			th.step(t, "the change", mostAsked, func() { th.Redraw(1, &th.group) })
			many(th.rest(t, "the rest"), throngs*look/slice-1, t)
			for i, w := range th.all {
				if !w.granted {
					t.Fatalf("number %d still waits", i)
				}
			}
		},
		"room for all": func(t *testing.T) {
			th := newThrong(t, alike, long)
			for _, a := range th.accounts {
				a.Meter = counted{rateOf(2*throngs, 2*throngs), &th.asked}
				th.Mark(a)
			}
			th.step(t, "the change", mostAsked, func() { th.Run(1) })
			many(th.rest(t, "the rest"), throngs*look/slice-1, t)
			if th.Waiting != 0 {
				t.Errorf("%d still wait", th.Waiting)
			}
		},
		"all leave one limit for another": func(t *testing.T) {
			th := newThrong(t, alike, long)
			th.accounts[0].Meter = counted{rateOf(2*throngs, 2*throngs), &th.asked}
			th.add(rateOf(1, 1))
			th.accounts[2].Meter.Take(1, 1, false)
			th.group.version++ // as Extend
			th.Mark(th.accounts[0])
			th.step(t, "the change", mostAsked, func() { th.Run(1) })
			th.rest(t, "the rest")
		},
		"all give up": func(t *testing.T) {
			th := newThrong(t, alike, long)
			for _, w := range th.all {
				th.step(t, "one that gives up", 30, func() { th.Abandon(1, w) })
			}
			th.rest(t, "the rest")
		},
		"as many priorities": func(t *testing.T) {
			th := newThrong(t, func(i int, q *Request) { q.Priority, q.Lane = i*7919%1_000_003, strconv.Itoa(i%3) }, long)
			for range 100 {
				th.now += hour
				th.step(t, "a grant", 30, func() {
					for _, a := range th.accounts {
						th.Mark(a)
					}
					th.Run(th.now)
				})
			}
			if granted := throngs - th.Waiting; granted != 100 {
				t.Errorf("%d are granted in 100 hours, want 100", granted)
			}
		},
	} {
		t.Run(name, test)
	}
}

// TestNobodyPassesThoseThatAreAskedAnew: as long as a change has not come to all that
// wait, who comes then waits behind them, also for what nobody is short of yet.
func TestNobodyPassesThoseThatAreAskedAnew(t *testing.T) {
	th := newThrong(t, func(int, *Request) {}, Patience{Most: throngs * 10 * time.Hour})
	th.accounts = nil
	th.add(rateOf(throngs+1, throngs+1))
	th.Redraw(1, &th.group)
	if n := throngs - th.Waiting; n == 0 || n > slice/look {
		t.Fatalf("%d were granted with the lock held, want at most %d", n, slice/look)
	}
	q := th.request(throngs + 1)
	if th.Enter(1, th.Needs(1, nil), q) {
		t.Fatal("a newcomer was granted before those that wait")
	}
	if _, ok := th.Overtake(1, q, th.Needs(1, nil)); ok {
		t.Fatal("one that may not wait was granted before those that do")
	}
	p := &Patience{Ctx: context.Background(), Most: time.Hour, Queue: throngs}
	w, _, r := th.Queue(1, q, th.Needs(1, nil), p)
	if r != nil || w.granted {
		t.Fatalf("a newcomer is granted: %v, refused: %+v", w != nil && w.granted, r)
	}
	urgent := th.request(throngs + 2)
	urgent.Priority = 1
	u, _, r := th.Queue(1, urgent, th.Needs(1, nil), p)
	if r != nil || u.granted != th.all[0].granted {
		t.Errorf("one of a higher priority is not granted: %+v", r)
	}
	th.rest(t, "the rest")
	if w.granted || !th.all[throngs-1].granted || !u.granted {
		t.Errorf("granted: the newcomer %v, the last of those before it %v, the urgent one %v", w.granted, th.all[throngs-1].granted, u.granted)
	}
}
