package throttle

import (
	"net/http"

	"github.com/weirhttp/weir/throttle/internal/attribution"
)

// endpointPaths is what an endpoint remembers of paths, once limits were stated.
type endpointPaths struct {
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
func (k *endpoint) whereOf(r *http.Request) attribution.Where {
	if r == nil {
		return attribution.Where{}
	}
	if k.paths == nil {
		k.paths = new(endpointPaths)
	}
	p := k.paths
	if method := methodOf(r); p.where == (attribution.Where{}) || p.path != r.URL.Path || p.method != method {
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
