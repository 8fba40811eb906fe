package farstore

import (
	"sync"
	"time"
)

// Sends collects when requests were sent. The zero value has none. Add is safe for
// concurrent use.
type Sends struct {
	mu sync.Mutex
	At []time.Time // to be read when no more is added
}

// Add notes that a request is sent now.
func (s *Sends) Add() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.At = append(s.At, time.Now())
}

// Most is the largest number of requests in any window of length per, whose end is not part
// of it. It is called when no more is added.
func (s *Sends) Most(per time.Duration) int {
	most, lo := 0, 0
	for hi := range s.At {
		for s.At[hi].Sub(s.At[lo]) >= per {
			lo++
		}
		most = max(most, hi-lo+1)
	}
	return most
}
