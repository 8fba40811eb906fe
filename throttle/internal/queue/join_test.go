package queue

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// TestThoseWhoWaitGoOnInAJoinedDomain: in their order and at the same times, and
// who gives up still costs nothing.
func TestThoseWhoWaitGoOnInAJoinedDomain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := NewDomains()
		s := newShop(vague{rateOf(3600, 1)})
		s.Domain = all.New()
		s.Lock()
		s.Enter(s.Now(), s.Needs(0, nil), s.request(0))
		s.Unlock()
		var wg sync.WaitGroup
		start, ends := time.Now(), make([]time.Duration, 4)
		for i, most := range []time.Duration{time.Minute, time.Minute, 1500 * time.Millisecond, time.Minute} {
			p := &Patience{Ctx: context.Background(), Most: most, Full: most, Queue: 10}
			e := s.Domain.Lock()
			w, _, r := e.Queue(e.Now(), s.request(uint64(i+1)), s.Needs(0, nil), p)
			e.Unlock()
			if r != nil {
				t.Fatalf("number %d may not wait: %+v", i, r)
			}
			wg.Go(func() {
				w.Await(p)
				ends[i] = time.Since(start)
				e := e.Lock()
				defer e.Unlock()
				if granted := e.Finish(e.Now(), w, p).Granted; granted != (most == time.Minute) {
					t.Errorf("number %d is granted: %v", i, granted)
				}
			})
		}
		time.Sleep(500 * time.Millisecond)
		if Join(all.Shared, s.Domain) != all.Shared {
			t.Error("the shared domain was joined to another")
		}
		wg.Wait()
		e := s.Domain.Lock()
		defer e.Unlock()
		if e != all.Shared || e.Check() != nil || e.Waiting != 0 {
			t.Errorf("%d wait; %v", e.Waiting, e.Check())
		}
		for i, want := range []time.Duration{time.Second, 2 * time.Second, 1500 * time.Millisecond, 3 * time.Second} {
			if (ends[i] - want).Abs() > time.Millisecond {
				t.Errorf("number %d ended after %v, want %v", i, ends[i], want)
			}
		}
	})
}

// TestThoseWhoWaitWithoutEndGoOnInAJoinedDomain: no timer ends their waits, so there is
// none to stop.
func TestThoseWhoWaitWithoutEndGoOnInAJoinedDomain(t *testing.T) {
	all := NewDomains()
	s := newShop(rateOf(1, 1))
	s.Domain = all.New()
	s.mu.Lock()
	s.Enter(1, s.Needs(1, nil), s.request(0))
	w := s.join(1, s.request(1))
	s.mu.Unlock()
	e := Join(all.Shared, s.Domain)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.Mark(s.accounts[0])
	if e.Run(meter.Instant(time.Hour)); w.granted || e.Waiting != 1 {
		t.Errorf("granted before there is room: %t, and %d wait", w.granted, e.Waiting)
	}
	e.Mark(s.accounts[0])
	if e.Run(1 + meter.Instant(time.Hour)); !w.granted || e.Waiting != 0 || e.Check() != nil {
		t.Errorf("granted when there is room: %t, and %d wait; %v", w.granted, e.Waiting, e.Check())
	}
}

// vague is a meter of which nothing is certain, so that it refuses nobody at once.
type vague struct{ meter.Meter }

// TestDomainsJoinInAnyOrder: two locks are never taken in two orders, and in the
// end all are one.
func TestDomainsJoinInAnyOrder(t *testing.T) {
	all := NewDomains()
	list := []*Domain{all.Shared}
	for range 63 {
		list = append(list, all.New())
	}
	var wg sync.WaitGroup
	for i := range list {
		wg.Go(func() {
			for k := range list {
				Join(list[(i*7+k)%len(list)], list[k])
				e := list[i].Lock()
				e.Waiting++
				e.Unlock()
			}
		})
	}
	wg.Wait()
	n := 0
	for _, d := range list {
		e := d.Lock()
		if e != all.Shared {
			t.Error("a domain of its own")
		}
		e.Unlock()
		if d.crowd != nil {
			t.Error("a crowd where nobody waits")
		}
		n += int(d.Waiting)
	}
	if n != len(list)*len(list) {
		t.Errorf("%d steps are counted, want %d", n, len(list)*len(list))
	}
}

// TestJoiningManyGoesInSlices: the time of very many that wait ends as before when
// their domain is joined to one where as many do, and the lock is given up after a
// bounded part of that. Who gives up meanwhile is out of it.
func TestJoiningManyGoesInSlices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 5000
		all := NewDomains()
		var waiters []*Waiter
		var shops [2]*shop
		p := &Patience{Ctx: context.Background(), Most: time.Minute, Full: time.Minute, Queue: 2 * n}
		for i := range shops {
			s := newShop(vague{rateOf(1, 1)})
			s.Domain = all.New()
			s.Lock()
			s.Enter(s.Now(), s.Needs(0, nil), s.request(0))
			for k := range n {
				w, _, r := s.Queue(s.Now(), s.request(uint64(k+1)), s.Needs(0, nil), p)
				if r != nil {
					t.Fatalf("number %d may not wait: %+v", k, r)
				}
				waiters = append(waiters, w)
			}
			s.crowd.working = true // so that what is left is done below, and not by a timer that may get the lock first
			s.Unlock()
			shops[i] = s
		}
		e := Join(shops[0].Domain, shops[1].Domain).Lock()
		ordered := len(e.crowd.expiry)
		if ordered > n+slice/look {
			t.Errorf("%d came into the order of ends with the lock held, want at most %d", ordered-n, slice/look)
		}
		now := e.Now()
		for _, w := range append(waiters[:100:100], waiters[2*n-100:]...) { // of each domain
			e.Abandon(now, w)
		}
		for e.crowd.working {
			was := len(e.crowd.expiry)
			e.crowd.working = false
			e.work(now)
			e.Run(now)
			if k := len(e.crowd.expiry) - was; k > slice/look {
				t.Fatalf("%d came into the order of ends with the lock held", k)
			}
		}
		if k := len(e.crowd.expiry); k != int(e.Waiting) || k != 2*n-200 {
			t.Errorf("the time of %d ends, of the %d that wait; want %d", k, e.Waiting, 2*n-200)
		}
		for i, x := range e.crowd.expiry {
			if int(x.w.inExpiry) != i {
				t.Fatalf("number %d does not know its place", i)
			}
		}
		e.Unlock()
		time.Sleep(2 * time.Minute)
		e = e.Lock()
		defer e.Unlock()
		if err := e.Check(); err != nil || e.Waiting != 0 {
			t.Errorf("%d wait after their time has ended; %v", e.Waiting, err)
		}
		for i, w := range waiters {
			if w.granted == (w.refused != nil || w.forsaken) {
				t.Fatalf("number %d is granted: %t, refused: %+v", i, w.granted, w.refused)
			}
		}
	})
}
