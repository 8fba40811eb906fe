package store_test

import (
	"slices"
	"time"
)

const (
	modelStep = 6 // ticks by which the clock steps ahead
	modelLate = 2 // ticks that a call from before may take then
)

// mayStep reports whether the clock may step ahead: all processes remember the state, and so
// do their calls that are under way.
func (s *modelState) mayStep() bool {
	for _, m := range s.flight {
		if m.kind == 'a' && m.seen.Gen == 0 {
			return false
		}
	}
	return s.stepped == 0 && !s.fault && !slices.ContainsFunc(s.procs, func(p modelProcess) bool { return p.seen.Gen == 0 })
}

// overEarly reports that all that was in use is over by the clock that has stepped, and only by that.
func (s *modelState) overEarly() bool {
	before := modelStart.Add(time.Duration(s.stepped-1) * modelTick).UnixMicro()
	late := s.time().Add(-modelStep * modelTick)
	return s.stepped > 0 && s.ledger.At <= before && s.ledger.Idle(s.time()) && !s.ledger.Idle(late)
}

// tooLate reports that nobody waits any more for a call that was sent before the clock stepped.
func (s *modelState) tooLate(m modelMessage) bool {
	return m.kind == 'a' && s.stepped > 0 && m.at < s.stepped && s.now-m.at > modelLate
}
