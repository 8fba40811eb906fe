package throttle

import (
	"net/http"
	"slices"
	"time"

	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/kind"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// Some APIs limit not a kind of request but parts of it, each on its own: the objects below one
// segment of a path, a single URL, or the forms of paths below it. Where answers show that
// (attribution.Parts), such a part is an endpoint like any other, of the same name as its kind.

// mostParts bounds the parts that are endpoints. Half of all are left to kinds. Requests to
// further parts are as if these had no limits of their own.
const mostParts = maxEndpoints / 2

// mostCounted bounds the kinds whose parts are counted, which takes 6 KB for each.
const mostCounted = 8

// isPart reports whether k is a part of a kind.
func (k *endpoint) isPart() bool { return k.paths != nil && k.paths.whole != nil }

// kind is the kind of request that k is, or is a part of.
func (k *endpoint) kind() *endpoint {
	if k.isPart() {
		return k.paths.whole
	}
	return k
}

// divided reports whether parts of k have limits of their own.
func (k *endpoint) divided() bool {
	if k.paths == nil || k.paths.parts == nil {
		return false
	}
	return k.paths.parts.Found().Split != attribution.All
}

// partOf is to which part of k, which is no part itself, r belongs.
func (k *endpoint) partOf(r *http.Request) attribution.Part {
	own := 0 // of a budget's pattern nobody knows how far it goes
	if k.key.Method != "" {
		own = len("/") + len(k.key.Rest)
	}
	return attribution.PartOf(k.learner.terms.seed, kind.Method(r), r.URL.Path, own)
}

// within is the endpoint of r, a request of k's: that of its part, if this has limits of its own.
// It may be made.
func (k *endpoint) within(r *http.Request, now instant) *endpoint {
	x, part := k.known(r)
	if x != k || part != 0 {
		k.last = now // it is not idle if its parts are not
	}
	if part == 0 {
		return x
	}
	l := k.learner
	if l.partsFull() && !l.dropEndpoint(now, l.parts() >= mostParts) { // with fewer parts, kinds make room, too
		return k
	}
	return k.newPart(part, now)
}

// known is within of what is known already. part is the one of which an endpoint is to be made;
// zero: none.
func (k *endpoint) known(r *http.Request) (x *endpoint, part uint64) {
	if r == nil || !k.divided() {
		return k, 0
	}
	p := k.partOf(r)
	way := k.paths.parts.Found().Way
	for _, x := range k.learner.endpoints {
		if x.isPart() && x.paths.whole == k && x.paths.part == p[way] {
			return x, 0
		}
	}
	if !k.paths.parts.Own(p) {
		return k, 0
	}
	return k, p[way]
}

// parts is how many endpoints are parts.
func (l *learner) parts() (n int) {
	for _, x := range l.endpoints {
		if x.isPart() {
			n++
		}
	}
	return n
}

// partsFull reports whether there is no room for one more part.
func (l *learner) partsFull() bool { return l.parts() >= mostParts || len(l.endpoints) >= maxEndpoints }

// hasPartOf reports whether one of the endpoints is a part of k.
func (l *learner) hasPartOf(k *endpoint) bool {
	return k.paths != nil && k.paths.parts != nil && slices.ContainsFunc(l.endpoints, func(x *endpoint) bool {
		return x.isPart() && x.kind() == k
	})
}

// newPart makes an endpoint for a part of k. There is room for it.
func (k *endpoint) newPart(part uint64, now instant) *endpoint {
	l := k.learner
	x := newEndpoint(l, k.key)
	x.ends = false // the quick way to k does not lead to x
	made(&x.paths).whole, x.paths.part = k, part
	x.enterGroup(k.groupOfParts())
	l.endpoints = append(l.endpoints, x)
	x.resemble(now)
	made(&l.blame).parted = true
	return x
}

// resemble makes what other parts of its kind have found the first guess for k. A refusal of k asks
// for it anew, as they know more by then.
func (k *endpoint) resemble(now instant) {
	if !k.isPart() || k.group == nil {
		return
	}
	all := k.kind().paths
	kin := all.kin.Clone()
	for _, g := range k.kind().groupsOfParts() {
		if g != k.group && g.evidence.sure() {
			kin.Add(&g.evidence.Learner)
		}
	}
	if all.before != nil && kin.Empty() {
		k.group.evidence.recall(now, all.before, k.learner.terms.MaxPause)
	}
	k.group.evidence.Resemble(now, kin)
}

// groupsOfParts are the groups of parts of k.
func (k *endpoint) groupsOfParts() (groups []*group) {
	for _, x := range k.learner.endpoints {
		if x.isPart() && x.kind() == k && x.group != nil && x.group.kinds[0] == x {
			groups = append(groups, x.group)
		}
	}
	return groups
}

// groupOfParts is the group for a part of k.
func (k *endpoint) groupOfParts() *group {
	if k.paths.parts.Found().Split == attribution.Few {
		for _, x := range k.learner.endpoints {
			if x.kind() == k && x.isPart() && x.group != nil {
				return x.group
			}
		}
	}
	return k.learner.newGroup()
}

// countPart counts an answer to a request r of k's, which may be a part. When it shows that limits
// bind other parts than before, nothing is known of these.
func (k *endpoint) countPart(now instant, r *http.Request, refused bool) {
	k = k.kind()
	l := k.learner
	if r == nil || k == l.other || l.terms.pausesOnly || l.terms.Fleet || len(k.quotas) > 0 {
		return // processes of a fleet know kinds by name, and who shares stated limits is found out otherwise
	}
	p := made(&k.paths)
	switch {
	case p.parts == nil && (!refused || !l.mayCount(now)), !refused && p.parts.Quiet():
		return
	case !made(&p.parts).Count(k.partOf(r), refused):
		return
	}
	l.changes = true
	k.regroup()
	if k.divided() {
		l.restart(k)
		if c := k.found().cooldown; c != nil && c.Sure() <= now { // the server did not ask for it
			c.Lift()
		}
	}
}

// mayCount reports whether parts of one more kind may be counted. It may end that for another, that
// was not refused for long, or not called.
func (l *learner) mayCount(now instant) bool {
	n, quiet := 0, (*endpoint)(nil)
	for _, k := range l.endpoints {
		if k.paths == nil || k.paths.parts == nil {
			continue
		}
		if n++; !k.divided() && (k.paths.parts.Quiet() || now-k.last > instant(time.Minute)) {
			quiet = k
		}
	}
	if n >= mostCounted && quiet != nil {
		quiet.paths.parts = nil
		n--
	}
	return n < mostCounted
}

// move makes p's endpoint, in place of k, the part to which p belongs whose answer was a refusal. The
// evidence of that part was not told that p was sent: it is told so now, and that it is over has to
// follow, as p's places are k's.
func (p *attempt) move(now instant, k *endpoint) (x *endpoint, told *evidence) {
	x = k.kind().within(p.r, now)
	if p.endpoint = x; x.group != nil && x.group != k.group {
		told = x.group.evidence
		told.late()
	}
	return x, told
}

// regroup gives the parts of k one group or one for each.
func (k *endpoint) regroup() {
	var parts []*endpoint
	for _, x := range k.learner.endpoints {
		if x.isPart() && x.kind() == k {
			parts = append(parts, x)
			x.enterGroup(nil)
		}
	}
	for _, x := range parts {
		x.enterGroup(k.groupOfParts())
		e := x.group.evidence // several may have it
		e.Under(e.UnderWay() + x.slow.UnderWay())
	}
}

// followPart gives q what is known of its part, if this has limits of its own now. It makes room
// for none, as it may be called while all endpoints are looked through.
func (q *ask) followPart() {
	if q.learn == nil {
		return
	}
	k, part := q.learn.kind().known(q.r)
	if part != 0 && !k.learner.partsFull() {
		k = k.newPart(part, q.now)
	}
	q.learn = k
}

// followPart makes p's endpoint the one on which p drew: while it waited, parts may have been told
// apart, or may be no longer.
func (p *attempt) followPart() {
	all := p.endpoint.kind()
	if all.paths == nil || all.paths.parts == nil {
		return
	}
	for _, x := range all.learner.endpoints {
		if x.kind() == all && queue.Of(p.permit.Needs, &x.account) != nil {
			p.endpoint = x
			return
		}
	}
}
