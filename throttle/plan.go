package throttle

import (
	"strconv"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// plan is what a budget makes of a scope: terms, and the meters to make.
type plan struct {
	budget Budget
	specs  []meter.Spec // of the rates
	terms  []*terms     // likewise
	flight *terms       // nil: no limit in flight
}

// newPlan compiles b, which stands under pattern; route is the pattern if it
// names more than a host.
func newPlan(pattern, route string, b Budget) *plan {
	p := &plan{budget: b.clone()}
	for _, r := range p.budget.Rates {
		spec := r.spec()
		p.specs = append(p.specs, spec)
		p.terms = append(p.terms, &terms{unit: spec.Unit, text: r.String(), spec: meter.NewRate(spec), pattern: pattern, route: route})
	}
	if b.InFlight > 0 {
		p.flight = &terms{text: strconv.Itoa(b.InFlight) + " in flight", pattern: pattern, route: route}
	}
	return p
}

// accounts makes p's accounts. Those of old that count the same go on under the
// new terms, others of the same unit pass on what they have seen.
func (p *plan) accounts(now instant, s *scope, clock *meter.Wall, old []*account) []*account {
	list := make([]*account, 0, len(p.terms)+1)
	left := append([]*account(nil), old...)
	for _, t := range p.terms {
		a := reuse(left, t)
		if a == nil {
			m := meter.NewRated(now, t.spec, clock)
			if o := heir(old, t); o != nil {
				m.Inherit(now, o)
			}
			a = &account{meter: m, terms: t, scope: s}
		} else {
			a.meter.(*meter.Rated).Change(now, t.spec)
			a.terms = t
		}
		list = append(list, a)
	}
	if p.flight != nil {
		a := reuse(left, p.flight)
		if a == nil {
			a = &account{meter: &meter.InFlight{}, scope: s}
		}
		a.meter.(*meter.InFlight).Limit = int64(p.budget.InFlight)
		a.terms = p.flight
		list = append(list, a)
	}
	return list
}

// reuse takes the account out of left that counts what t does, if there is one.
func reuse(left []*account, t *terms) *account {
	for i, a := range left {
		if a != nil && a.terms.route == t.route && a.terms.unit == t.unit && sameCount(a.terms.spec, t.spec) {
			left[i] = nil
			return a
		}
	}
	return nil
}

// sameCount reports whether a meter of s can go on as one of t.
func sameCount(s, t *meter.Rate) bool {
	if s == nil || t == nil {
		return s == t
	}
	return s.Continues(t)
}

// heir is the meter of old that remembers longest what t counts.
func heir(old []*account, t *terms) *meter.Rated {
	var best *meter.Rated
	for _, a := range old {
		m, ok := a.meter.(*meter.Rated)
		if ok && a.terms.route == t.route && a.terms.unit == t.unit && (best == nil || m.Per > best.Per) {
			best = m
		}
	}
	return best
}

// walls is how many of p's rates look at the wall's clock.
func (p *plan) walls() (n int) {
	for _, r := range p.budget.Rates {
		if r.Align != nil {
			n++
		}
	}
	return n
}
