package throttle

import (
	"fmt"
	"maps"

	"github.com/weirhttp/weir/internal/pattern"
)

// budgets is what Config.Budgets and Default mean at one time. It does not
// change; SetBudget makes another one.
type budgets struct {
	version uint32
	by      map[string]Budget // by pattern
	set     *pattern.Set[*plan]
	other   *plan
	pools   map[string]*plan
	hosts   *pattern.Set[*hostTerms] // settings of their own; nil: no host has any
	said    map[string]*hostTerms    // the same, by pattern
}

// newBudgets compiles budgets. Errors name the field.
func newBudgets(version uint32, other Budget, by map[string]Budget) (*budgets, error) {
	b := &budgets{version: version, by: make(map[string]Budget, len(by)), pools: make(map[string]*plan), said: make(map[string]*hostTerms)}
	plans := make(map[string]*plan, len(by))
	compile := func(field, text, route string, budget Budget) (*plan, error) {
		if err := budget.check(); err != nil {
			return nil, fmt.Errorf("%s.%w", field, err)
		}
		p := newPlan(text, route, budget)
		if name := budget.Pool; name != "" {
			if twin := b.pools[name]; twin != nil && !twin.budget.equal(budget) {
				return nil, fmt.Errorf("%s.Pool: %q is %v here and %v elsewhere; all budgets of a pool must be the same", field, name, budget, twin.budget)
			}
			b.pools[name] = newPlan("pool "+name, "", budget)
		}
		return p, nil
	}
	for text, budget := range by {
		p, err := pattern.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("Budgets: %w", err)
		}
		route := p.Text
		if p.HostOnly() {
			route = ""
		}
		if plans[text], err = compile(fmt.Sprintf("Budgets[%q]", text), p.Text, route, budget); err != nil {
			return nil, err
		}
		b.by[text] = plans[text].budget
	}
	var err error
	if b.set, err = pattern.NewSet(plans); err != nil {
		return nil, fmt.Errorf("Budgets: %w", err)
	}
	if b.other, err = compile("Default", "", "", other); err != nil {
		return nil, err
	}
	return b, nil
}

// with returns b with the budget of one pattern changed, checked.
func (b *budgets) with(text string, budget Budget) (*budgets, error) {
	by := maps.Clone(b.by)
	p, err := pattern.Parse(text)
	if err != nil {
		return nil, err
	}
	for other := range by { // another spelling is the same pattern
		if q, err := pattern.Parse(other); err == nil && q.Text == p.Text {
			delete(by, other)
		} else if budget.Pool != "" && by[other].Pool == budget.Pool {
			by[other] = budget.clone() // a pool is one budget
		}
	}
	by[p.Text] = budget.clone()
	other := b.other.budget
	if budget.Pool != "" && other.Pool == budget.Pool {
		other = budget
	}
	next, err := newBudgets(b.version+1, other, by)
	if err != nil {
		return nil, err
	}
	next.hosts, next.said = b.hosts, b.said
	return next, nil
}

// withHost returns b with the settings of one pattern changed.
func (b *budgets) withHost(p pattern.Pattern, h *hostTerms) (*budgets, error) {
	next := *b
	next.version++
	next.said = maps.Clone(b.said)
	next.said[p.Text] = h
	var err error
	next.hosts, err = pattern.NewSet(next.said)
	return &next, err
}

// terms are the settings of a host; nil: those of all.
func (b *budgets) terms(host string) *hostTerms {
	if b.hosts != nil {
		if r := b.hosts.Host(host); r.Found {
			return r.Value
		}
	}
	return nil
}

// whole is the budget of all requests to a host that has these routes.
func (b *budgets) whole(routes *pattern.Routes[*plan]) *plan {
	if routes.Found {
		return routes.Value
	}
	return b.other
}

// walls is how many rates look at the wall's clock.
func (b *budgets) walls() int {
	n := b.other.walls()
	for _, budget := range b.by {
		n += (&plan{budget: budget}).walls()
	}
	return n
}
