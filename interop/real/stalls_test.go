package real

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestStalls: in a bubble whose time passes while the one that looks waits for
// a lock, as all of a process waits that is not let run.
func TestStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Stalls
		end := s.Watch()
		time.Sleep(time.Minute)
		if lost := s.Since(time.Time{}); lost != 0 {
			t.Errorf("lost %v in a minute without a stall", lost)
		}
		end()
		time.Sleep(3 * time.Second)
		began := time.Now()
		if lost := s.Since(began); lost < 2900*time.Millisecond || lost > 3*time.Second {
			t.Errorf("lost %v in a stall of 3 s that lasts", lost)
		}
		defer s.Watch()()
		time.Sleep(time.Minute)
		if lost := s.Since(began.Add(-time.Second)); lost < 2900*time.Millisecond || lost > 3*time.Second {
			t.Errorf("lost %v in a stall of 3 s", lost)
		}
		if lost := s.Since(began.Add(time.Second)); lost != 0 {
			t.Errorf("lost %v after the stall", lost)
		}
	})
}
