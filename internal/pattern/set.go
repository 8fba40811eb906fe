package pattern

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"net/http"
	"slices"
	"sync"
)

// Set finds values by pattern. Make one with NewSet; its patterns and values do not
// change. Look up a host once with Host and keep the answer: a request is then compared
// only with the patterns of that host. It is safe for concurrent use.
type Set[V any] struct {
	exact map[string][]item[V] // by host
	wild  []item[V]            // most specific first
	none  Routes[V]            // of a host that no pattern names

	mu    sync.Mutex
	known map[string]*Routes[V] // by the patterns that apply to a host: its size depends on these, not on how many hosts there are
}

type item[V any] struct {
	p Pattern
	v V
}

// NewSet parses the keys of m. It is an error if one is no pattern, or if two mean the
// same.
func NewSet[V any](m map[string]V) (*Set[V], error) {
	s := &Set[V]{exact: make(map[string][]item[V]), known: make(map[string]*Routes[V])}
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

// Host returns what the set says about a canonical host: the value of the most specific
// of the patterns that have neither method nor path, and the others, which are called
// routes. Hosts to which the same patterns apply share the result; it must not be changed.
func (s *Set[V]) Host(host string) *Routes[V] {
	exact := s.exact[host]
	if len(exact) == 0 && len(s.wild) == 0 {
		return &s.none
	}
	var space [64]byte
	sign := append(space[:0], '*')
	if len(exact) > 0 {
		sign = append(append(space[:0], host...), ' ') // no host has a space
	}
	for i := range s.wild {
		if s.wild[i].p.MatchHost(host) {
			sign = binary.AppendUvarint(sign, uint64(i))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.known[string(sign)]
	if r == nil {
		r = s.routes(exact, host)
		s.known[string(sign)] = r
	}
	return r
}

func (s *Set[V]) routes(exact []item[V], host string) *Routes[V] {
	r := new(Routes[V])
	for _, items := range [2][]item[V]{exact, s.wild} {
		for i := range items {
			if !items[i].p.MatchHost(host) {
				continue
			}
			if !items[i].p.HostOnly() {
				r.tree.add(len(r.routes), &items[i].p)
				r.routes = append(r.routes, items[i])
			} else if !r.Found {
				r.Found, r.Value, r.Pattern = true, items[i].v, items[i].p.Text
			}
		}
	}
	return r
}

// Routes is what a Set says about one host. It does not change.
type Routes[V any] struct {
	Found   bool   // a pattern without method and path matches the host: Value and Pattern are set
	Value   V      // of the most specific of these
	Pattern string // its canonical spelling
	routes  []item[V]
	tree    tree
}

// Len is the number of routes.
func (r *Routes[V]) Len() int { return len(r.routes) }

// Route returns the canonical pattern and the value of route i, from 0.
func (r *Routes[V]) Route(i int) (string, V) { return r.routes[i].p.Text, r.routes[i].v }

// Each calls f with the number of every route that req matches, in any order. Its time
// depends on the length of req's path and not on the number of routes. It does not
// allocate.
func (r *Routes[V]) Each(req *http.Request, f func(i int)) {
	if len(r.routes) > 0 {
		r.tree.each(req, f)
	}
}
