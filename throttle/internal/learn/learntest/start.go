package learntest

// A start is how many requests at a time a server gets that never refused: few at first,
// more with each answer, because what is under way when a limit is reached is refused.
// In package throttle, concurrency.Limit sees to that.
type start struct {
	limit float64 // zero: firstFlight
	good  int
	mean  Instant // smoothed time of answers
}

const (
	firstFlight = 4    // requests at a time to a server that has not answered yet
	fullFlight  = 64   // at a time, until provenGood answers
	provenGood  = 1000 // answers after which only refusals limit
)

// ended takes in an answer that took so long.
func (s *start) ended(took Instant, good bool) {
	if took = max(0, took); s.mean == 0 {
		s.mean = took
	} else {
		s.mean += (took - s.mean) / 8
	}
	if !good || s.good >= provenGood {
		return
	}
	s.good++
	if s.limit == 0 {
		s.limit = firstFlight
	}
	s.limit = min(fullFlight, s.limit+min(1, max(.2, float64(s.mean)/1e9)))
}

func (s *start) allows(busy int) bool {
	return s.good >= provenGood || busy < max(firstFlight, int(s.limit))
}
