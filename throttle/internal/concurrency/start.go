package concurrency

import (
	"math"
	"strconv"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	// headWait is for how long the first request of a kind waits for others at a host that is
	// not well known. By then what the host was to refuse is refused, nearly all over the
	// world: it is as long as a request counts there before the host has answered any.
	headWait = 750 * time.Millisecond

	// mostHeads is how many may be under way beside the slow start of a host, whose credentials
	// may be any number: as many as it lets go besides when its first four are not answered.
	mostHeads = 16
)

// A Start is the meter of a host's slow start, on which all requests to the host draw. Make one
// with [NewStart].
type Start struct {
	meter.Open
	Slow  Limit
	heads int  // requests under way that had a Head
	fleet bool // it is one of the starts of a fleet's processes
}

// NewStart returns the slow start of a host of which nothing is known.
func NewStart() Start { return Start{Slow: Host()} }

// Share makes s one of the starts of a fleet's processes, all of which may begin now: then each
// begins with one request at a time.
func (s *Start) Share(now meter.Instant) {
	s.fleet = true
	s.Slow.Recall(now, 1, false)
}

func (s *Start) At(now meter.Instant, _ int64) meter.Instant { return s.Slow.Opens(now) }

// unplaced is the token of a request that took no place, because the slow start was over: from
// then on nobody asks how many are under way there.
const unplaced meter.Token = math.MaxUint32

func (s *Start) Take(now meter.Instant, _ int64, _ bool) meter.Token {
	if s.Slow.Free() {
		return unplaced
	}
	return meter.Token(s.Slow.Start(now))
}

func (s *Start) Return(_ meter.Instant, _ int64, m meter.Token, _, _ meter.Instant) {
	if m != unplaced {
		s.Slow.End(uint32(m))
	}
}

func (s *Start) ETA(now meter.Instant, _, _ int64) meter.Instant {
	if s.Slow.Roomy(now) {
		return now
	}
	return meter.Never
}

func (s *Start) Regain(int64) time.Duration { return s.Slow.Place() }

// Spares reports whether nothing is known that speaks against one more request at a time. In
// a fleet, what slow starts let through is for all processes together.
func (s *Start) Spares(meter.Instant) bool { return !s.fleet && !s.Slow.Cut() }

// Words are the limit in words.
func (s *Start) Words(meter.Instant) string {
	return "at most " + strconv.Itoa(s.Slow.Allowed()) + " at a time until it has answered more"
}

// Lends reports whether a request may have a head start.
func (s *Start) Lends() bool { return !s.Slow.Free() && !s.fleet && s.heads < mostHeads }

// A Head is a head start: a meter on which the first request of a kind draws in the place of its
// host's Start. Any number of requests of other kinds may be waiting for that, and those under way
// may be long polls. They would hold up a kind for which the host has room, as far as anybody
// knows. So one request of a kind of which none is under way waits for them only a short time, or
// not at all if the host has answered one of its kind.
type Head struct {
	meter.Open
	host  *Start
	busy  bool          // it is under way
	until meter.Instant // so long it waits at most
}

// NewHead returns the head start of a kind of request to the host of s.
func NewHead(s *Start) Head { return Head{host: s} }

// Offer reports whether a request that comes now may have h. answered says that one of its kind
// was.
func (h *Head) Offer(now meter.Instant, answered bool) bool {
	if h.busy {
		return false
	}
	if h.until = now; !answered {
		h.until = now.Add(headWait)
	}
	return true
}

func (h *Head) At(now meter.Instant, _ int64) meter.Instant {
	if h.busy {
		return meter.Never
	}
	if h.host.heads >= mostHeads {
		return now.Add(headWait) // these may be another credential's, of whose end nobody tells
	}
	return max(now, min(h.host.At(now, 1), h.until))
}

func (h *Head) Take(meter.Instant, int64, bool) meter.Token {
	h.busy = true
	h.host.heads++
	return 0
}

func (h *Head) Return(meter.Instant, int64, meter.Token, meter.Instant, meter.Instant) {
	h.busy = false
	h.host.heads--
}

// Spares reports whether nothing is known that speaks against one more request at a time.
func (h *Head) Spares(now meter.Instant) bool { return !h.busy && h.host.Spares(now) }

func (h *Head) ETA(now meter.Instant, _, _ int64) meter.Instant { return h.At(now, 1) }
func (h *Head) Regain(int64) time.Duration                      { return h.host.Regain(1) }

// Words are those of the host's Start.
func (h *Head) Words(now meter.Instant) string { return h.host.Words(now) }
