package queue

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// many is far more than are looked at while the lock is held.
const many = 3*slice/look + 7

// crowded is a shop whose only unit is spent, for which many wait, each for most.
func crowded(t *testing.T, m meter.Meter, most time.Duration) (*shop, []*Waiter) {
	s := newShop(m)
	s.Lock()
	defer s.Unlock()
	now := s.Now()
	if !s.Enter(now, s.Needs(now, nil), s.request(0)) {
		t.Fatal("not idle")
	}
	p := &Patience{Ctx: context.Background(), Most: most, Full: most, Queue: many}
	var all []*Waiter
	for i := range many {
		w, _, r := s.Queue(now, s.request(uint64(i+1)), s.Needs(now, nil), p)
		if r != nil {
			t.Fatalf("number %d may not wait: %+v", i, r)
		}
		all = append(all, w)
	}
	return s, all
}

// ended is how many of all wait no more, and how many of these were granted. Each
// was told once.
func ended(t *testing.T, all []*Waiter) (n, granted int) {
	for i, w := range all {
		if told := len(w.ready) == 1; told != w.over() || w.granted && w.refused != nil {
			t.Errorf("number %d: told %v, granted %v, refused %v", i, told, w.granted, w.refused)
		}
		if w.over() {
			n++
		}
		if w.granted {
			granted++
		}
	}
	return n, granted
}

// TestAPauseRefusesManyInSlices: all that cannot wait that long hear of it at that
// instant, but the lock is given up in between. Who gives up meanwhile, or is met by
// a second pause, is refused once.
func TestAPauseRefusesManyInSlices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := crowded(t, vague{rateOf(1, 1)}, time.Minute)
		e := s.Lock()
		now := e.Now()
		e.Pause(now, &s.group.Gate, now.Add(time.Hour), now.Add(time.Hour), "paused")
		if n, _ := ended(t, all); n == 0 || n > slice/look {
			t.Errorf("%d of %d were refused with the lock held, want at most %d", n, many, slice/look)
		}
		for _, r := range e.crowd.reviews { // the next one gives up
			if w := r.next(); w != nil {
				e.Abandon(now, w)
				w.ready <- struct{}{} // as if it had been told
			}
		}
		e.Pause(now, &s.group.Gate, now.Add(2*time.Hour), now.Add(2*time.Hour), "paused")
		if e.crowd == nil {
			t.Error("all were refused with the lock held")
		}
		e.Unlock()
		synctest.Wait()
		if n, granted := ended(t, all); n != many || granted > 0 {
			t.Errorf("%d of %d are refused, %d granted", n-granted, many, granted)
		}
		e = s.Lock()
		defer e.Unlock()
		if e.Waiting != 0 || e.Check() != nil {
			t.Errorf("%d wait; %v", e.Waiting, e.Check())
		}
	})
}

// TestAReviewFollowsIntoAJoinedDomain: what is left of it goes on there.
func TestAReviewFollowsIntoAJoinedDomain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := crowded(t, vague{rateOf(1, 1)}, time.Minute)
		e := s.Lock()
		now := e.Now()
		e.Pause(now, &s.group.Gate, now.Add(time.Hour), now.Add(time.Hour), "paused")
		e.Unlock()
		Join(s.Domain, e.of.New())
		synctest.Wait()
		if n, _ := ended(t, all); n != many {
			t.Errorf("%d of %d are refused", n, many)
		}
	})
}

// TestWhatIsShortForLongRefusesManyInSlices: likewise where one account turns out to
// be short, and those whose time allows it wait on.
func TestWhatIsShortForLongRefusesManyInSlices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := rateOf(1000, 1)
		s, all := crowded(t, m, 10*time.Hour)
		e := s.Lock()
		now := e.Now()
		for i, w := range all {
			if i%2 == 0 {
				w.deadline = now.Add(time.Hour)
			}
		}
		s.accounts[0].waitlist.first = now.Add(time.Hour)
		m.Take(now, 3000, false) // a settlement: for three hours
		e.Mark(s.accounts[0])
		e.Run(now)
		if n, _ := ended(t, all); n == 0 || n > slice/look {
			t.Errorf("%d of %d were refused with the lock held, want at most %d", n, many, slice/look)
		}
		e.Unlock()
		synctest.Wait()
		if n, granted := ended(t, all); n != (many+1)/2 || granted > 0 {
			t.Errorf("%d of %d are refused, %d granted; want half", n-granted, many, granted)
		}
		e = s.Lock()
		defer e.Unlock()
		if first := s.accounts[0].waitlist.first; first != now.Add(10*time.Hour) {
			t.Errorf("the first wait ends after %v, want 10 h", first.Until(now))
		}
	})
}

// TestManyWaitsEndAtOneInstant: those whose time is up are refused in slices.
func TestManyWaitsEndAtOneInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, all := crowded(t, vague{rateOf(1, 1)}, time.Minute)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n, granted := ended(t, all); n != many || granted > 0 {
			t.Errorf("%d of %d are refused, %d granted", n-granted, many, granted)
		}
		e := s.Lock()
		defer e.Unlock()
		if e.Waiting != 0 || e.Check() != nil {
			t.Errorf("%d wait; %v", e.Waiting, e.Check())
		}
	})
}

// BenchmarkPause holds the lock while 80000 wait: as long as it takes, others of
// the group have to wait for it.
func BenchmarkPause(b *testing.B) {
	s := newShop(vague{rateOf(1, 1)})
	e := s.Lock()
	defer e.Unlock()
	now := e.Now()
	e.Enter(now, s.Needs(now, nil), s.request(0))
	p := &Patience{Ctx: context.Background(), Most: 1000 * time.Hour, Full: 1000 * time.Hour, Queue: 80000}
	for i := range 80000 {
		if _, _, r := e.Queue(now, s.request(uint64(i+1)), s.Needs(now, nil), p); r != nil {
			b.Fatal("refused")
		}
	}
	for b.Loop() {
		e.Pause(now, &s.group.Gate, now.Add(time.Hour), now.Add(time.Hour), "paused")
		e.crowd.reviews, e.crowd.working = nil, false // the rest has slices of its own
	}
}
