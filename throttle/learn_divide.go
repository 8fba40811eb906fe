package throttle

import (
	"net/http"
	"slices"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/kind"
	"github.com/weirhttp/weir/throttle/internal/learn"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
	"github.com/weirhttp/weir/throttle/internal/stated"
)

// wrongAt is after how many bursts of refusals in a row limits that were told apart are one
// again. Fewer may be due to others who use the same limits. Requests that were sent before the
// first refusal of a burst was heard tell no more than that one: when there is room again, all
// that wait for a limit may be sent at once.
const wrongAt = 5

// A division says that limits of one name are told apart by stem or path.
type division struct {
	id    stated.Key
	depth attribution.Depth
	vain  int8    // bursts of refusals in a row of what had room, while another of them was spent
	heard instant // when the first refusal of the last burst was
}

// divided reports whether some limits are told apart by stem or path.
func (l *learner) divided() bool { return l.paths != nil && len(l.paths.divided) > 0 }

// division is that of limits of that name; nil: they are not divided.
func (l *learner) division(id *stated.Key) *division {
	if l.paths == nil {
		return nil
	}
	if i := slices.IndexFunc(l.paths.divided, func(d division) bool { return d.id == *id }); i >= 0 {
		return &l.paths.divided[i]
	}
	return nil
}

// doubt takes in an answer about q, which had room or not, for or against its
// division: if it was wrong, those that have room are refused when another is spent.
func (l *learner) doubt(now, sent instant, q *quota, roomy, refused bool) {
	d := l.division(&q.ID)
	if d == nil || !slices.ContainsFunc(l.quotas, func(o *quota) bool {
		return o != q && o.ID == q.ID && o.SpentAt(now)
	}) {
		return
	}
	if !refused {
		d.vain = 0
	} else if roomy && sent > d.heard {
		d.vain++
		d.heard = now
	}
	if d.vain < wrongAt {
		return
	}
	for _, o := range slices.Backward(l.quotas) { // drop takes o out
		if o != q && o.ID == q.ID {
			l.drop(o)
		}
	}
	l.paths.divided = slices.DeleteFunc(l.paths.divided, func(o division) bool { return o.id == q.ID })
	q.Sharing, l.changes = attribution.Sharing{}, true
}

// passed takes in that a request to w was served without a word about q, though q had nothing
// left. So q does not bind it, and if no answer to w stated q before, q is told apart from what w
// draws on.
func (l *learner) passed(q *quota, w attribution.Where) {
	if depth, strange := q.Sharing.Strange(w); strange {
		l.divide(q, w, depth, true)
	} else if d := l.division(&q.ID); d != nil && !q.Sharing.Binds(w) {
		d.vain = 0
	}
}

// divide tells limits of q's name apart from now on, so finely, because of an answer to a request
// to w. If clean, q is that of those that were seen with it; else it was a mixture, and is
// forgotten. It probably was one if several paths were seen with it, as each of these has a limit
// of its own if w has one. To ask each of them again costs a burst of refusals at most.
func (l *learner) divide(q *quota, w attribution.Where, depth attribution.Depth, clean bool) {
	l.hearFrom(w)
	if d := l.division(&q.ID); d != nil {
		d.depth = max(d.depth, depth)
	} else {
		if len(l.paths.divided) >= maxQuotas {
			l.dropDivisions()
		}
		l.paths.divided = append(l.paths.divided, division{id: q.ID, depth: depth})
	}
	l.changes = true
	if !clean {
		l.drop(q)
		return
	}
	q.Sharing.Divide(depth)
	q.Unbind()
}

// dropDivisions forgets those of names that no limit has any more. Then there is room for a limit that
// has none: there are at most maxQuotas limits.
func (l *learner) dropDivisions() {
	l.paths.divided = slices.DeleteFunc(l.paths.divided, func(d division) bool {
		return !slices.ContainsFunc(l.quotas, func(q *quota) bool { return q.ID == d.id })
	})
}

// sort takes in what an answer tells of who shares q.
func (l *learner) sort(q *quota, g *ticket, limit *headers.Limit, cost float64, refused bool) {
	s := &q.Sharing
	if left, ok := limit.Left(); ok && !refused {
		if !s.Settled() {
			s.Answered(g.where(), left, cost, q.UnderWay())
		}
	} else if refused {
		s.Refused(g.where(), g.strange())
	}
	if depth, divided := s.Divided(); divided {
		l.divide(q, g.where(), depth, false)
		return
	}
	spent := q.Empty()
	if spent && !q.spent && !s.Settled() {
		l.changes = true // some of those that wait may ask
	}
	q.spent = spent
}

// An asker is the meter by which one request at a time finds out whether a limit
// that is spent is that of its path, too. The others of its endpoint wait for it.
type asker struct {
	meter.Open
	busy    bool
	account queue.Account
}

// askerNeed is what a request to k draws on that is to ask by *a, which is made if need be.
func (k *endpoint) askerNeed(a **asker) queue.Need {
	if *a == nil {
		*a = new(asker)
		(*a).account = queue.Account{Meter: *a, Label: k.learner.terms.words.asker, Group: &k.learner.scope.Group}
	}
	return queue.Need{Account: &(*a).account, N: 1}
}

func (a *asker) At(now instant, _ int64) instant {
	if a.busy {
		return never
	}
	return now
}

func (a *asker) Take(instant, int64, bool) meter.Token                { a.busy = true; return 0 }
func (a *asker) Return(instant, int64, meter.Token, instant, instant) { a.busy = false }
func (a *asker) ETA(now instant, _, _ int64) instant                  { return a.At(now, 1) }
func (a *asker) Regain(int64) time.Duration                           { return time.Second }
func (a *asker) Words(instant) string {
	return "one request asks whether the limit that is spent is that of its path"
}

// strange reports whether the request was let through to ask whether a spent limit
// is that of its path, or of its kind.
func (g *ticket) strange() bool {
	return g.drewFor(g.endpoint.asker()) || g.asksKind()
}

// asksKind reports whether the request was let through to ask whether its kind draws on a spent limit.
func (g *ticket) asksKind() bool {
	p := g.endpoint.learner.paths
	return p != nil && g.drewFor(p.asker)
}

func (g *ticket) drewFor(a *asker) bool {
	if a == nil {
		return false
	}
	_, drew := g.mark(&a.account)
	return drew
}

// endpointPaths is what an endpoint remembers once limits were stated, a request was refused
// or had a head start, or a fleet shares its limit on requests at a time.
type endpointPaths struct {
	asker        *asker            // nil: nobody asked
	where        attribution.Where // of method and path, the last looked at
	method, path string

	head *headStart // of its first request; nil: it had none

	url     uint64            // as objects know it, of the first request since one was refused; zero: none was
	several bool              // there were others since
	reach   attribution.Reach // of long hints, over the URLs
	blamed  *solo             // the URL that was refused last with one; nil: none was

	answers attribution.Answers // since a request was refused
	parts   *attribution.Parts  // likewise; nil: this is a part itself, or none was refused
	whole   *endpoint           // of which this is a part; nil: of none
	part    uint64              // which one
	kin     learn.Kin           // what was found for groups of parts of this that are no more
	before  *KnownLimit         // of parts of this, in another run; nil: nothing was known

	told [causes]uint64 // what OnLearn was told last, by causeKind: a keyed hash of the words

	shared *sharedWindow // nil: how many at a time is this process's alone
}

// learnedPaths is what a learner knows of paths, once limits were stated.
type learnedPaths struct {
	divided []division        // at most maxQuotas
	shares  []share           // likewise
	asker   *asker            // of all kinds, whether they draw on a limit that is spent; nil: none asked
	from    attribution.Where // of the answer that is learned from
}

// hearFrom says where the request went whose answer is learned from now. Of limits that are not
// divided nobody asks for it.
func (l *learner) hearFrom(w attribution.Where) {
	if l.paths == nil && w != (attribution.Where{}) {
		l.paths = new(learnedPaths)
	}
	if l.paths != nil {
		l.paths.from = w
	}
}

// from is where that request went.
func (l *learner) from() attribution.Where {
	if l.paths == nil {
		return attribution.Where{}
	}
	return l.paths.from
}

// whereOf is where r goes.
func (k *endpoint) whereOf(r *http.Request) attribution.Where {
	if r == nil {
		return attribution.Where{}
	}
	p := made(&k.paths)
	if method := kind.Method(r); p.where == (attribution.Where{}) || p.path != r.URL.Path || p.method != method {
		p.path, p.method = r.URL.Path, method
		p.where = attribution.WhereOf(k.learner.terms.seed, method, r.URL.Path)
	}
	return p.where
}

// asker is the meter of those of k that ask; nil: nobody asked.
func (k *endpoint) asker() *asker {
	if k.paths == nil {
		return nil
	}
	return k.paths.asker
}
