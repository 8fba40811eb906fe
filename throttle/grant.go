package throttle

import (
	"slices"
	"sync/atomic"

	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// Grant is what [Limiter.Take] has spent. It needs not be returned, unless its
// budget has InFlight: units come back by themselves as time passes. The zero
// Grant is nothing. Of Cancel and Settle only the first call counts, on any copy.
type Grant struct {
	of    *subject       // the first key's; nil: the key was small
	small *kept          // instead of of
	word  *atomic.Uint64 // one bit of it says whether the grant was ended
	bit   uint8          // which
	n     uint8
	at    instant
	few   [3]queue.Need
	more  []queue.Need // instead of few
	fleet *fleet.Grant // nil without a Store
}

// nextFlag returns a bit that no other grant has, so that a grant needs no memory of
// its own: the next of *word, of which so many are used. The key's lock is held.
func nextFlag(word **atomic.Uint64, used *uint8) (*atomic.Uint64, uint8) {
	if *word == nil || *used == 64 {
		*word, *used = new(atomic.Uint64), 0
	}
	*used++
	return *word, *used - 1
}

// grant makes the zero g a Grant of what was drawn on s, and perhaps others with it, the
// gate left out. Their domain's lock is held.
func (s *subject) grant(g *Grant, needs []queue.Need, at instant) {
	g.of, g.at = s, at
	g.word, g.bit = nextFlag(&s.word, &s.flags)
	for _, d := range needs {
		switch {
		case d.Account.Label.Unit == "" && d.N == 0:
		case int(g.n) < len(g.few):
			g.few[g.n] = d
			g.n++
		default:
			if g.more == nil {
				g.more = append(g.more, g.few[:]...)
			}
			g.more = append(g.more, d)
		}
	}
}

func (g *Grant) needs() []queue.Need {
	if g.more != nil {
		return g.more
	}
	return g.few[:g.n]
}

// end reports whether this is the first end of the grant.
func (g *Grant) end() bool {
	return g.word != nil && g.word.Or(1<<g.bit)>>g.bit&1 == 0
}

// lock takes the lock of the first key, which is a domain's unless the key is still
// small. What was granted when it was is in the account then that it has got since.
func (g *Grant) lock() *queue.Domain {
	if g.small == nil {
		return g.of.lock()
	}
	e, s := g.small.lock()
	if s != nil {
		g.few[0].Account = s.first
	}
	return e
}

// Cancel says that nothing was sent: what was granted goes back. Of a token bucket
// only as much goes back as has not been refilled since, so that never more can be
// sent than without the grant.
func (g Grant) Cancel() {
	if !g.end() {
		return
	}
	g.fleet.Cancel()
	e := g.lock()
	if e == nil {
		defer g.small.mu.Unlock()
		g.small.back(&g)
		return
	}
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
	g.fleet.Done()
	e := g.lock()
	if e == nil {
		defer g.small.mu.Unlock()
		g.small.settle(&g, actual)
		return
	}
	defer e.Unlock()
	now, p := e.Now(), &queue.Permit{Needs: g.own(), Granted: g.at, Answered: g.at}
	e.Settle(now, p, actual)
	e.Free(now, p)
}

// own is a copy of the draws that may be changed.
func (g *Grant) own() []queue.Need { return slices.Clone(g.needs()) }
