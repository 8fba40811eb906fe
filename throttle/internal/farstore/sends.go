package farstore

import (
	"sync"
	"time"
)

// Sends collects when requests went. It is safe for concurrent use.
type Sends struct {
	mu sync.Mutex
	At []time.Time // read when all have gone
}

// Add notes one, now.
func (s *Sends) Add() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.At = append(s.At, time.Now())
}

// Most is the largest number of requests in any half-open window.
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
