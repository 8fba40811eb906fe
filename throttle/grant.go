package throttle

import (
	"sync/atomic"

	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// Grant is room that [Limiter.Take] has spent. It needs not be returned, unless
// its budget has InFlight: units come back by themselves as time passes. The
// zero Grant is nothing. Of Cancel and Settle only the first call counts, on any
// copy.
type Grant struct {
	of    *subject       // the first key's
	word  *atomic.Uint64 // one bit of it says whether the grant was ended
	bit   uint64
	at    instant
	n     int
	few   [3]queue.Need
	more  []queue.Need // instead of few
	fleet *fleet.Grant // nil without a Store
}

// flag returns a bit that no other grant has, so that a grant needs no memory of
// its own. The domain's lock is held.
func (s *subject) flag() (word *atomic.Uint64, bit uint64) {
	if s.word == nil || s.flags == 64 {
		s.word, s.flags = new(atomic.Uint64), 0
	}
	s.flags++
	return s.word, 1 << (s.flags - 1)
}

// grant makes a Grant of what was drawn on s, and perhaps others with it, the gate
// left out. Their domain's lock is held.
func (s *subject) grant(draws []queue.Need, at instant) Grant {
	g := Grant{of: s, at: at}
	g.word, g.bit = s.flag()
	for _, d := range draws {
		switch {
		case d.Account.Label.Unit == "" && d.N == 0:
		case g.n < len(g.few):
			g.few[g.n] = d
			g.n++
		default:
			if g.more == nil {
				g.more = append(g.more, g.few[:]...)
			}
			g.more = append(g.more, d)
		}
	}
	return g
}

func (g *Grant) draws() []queue.Need {
	if g.more != nil {
		return g.more
	}
	return g.few[:g.n]
}

// end reports whether this is the first end of the grant.
func (g *Grant) end() bool {
	return g.of != nil && g.word.Or(g.bit)&g.bit == 0
}

// Cancel says that nothing was sent: what was granted goes back. Of a token
// bucket's units only those go back that have not flowed off since, so that
// never more can be sent than without the grant.
func (g Grant) Cancel() {
	if !g.end() {
		return
	}
	g.fleet.Cancel()
	e := g.of.lock()
	defer e.Unlock()
	e.Return(e.Now(), &queue.Permit{Needs: g.own(), Granted: g.at, Answered: g.at})
}

// Settle says what it really cost: the difference is charged, or goes back as
// by Cancel. Units that actual does not name stay as they were; a negative
// value counts as zero. A place in flight is given back.
func (g Grant) Settle(actual Cost) {
	if !g.end() {
		return
	}
	g.fleet.Settle(actual)
	e := g.of.lock()
	defer e.Unlock()
	now, p := e.Now(), &queue.Permit{Needs: g.own(), Granted: g.at, Answered: g.at}
	e.Settle(now, p, actual)
	e.Free(now, p)
}

// own is a copy of the draws that may be changed.
func (g *Grant) own() []queue.Need { return append([]queue.Need(nil), g.draws()...) }
