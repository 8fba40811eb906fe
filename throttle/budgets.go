package throttle

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
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

// aligned reports whether some rate looks at the wall's clock.
func (b *budgets) aligned() bool {
	aligned := b.other.budget.aligned()
	for _, budget := range b.by {
		aligned = aligned || budget.aligned()
	}
	return aligned
}

// HostConfig is what a host may have of its own. It stands instead of what
// [Config] says: a field that is zero means the default, not Config's value.
type HostConfig struct {
	MaxWait         time.Duration // as in Config; zero: 75 s
	MaxPause        time.Duration // as in Config; zero: 5 min
	Pace            bool          // as in Config
	DisableLearning bool          // as in Config. What was learned does not count while it is set
}

// limits are Config's and LimiterConfig's common bounds with their defaults.
type limits struct {
	maxWait  time.Duration // negative: never wait
	maxQueue int
	maxKeys  int
}

// defaultMaxWait is somewhat more than a minute, so that a request outlasts a
// window of a minute that is spent.
const defaultMaxWait = 75 * time.Second

// defaultMaxQueue is how many requests may wait: of more, the last would not go within
// defaultMaxWait unless 133 go a second.
const defaultMaxQueue = 10000

// bounds validates and resolves MaxWait, MaxQueue and MaxKeys.
func bounds(wait time.Duration, queue, keys int) (limits, error) {
	l := limits{cmp.Or(wait, defaultMaxWait), cmp.Or(queue, defaultMaxQueue), cmp.Or(keys, hosts.Size)}
	switch {
	case queue < 0:
		return l, fmt.Errorf("throttle: MaxQueue: %d is negative", queue)
	case keys < 0:
		return l, fmt.Errorf("throttle: MaxKeys: %d is negative", keys)
	}
	return l, nil
}

// defaultMaxPause is the longest pause believed without corroboration: as long as
// servers with short windows ask for, and short enough that one answer which is
// wrong costs a program minutes and not its night.
const defaultMaxPause = 5 * time.Minute

// hostTerms are the settings of a host.
type hostTerms struct {
	learn   *learnTerms
	maxWait time.Duration // negative: never wait
}

// SetHost gives the hosts that a pattern names ("api.example.com",
// "*.example.com", "127.0.0.1:8080") settings of their own from now on. Of
// several patterns the most specific applies, alone. Requests that wait already
// wait no longer than they were to; all else counts at once.
func (t *Transport) SetHost(text string, c HostConfig) error {
	p, err := pattern.Parse(text)
	if err != nil {
		return fmt.Errorf("throttle: SetHost: %w", err)
	}
	if !p.HostOnly() {
		return fmt.Errorf("throttle: SetHost: pattern %q: settings are per host, not per method or path", text)
	}
	if c.MaxPause < 0 {
		return fmt.Errorf("throttle: SetHost %q: MaxPause: %v is negative", text, c.MaxPause)
	}
	terms := *t.learning
	terms.MaxPause, terms.Pace, terms.pausesOnly = cmp.Or(c.MaxPause, defaultMaxPause), c.Pace, c.DisableLearning
	h := &hostTerms{learn: &terms, maxWait: cmp.Or(c.MaxWait, defaultMaxWait)}
	if err := t.change(func(b *budgets) (*budgets, error) { return b.withHost(p, h) }); err != nil {
		return fmt.Errorf("throttle: SetHost: %w", err)
	}
	return nil
}

// terms are those by which a host is learned about.
func (t *Transport) terms(host string) *learnTerms {
	if h := t.budgets.Load().terms(host); h != nil {
		return h.learn
	}
	return t.learning
}

// maxWait is how long requests to a host may wait.
func (t *Transport) maxWait(host string) time.Duration {
	if h := t.budgets.Load().terms(host); h != nil {
		return h.maxWait
	}
	return t.limits.maxWait
}

// heed lets what was learned go on under other terms.
func (m *learned) heed(terms *learnTerms) {
	m.all(func(l *learner) {
		of := terms
		if from := l.terms.before; from != nil {
			of = terms.from(from)
		}
		l.everyFound(func(f *foundLimit) { f.terms = of })
		for _, q := range l.quotas {
			q.terms = of
		}
	})
}
