package throttle

import (
	"math"
	"slices"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/queue"
	"github.com/weirhttp/weir/throttle/internal/stated"
	"github.com/weirhttp/weir/throttle/internal/words"
)

// A quota is a limit that the server stated, and whom it binds. Whoever owns it holds
// the lock.
type quota struct {
	stated.Limit
	account   *queue.Account
	terms     *learnTerms
	endpoints []*endpoint // the kinds of request that it binds
	spent     bool        // the last answer left nothing
	usual     float64     // the size that good answers state; zero: none does
	other     bool        // the last answer was a refusal for another limit
	said      bool        // the answer that is heard now has stated it
	pretend   pretence
	like      *headers.Limit // what an answer last stated it by, whose name does not change
	namesake  bool           // there is another of the same name, or was
}

// leastFall is how many units have to be missing at once, besides those under way, until a refusal
// may pretend that nothing is left. A few may have been taken by others.
const leastFall = 8

// A pretence is that refusals for another limit say that nothing is left of this one, as Jira's do
// for bursts: much was left, and as much is left afterwards. The zero pretence has seen none.
type pretence struct {
	before, open float64 // units left and under way when the last one came; zero: it said so of little, or was compared
	proved       bool
}

// hear takes in an answer, before q does, and reports whether it is a refusal for another limit.
func (p *pretence) hear(now instant, q *quota, limit *headers.Limit, refused bool) bool {
	left, ok := limit.Left()
	if !refused {
		if ok {
			p.proved = p.proved || math.Abs(left-p.before) <= p.open+2
			p.before = 0
		}
		return false
	}
	if !ok || left >= 1 || q.Heard() == 0 {
		return false
	}
	switch f := q.Facts(now); {
	case f.Asking || !f.Told || !f.Size.Known: // it is not known what there was
	case f.Level >= max(leastFall, f.Size.Value/4):
		p.before, p.open = f.Level, q.UnderWay()
	case f.Left >= 1 && p.before == 0:
		p.proved = false // this one tells the truth
	}
	return p.proved
}

// compare takes in what an answer states, before q hears it.
func (q *quota) compare(now instant, limit *headers.Limit, refused bool) {
	size := limit.Quota
	if !refused && size.Known {
		q.usual = size.Value
	}
	if !refused && q.pretend.before == 0 { // as mostly: there is nothing to compare with
		q.other = false
		return
	}
	q.other = q.pretend.hear(now, q, limit, refused) || refused && size.Known && q.usual != 0 && size.Value != q.usual
}

// mute reports whether only refusals state limits. They say when something is left again, and
// that is waited for. But no answer says how much. To count what is sent would be right only
// if one server counted all of it: where several count, each for itself, they take several
// times as much. Nor is it known when the window of what is sent now began. So such limits are
// not counted, and what is found of limits that nobody states takes their place. One good answer
// that states none is enough: if a later one does, they are counted from then on. While eight were
// awaited, servers that work for long on what they accept were used slowly, and what their refusals
// showed was lost: with this and the bound in cooldown.Quiet, time p90 of these is 2.2 instead of 2.5, train.
func (l *learner) mute() bool { return !l.states && l.good > 0 }

// mayBeMute reports whether limit, which a refusal to endpoint k states, is perhaps no more than a hint:
// the server is mute, or it works for long and has not answered anything well yet. If it turns out to
// state limits, what is found is forgotten. With a name, it may be of few requests.
func (l *learner) mayBeMute(k *endpoint, limit *headers.Limit) bool {
	return l.mute() || !l.states && k != nil && k.slow.Silent() && limit.Name == ""
}

// partNamed lets the kinds of request that are known to be bound by q, which has a name and is
// mute, share what is found. Others may not be bound by a limit that has a name. How each kind is
// answered may show something else later.
func (l *learner) partNamed(now instant, q *quota) {
	if q.ID.Name == "" || len(q.endpoints) == 0 || !l.mute() {
		return
	}
	g := q.endpoints[0].group
	together := !slices.ContainsFunc(q.endpoints, func(k *endpoint) bool { return k.group != g })
	switch all := len(q.endpoints) == len(l.endpoints); {
	case together && (g != nil || all):
	case !all:
		l.part(now, q.endpoints)
	default:
		for _, k := range q.endpoints {
			if k.group != nil {
				l.join(k.group)
			}
		}
	}
}

// silent drops the limits that the request of g drew on and the server states no more. Its answer
// was good, and was heard.
func (l *learner) silent(now instant, g *ticket) {
	for _, q := range slices.Backward(g.endpoint.quotas) { // drop takes q out
		if q.Heard() == now || !g.bound(q) || g.strange() {
			continue
		}
		if units, _, _ := q.costs(g.cost); q.Silent(g.sent, units) {
			l.drop(q)
		}
	}
}

// costs is what a request whose cost is c draws of q, and whether that is counted at all:
// what the caller says, else what others cost before it.
func (q *quota) costs(c Cost) (units float64, counted, guessed bool) {
	units, said := unitsOf(c, q.ID.Unit)
	if !said && q.Usual() > 0 {
		return q.usually(), true, true
	}
	return units, said, !said
}

// usually is what a request is taken to cost if its caller does not say.
func (q *quota) usually() float64 { return math.Ceil(q.Usual()) }

// lacked is the limit for whose sake alone the request of g was refused, which needs more
// than was left; nil: none. From then on it is known what the request needs.
func (l *learner) lacked(now instant, g *ticket, s *headers.Signal) *quota {
	if !s.Throttled || g.solo == nil || l.terms.pausesOnly {
		return nil
	}
	for i := range s.Limits {
		q := l.known(&s.Limits[i], g.endpoint)
		if q == nil || q.Ignored() {
			continue
		}
		if _, _, guessed := q.costs(g.cost); !guessed {
			continue
		}
		if needs, ok := q.Lacked(now, g.sent, &s.Limits[i]); ok {
			g.solo.unit, g.solo.needs = unitName(q.ID.Unit), int64(math.Ceil(needs))
			return q
		}
	}
	return nil
}

// dearer reports that requests cost another sum than those that wait are taken for: by an
// eighth, because all of them are planned anew then.
func (q *quota) dearer() bool {
	was := float64(q.account.Label.Usual)
	return math.Abs(q.Usual()-was) > max(1, was/8)
}

// count says whether requests of g draw units of q, or only wait for its pauses.
func (q *quota) count(counted bool, g *queue.Group) {
	t := &queue.Label{Text: "the limit stated by " + words.Field(q.Source), ToHeaders: true}
	if counted {
		t.Unit, t.ToHeaders = unitName(q.ID.Unit), false
		t.Usual = int64(math.Ceil(q.Usual()))
	}
	if q.account == nil {
		q.account = &queue.Account{Meter: q, Group: g}
	}
	q.account.Label = t
	q.Count(counted, t.Usual > 0, q.account)
}
