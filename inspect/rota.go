package inspect

import (
	"time"

	"github.com/weirhttp/weir/breaker"
)

// seen is a host as it was when it was last looked at.
type seen struct {
	key
	host  *Host // never written to
	quiet bool  // host is ok, and no circuit says anything of it
	full  bool  // time alone changes nothing of it: all its limits are whole
	stamp uint64
	look  uint64    // the last in which it was there
	at    time.Time // when it was looked at
	shown time.Time // when it last stood in a frame
}

const (
	// freshFor is for how long a host that stood in a frame is looked at each time,
	// because the page most likely shows it again.
	freshFor = 3 * time.Second
	// staleAfter is after how long a host is looked at although nothing happened
	// there: what is left of its budgets has grown since.
	staleAfter = time.Minute
	// mostLooks is how many hosts that can wait are looked at at a time. It bounds the
	// cost of a look. If a hundred thousand hosts are all busy, each is looked at once in
	// 50 looks, which a page makes in less than staleAfter; with half as many it would
	// take longer than that.
	mostLooks = 2000
)

// asItWas reports whether a look at s would show what the last one showed. c is its
// circuit.
func (s *seen) asItWas(now time.Time, stamp uint64, c *breaker.CircuitStats) bool {
	return s.quiet && s.stamp == stamp && c == nil && (s.full || now.Sub(s.at) < staleAfter)
}

// canWait reports whether s need not be looked at before its turn: it is known, and c,
// its circuit, has neither opened nor closed since.
func (s *seen) canWait(c *breaker.CircuitStats) bool {
	if s.host == nil {
		return false
	}
	shut := s.host.Circuit != nil && s.host.Circuit.State != breaker.Closed.String()
	return shut == (c != nil && c.State != breaker.Closed)
}

// rota says whose turn it is among more hosts than are looked at at a time. They are
// numbered as the transport names them.
type rota struct {
	from   int // the first whose turn it is
	next   int // the first that was left out; 0: none
	looked int
}

// begin begins a look where the one before had to end.
func (r *rota) begin() { *r = rota{from: r.next} }

// has reports whether it is the turn of host i, which is looked at then.
func (r *rota) has(i int) bool {
	switch {
	case i < r.from:
		return false
	case r.looked < mostLooks:
		r.looked++
		return true
	case r.next == 0:
		r.next = i
	}
	return false
}
