package throttle

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

const (
	// headStartWait is for how long the first request of a kind waits for others at a host
	// that is not well known. By then what the host was to refuse is refused, nearly all
	// over the world: it is as long as a request counts there before the host has answered
	// any.
	headStartWait = 750 * time.Millisecond

	// mostHeadStarts is how many may be under way beside the slow start of a host, whose
	// credentials may be any number: as many as it lets go besides when its first four are
	// not answered.
	mostHeadStarts = 16
)

// A headStart is a meter on which the first request of a kind draws, in the place of that
// of its host's slow start. Any number of requests of other kinds may be waiting for that,
// and those under way may be long polls. They would hold up a kind for which the host has
// room, as far as anybody knows. So one request of a kind of which none is under way waits
// for them only a short time, or not at all if the host has answered one of its kind.
type headStart struct {
	meter.Open
	host    *hostStart
	busy    bool    // it is under way
	until   instant // so long it waits at most
	account queue.Account
}

// headStart is the account on which q, of k, draws in the place of its host's slow start;
// nil: on that.
func (k *endpoint) headStart(q *ask) *queue.Account {
	if q.head != nil {
		return &q.head.account
	}
	l, h := k.learner, k.learner.host
	if h.slow.Free() || l.terms.Fleet || h.heads >= mostHeadStarts || k.slow.UnderWay() > 0 || h.account.Clear(q.now) && h.At(q.now, 1) <= q.now {
		return nil
	}
	p := made(&k.paths)
	if p.head == nil {
		p.head = &headStart{host: h}
		p.head.account = queue.Account{Meter: p.head, Label: l.terms.words.host, Group: &l.scope.Group}
	}
	head := p.head
	if head.busy || head.account.Waited() {
		return nil
	}
	if head.until = q.now; k.slow.Good() == 0 {
		head.until = q.now.Add(headStartWait)
	}
	q.head = head
	return &head.account
}

func (h *headStart) At(now instant, _ int64) instant {
	if h.busy {
		return never
	}
	if h.host.heads >= mostHeadStarts {
		return now.Add(headStartWait) // these may be another credential's, of whose end nobody tells
	}
	return max(now, min(h.host.At(now, 1), h.until))
}

func (h *headStart) Take(instant, int64, bool) meter.Token {
	h.busy = true
	h.host.heads++
	return 0
}

func (h *headStart) Return(instant, int64, meter.Token, instant, instant) {
	h.busy = false
	h.host.heads--
}

func (h *headStart) Spares(now instant) bool { return !h.busy && h.host.Spares(now) }

func (h *headStart) ETA(now instant, _, _ int64) instant { return h.At(now, 1) }
func (h *headStart) Regain(int64) time.Duration          { return h.host.Regain(1) }
func (h *headStart) Words(now instant) string            { return h.host.Words(now) }
