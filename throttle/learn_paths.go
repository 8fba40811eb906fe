package throttle

import (
	"net/http"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
)

// kindPaths is what a kind remembers of paths, once limits were stated.
type kindPaths struct {
	asker        *asker            // nil: nobody asked
	where        attribution.Where // of method and path, the last looked at
	method, path string
}

// learnedPaths is what a learner knows of paths, once limits were stated.
type learnedPaths struct {
	divided []division        // at most maxQuotas
	from    attribution.Where // of the answer that is learned from
}

// hearFrom says where the request went whose answer is learned from now.
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
func (k *kind) whereOf(r *http.Request) attribution.Where {
	if r == nil {
		return attribution.Where{}
	}
	if k.paths == nil {
		k.paths = new(kindPaths)
	}
	p := k.paths
	if method := methodOf(r); p.where == (attribution.Where{}) || p.path != r.URL.Path || p.method != method {
		p.path, p.method = r.URL.Path, method
		p.where = attribution.WhereOf(k.learner.terms.seed, method, r.URL.Path)
	}
	return p.where
}

// asker is the meter of those of k that ask; nil: nobody asked.
func (k *kind) asker() *asker {
	if k.paths == nil {
		return nil
	}
	return k.paths.asker
}

// mayAsk reports whether requests of n units to w may go though q is spent: it is not
// sure that they draw on it.
func (q *quota) mayAsk(now instant, w attribution.Where, n float64) bool {
	if !q.sharing.MayAsk(w, n) {
		return false
	}
	q.roll(now)
	return !q.asking && q.reset.Known && q.left < n && !q.flows()
}

// apart reports whether an answer to a request to w, that was sent at sent, can
// not be of q: w was not seen with q, which had nothing left, and yet it was
// served, with as much left as of a count of its own. Or the sizes differ. d is how
// finely q's own requests are told apart then.
func (q *quota) apart(sent instant, w attribution.Where, l *headers.Limit, cost float64, refused bool) (d attribution.Depth, apart bool) {
	d, strange := q.sharing.Strange(w)
	if !strange {
		return 0, false
	}
	if d == attribution.ByStem && l.Quota.Known && q.size.Known && l.Quota.Value != q.size.Value {
		return d, true
	}
	left, ok := remaining(l)
	return d, ok && !refused && q.over(sent) && left+cost >= max(1, q.sizeOr(2)/2)
}

// over reports whether a request that was sent at sent would have been refused by
// q, as far as was known then.
func (q *quota) over(sent instant) bool {
	return !q.asking && !q.flows() && q.left < 1 && q.reset.Known &&
		sent >= q.basis && sent < q.reset.Value.Add(-coarse)
}
