package throttle

import (
	"net/http"

	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// A ticket is what learning wants to know of a request that ended.
type ticket struct {
	endpoint *endpoint
	sent     instant // when it was granted
	cost     Cost
	permit   *placed       // not answered yet; nil: it drew on nothing
	solo     *solo         // nil: not refused
	object   *solo         // of its URL; nil: not refused
	r        *http.Request // says where it went; nil: that is not known
	booked   *fleet.Grant  // in the Store; nil: not
	away     bool          // its answer told it to stay away for a while
	limited  bool          // its answer was a 503 that said no more, and most likely a limiter's
	probe    bool          // of a circuit, which asks as seldom as it likes: a failure shows no rate
}

// where is where the request went. To find that out takes time, so it is asked only about
// limits of which it is not settled that all requests of a kind share them.
func (g *ticket) where() attribution.Where { return g.endpoint.whereOf(g.r) }

// bound reports whether q applies to the request, if it applies to its kind.
func (g *ticket) bound(q *quota) bool {
	return q.Sharing.Depth() == attribution.ByKind || q.Sharing.Binds(g.where())
}

func (g *ticket) mark(a *queue.Account) (m meter.Token, drew bool) {
	if g.permit != nil {
		if d := queue.Of(g.permit.Needs, a); d != nil {
			return d.Token, true
		}
	}
	return 0, false
}

func (g *ticket) drew(q *quota) bool {
	_, drew := g.mark(q.account)
	return drew
}

// asked reports whether the request was let through to ask what there is.
func (g *ticket) asked(q *quota) bool {
	m, _ := g.mark(q.account)
	return m&markAsks != 0
}

// lone reports whether the request started alone while others were under way.
func (g *ticket) lone() bool { return g.started()&markLone != 0 }

// load is how many were under way when the request started, itself included.
func (g *ticket) load() attribution.Load {
	return attribution.Load(g.started() >> loadAt & (attribution.Loads - 1))
}

// started is what the request's endpoint noted when it started.
func (g *ticket) started() meter.Token {
	m, drew := g.mark(&g.endpoint.account)
	if !drew && g.permit != nil {
		m = meter.Token(g.permit.marks[2])
	}
	return m
}

// An ending is how a request came out.
type ending uint8

const (
	unsent    ending = iota // nothing left the process
	cancelled               // by the caller; the server may have counted it
	failed                  // no answer in time or no connection
	replied
)
