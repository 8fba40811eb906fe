package pattern

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
)

// Set finds values by pattern. Make one with NewSet; it does not change.
// Look up a host once with Host and keep the answer: matching a request then
// compares only the routes of that host.
type Set[V any] struct {
	exact map[string][]item[V] // by host
	wild  []item[V]            // most specific first
}

type item[V any] struct {
	p Pattern
	v V
}

// NewSet parses the keys of m. Two that mean the same are an error.
func NewSet[V any](m map[string]V) (*Set[V], error) {
	s := &Set[V]{exact: make(map[string][]item[V])}
	seen := make(map[string]string)
	for text, v := range m {
		p, err := Parse(text)
		if err != nil {
			return nil, err
		}
		if twin, ok := seen[p.Text]; ok {
			return nil, fmt.Errorf("patterns %q and %q mean the same", min(text, twin), max(text, twin))
		}
		seen[p.Text] = text
		if p.Wild {
			s.wild = append(s.wild, item[V]{p, v})
		} else {
			s.exact[p.Host] = append(s.exact[p.Host], item[V]{p, v})
		}
	}
	slices.SortFunc(s.wild, order[V])
	for _, items := range s.exact {
		slices.SortFunc(items, order[V])
	}
	return s, nil
}

func order[V any](a, b item[V]) int {
	if n := cmp.Compare(len(b.p.Host), len(a.p.Host)); n != 0 {
		return n
	}
	return cmp.Compare(a.p.Text, b.p.Text)
}

// Host returns what the set says about a canonical host: the value of the
// most specific pattern that names the host alone, and the routes.
func (s *Set[V]) Host(host string) Routes[V] {
	var r Routes[V]
	for _, items := range [2][]item[V]{s.exact[host], s.wild} {
		for i := range items {
			if !items[i].p.MatchHost(host) {
				continue
			}
			if !items[i].p.HostOnly() {
				r.routes = append(r.routes, items[i])
			} else if !r.Found {
				r.Found, r.Value, r.Pattern = true, items[i].v, items[i].p.Text
			}
		}
	}
	return r
}

// Routes is what a Set says about one host.
type Routes[V any] struct {
	Found   bool
	Value   V      // of the host itself
	Pattern string // the pattern that Value stood under
	routes  []item[V]
}

// Len is the number of routes.
func (r *Routes[V]) Len() int { return len(r.routes) }

// Route returns the i-th route's canonical pattern and value.
func (r *Routes[V]) Route(i int) (string, V) { return r.routes[i].p.Text, r.routes[i].v }

// Match reports whether the i-th route names r. It does not allocate.
func (r *Routes[V]) Match(i int, req *http.Request) bool { return r.routes[i].p.MatchRoute(req) }
