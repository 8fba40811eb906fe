package retry

import (
	"math"
	"sync"
	"time"

	"github.com/weirhttp/weir/internal/trip"
)

const (
	// sampled: one in so many of the first attempts that succeed is timed. All other
	// attempts are timed, because they are few or cost far more than reading a clock.
	sampled = 16
	// briefly and usually are over how many timed attempts the two averages go.
	// Eight are seen within the first half second of an overload at 20 calls
	// a second. Of those that count for usually there is one in a tick at
	// most, so that it takes some 25 s until slow answers are usual ones.
	briefly, usually = 8, 256
	tick             = 100 * time.Millisecond
	// growth is how much longer than usual an attempt of an overloaded host
	// takes. Averages of 8 answers that take 10 ms to 1 s by chance are
	// farther apart than this in 1 case of 100; queues grow by far more.
	growth = 3
)

// pace is how long attempts take, as geometric means, so that one that hangs
// does not outweigh all others. Its zero value knows nothing.
type pace struct {
	mu          sync.Mutex
	brief, long float64 // logarithms of seconds
	known       int
	at          time.Time // of the newest that counts for long
}

// timed notes how long an attempt was on the wire, until now.
func (h *host) timed(tr *trip.Trip) {
	sent := tr.OnWire()
	if sent.IsZero() {
		return
	}
	if h.pace.Load() == nil {
		h.pace.CompareAndSwap(nil, new(pace))
	}
	h.pace.Load().add(sent)
}

// slows reports whether the host's attempts take much longer than they used to.
func (h *host) slows() bool {
	p := h.pace.Load()
	return p != nil && p.slows()
}

func (p *pace) add(sent time.Time) {
	now := time.Now()
	took := math.Log(max(now.Sub(sent).Seconds(), 1e-3))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == 0 || now.Sub(p.at) >= tick {
		p.at, p.known = now, min(p.known+1, usually)
		p.long += (took - p.long) / float64(p.known)
	}
	p.brief += (took - p.brief) / float64(min(p.known, briefly))
}

func (p *pace) slows() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known > briefly && p.brief-p.long > math.Log(growth)
}
