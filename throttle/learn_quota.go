package throttle

import (
	"hash/maphash"
	"math"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/queue"
	"github.com/weirhttp/weir/throttle/internal/stated"
)

// learnTerms are the settings that learning depends on.
type learnTerms struct {
	stated.Terms
	pausesOnly bool      // nothing is learned but pauses
	zero       time.Time // what our zero time is on the wall, for words
	seed       maphash.Seed
	words      *learnWords
	jitter     func() float64 // uniform in [0,1)
	before     *before        // of one caller, who has terms of his own then: what is known from another run; nil: nothing
}

// learnWords are terms that all hosts share.
type learnWords struct{ server, host, endpoint, alone, asker *queue.Label }

func newLearnWords() *learnWords {
	return &learnWords{
		server:   &queue.Label{Text: "what the server bears", ToHeaders: true, Says: true},
		host:     &queue.Label{Text: "requests at a time to a host not well known", ToHeaders: true},
		endpoint: &queue.Label{Text: "requests of one kind at a time", ToHeaders: true},
		alone:    &queue.Label{Text: "refusals of this request alone", ToHeaders: true},
		asker:    &queue.Label{Text: "one request that asks", ToHeaders: true},
	}
}

// A quota is a limit that the server stated, and whom it binds. Whoever owns it holds
// the lock.
type quota struct {
	stated.Limit
	account   *queue.Account
	terms     *learnTerms
	endpoints []*endpoint // the kinds of request that it binds
	spent     bool        // the last answer left nothing
	usual     float64     // units of a request whose caller says no cost, as the server said of others; 0: it did not
	priced    int         // how many answers said so; at most pricedBy
}

// pricedBy is how many of the last answers make the mean of what requests cost, about:
// enough for one dear request among cheap ones to change little.
const pricedBy = 16

// costs is what a request whose cost is c draws of q, and whether that is counted at all:
// what the caller says, else what the server said of requests before it.
func (q *quota) costs(c Cost) (units float64, counted bool) {
	if _, said := c[unitName(q.ID.Unit)]; !said && q.usual > 0 {
		return math.Ceil(q.usual), true
	}
	return unitsOf(c, q.ID.Unit)
}

// cost is costs for the request of g, whose answer states limit. If it was refused, it
// is known from then on what it needs itself.
func (q *quota) cost(g *ticket, limit *headers.Limit) (units float64, counted bool) {
	unit := unitName(q.ID.Unit)
	_, said := g.cost[unit]
	n, size := limit.Cost.Value, limit.Quota
	if !size.Known {
		size = q.Size()
	}
	if said || !limit.Cost.Known || n <= 0 || n > math.MaxInt32 || size.Known && n > size.Value {
		return q.costs(g.cost) // what costs more than there ever is says nothing of others
	}
	q.priced = min(q.priced+1, pricedBy)
	q.usual += (n - q.usual) / float64(q.priced)
	if g.solo != nil {
		g.solo.unit, g.solo.needs = unit, int64(math.Ceil(n))
	}
	return n, true
}

// lacked reports that a request was refused for no other reason than that limit, which
// its answer states, had less left than the request needs. When there will be enough is
// known then, so nobody has to pause.
func (q *quota) lacked(limit *headers.Limit) bool {
	return q.usual > 0 && refills(limit) > 0
}

// dearer reports that requests cost another sum, as the server says, than those that
// wait are taken for: by an eighth, because all of them are planned anew then.
func (q *quota) dearer() bool {
	was := float64(q.account.Label.Usual)
	return math.Abs(q.usual-was) > max(1, was/8)
}

// count says whether requests of g draw units of q, or only wait for its pauses.
func (q *quota) count(counted bool, g *queue.Group) {
	t := &queue.Label{Text: "the limit stated by " + fieldName(q.Source), ToHeaders: true}
	if counted {
		t.Unit, t.ToHeaders = unitName(q.ID.Unit), false
		if t.Usual = int64(math.Ceil(q.usual)); t.Usual > 0 {
			q.Guess()
		}
	}
	if q.account == nil {
		q.account = &queue.Account{Meter: q, Group: g}
	}
	q.account.Label = t
	q.Count(counted, q.account)
}
