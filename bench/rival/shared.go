package rival

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weirhttp/weir/bench/wait"
)

// Shared is what careful programs write against servers that say little: one
// pause for all requests, and a number of requests at a time that is halved
// when one is refused and grows by one with each round (AIMD).
func Shared() Rival {
	return plain("AIMD, shared pause", "https://www.rfc-editor.org/rfc/rfc5681", func() (pacing, func() float64) {
		return &shared{window: sharedFirst, growth: 1, changed: make(chan struct{})}, nil
	})
}

// sharedFirst is the initial window of RFC 6928.
const sharedFirst = 10

type shared struct {
	mu       sync.Mutex
	window   float64
	underWay int
	paused   time.Time     // until then nothing goes
	growth   float64       // of the pause, when nothing says how long it has to be
	changed  chan struct{} // closed when somebody may go
}

func (s *shared) alone() bool { return false }

func (s *shared) enter(ctx context.Context) error {
	for {
		s.mu.Lock()
		pause, changed := time.Until(s.paused), s.changed
		free := s.underWay < int(s.window)
		if pause <= 0 && free {
			s.underWay++
			s.mu.Unlock()
			return nil
		}
		s.mu.Unlock()
		if pause > 0 {
			if err := wait.For(ctx, pause); err != nil {
				return err
			}
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *shared) heard(throttled bool, told time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underWay--
	close(s.changed)
	s.changed = make(chan struct{})
	now := time.Now()
	switch {
	case !throttled:
		s.growth = 1
		s.window += 1 / s.window
		return
	case now.Before(s.paused): // of the same flight
	default:
		s.window = max(1, s.window/2)
		if told == 0 {
			told = time.Duration(s.growth * (.5 + rand.Float64()) * float64(time.Second))
			s.growth = min(20, 2*s.growth)
		}
	}
	if until := now.Add(told); until.After(s.paused) {
		s.paused = until
	}
}
