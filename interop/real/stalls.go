package real

import (
	"sync"
	"time"
)

// Stalls notes when this process was not let run, so that what is judged in real
// time can tell a slow machine from slow code. The zero value has seen none.
type Stalls struct {
	mu   sync.Mutex
	last time.Time // when it ran last; zero: it is not looking
	seen []stall
}

type stall struct {
	end  time.Time
	lost time.Duration
}

const (
	stallTick  = 10 * time.Millisecond
	stallLeast = 10 * time.Millisecond // beyond a tick; any timer is a little late
)

// Watch looks until end is called.
func (s *Stalls) Watch() (end func()) {
	s.tick()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(stallTick):
				s.tick()
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

func (s *Stalls) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if lost := s.lost(now); lost > 0 {
		s.seen = append(s.seen, stall{now, lost})
	}
	s.last = now
}

// lost is the stall that ends now; 0 if there is none.
func (s *Stalls) lost(now time.Time) time.Duration {
	lost := now.Sub(s.last) - stallTick
	if s.last.IsZero() || lost < stallLeast {
		return 0
	}
	return lost
}

// Since is how much time was lost in all stalls that ended after t, in whole.
func (s *Stalls) Since(t time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := s.lost(time.Now())
	for i := len(s.seen) - 1; i >= 0 && s.seen[i].end.After(t); i-- {
		lost += s.seen[i].lost
	}
	return lost
}
