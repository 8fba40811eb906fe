package throttle

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/weirhttp/weir/throttle/internal/queue"
)

// A rule is what a Limiter's settings say of some keys. Keys of one rule have the
// same budget, each for itself.
type rule struct {
	name    string // tells rules apart: "p" and the pattern, "b" and the budget that Budget said, "" for Default
	pattern string // as in Budgets; "": none
	plan    *plan
	err     error        // why keys of it are refused: what Budget said is no budget. plan is nil then
	small   *queue.Label // the rate of keys that can be small: plan's only one. nil: they cannot
	usual   int64        // units that a call without a Cost draws of it
	domains *queue.Domains
}

func (r *rules) rule(name, pattern string, p *plan) *rule {
	n := &rule{name: name, pattern: pattern, plan: p, domains: r.domains}
	if s := p.specs; len(s) == 1 && s[0].Align == nil && s[0].WarmUp == 0 && p.flight == nil {
		n.small, n.usual = p.labels[0], Cost(nil).of(s[0].Unit)
	}
	return n
}

const (
	// mostSaid bounds the budgets of LimiterConfig.Budget that are kept to be
	// shared: more than any service has plans. Keys go on under those that were dropped.
	mostSaid = 1000
	// mostOver bounds the budgets of which keys without room share one, likewise.
	mostOver = 1000
)

// rules say which budget a key has.
type rules struct {
	version atomic.Uint32 // of what stands below; counts from 1
	budget  func(key string) Budget
	check   func(field string, b Budget) error
	domains *queue.Domains // whose clock counts

	mu    sync.RWMutex
	exact map[string]*rule
	globs []glob // the first that matches counts
	other *rule
	said  map[string]*rule // by text of the budget
}

// newRules compiles the budgets of c.
func newRules(c *LimiterConfig, in *queue.Domains, check func(field string, b Budget) error) (*rules, error) {
	r := &rules{budget: c.Budget, check: check, domains: in, exact: make(map[string]*rule), said: make(map[string]*rule)}
	r.version.Store(1)
	if c.Budget != nil && !c.Default.zero() {
		return nil, fmt.Errorf("throttle: Default: %v and Budget are both set; Budget alone says the budget of every key that Budgets does not name", c.Default)
	}
	plan, err := r.compile("Default", c.Default)
	if err != nil {
		return nil, err
	}
	r.other = r.rule("", "", plan)
	for _, key := range slices.Sorted(maps.Keys(c.Budgets)) {
		if _, err := r.set(fmt.Sprintf("Budgets[%q]", key), key, c.Budgets[key]); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *rules) compile(field string, b Budget) (*plan, error) {
	if err := b.check(); err != nil {
		return nil, fmt.Errorf("throttle: %s.%w", field, err)
	}
	if b.Pool != "" {
		return nil, fmt.Errorf("throttle: %s.Pool: %q: a Limiter's keys have budgets of their own", field, b.Pool)
	}
	if err := r.check(field, b); err != nil {
		return nil, err
	}
	return newPlan("", "", b), nil
}

// set gives the keys that pattern names a budget. whole says that it may name
// several.
func (r *rules) set(field, pattern string, b Budget) (whole bool, err error) {
	plan, err := r.compile(field, b)
	if err != nil {
		return false, err
	}
	for i := range plan.labels {
		plan.labels[i].Pattern = pattern
	}
	if plan.flight != nil {
		plan.flight.Pattern = pattern
	}
	next := r.rule("p"+pattern, pattern, plan)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !strings.Contains(pattern, "*") {
		r.exact[pattern] = next
		r.version.Add(1)
		return false, nil
	}
	g, err := newGlob(pattern, next)
	if err != nil {
		return true, fmt.Errorf("throttle: %s: %w", field, err)
	}
	globs := slices.DeleteFunc(slices.Clone(r.globs), func(o glob) bool { return o.rule.pattern == pattern })
	for _, o := range globs {
		if o.literal == g.literal && bothName(o.rule.pattern, pattern) {
			return true, fmt.Errorf("throttle: %s: Budgets[%q] matches some of the same keys, and neither pattern is more specific", field, o.rule.pattern)
		}
	}
	globs = append(globs, g)
	slices.SortStableFunc(globs, func(a, b glob) int { return b.literal - a.literal })
	r.globs = globs
	r.version.Add(1)
	return true, nil
}

// of is the rule of key. It may call the user's function.
func (r *rules) of(key string) *rule {
	r.mu.RLock()
	named := r.named(key)
	r.mu.RUnlock()
	switch {
	case named != nil:
		return named
	case r.budget == nil:
		return r.other
	}
	return r.intern(r.budget(key))
}

func (r *rules) named(key string) *rule {
	if found := r.exact[key]; found != nil {
		return found
	}
	for i := range r.globs {
		if r.globs[i].match(key) {
			return r.globs[i].rule
		}
	}
	return nil
}

// intern is the rule of a budget that the user's function returned. Keys that it
// gives the same budget share one, so that each needs little memory.
func (r *rules) intern(b Budget) *rule {
	text := b.String()
	r.mu.RLock()
	known := r.said[text]
	r.mu.RUnlock()
	if known != nil && known.plan.budget.equal(b) {
		return known
	}
	plan, err := r.compile("Budget", b)
	if err != nil {
		return &rule{err: err}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for other := range r.said {
		if len(r.said) < mostSaid {
			break
		}
		delete(r.said, other) // any: the map's order is random
	}
	next := r.rule("b"+text, "", plan)
	r.said[text] = next
	return next
}

// A glob is a pattern of keys in which "*" stands for any text, also none.
type glob struct {
	rule    *rule
	parts   []string // between the stars
	literal int      // their length: of two patterns that name a key the longer says more
}

func newGlob(pattern string, r *rule) (glob, error) {
	if strings.Contains(pattern, "**") {
		return glob{}, fmt.Errorf("%q: two * in a row mean the same as one", pattern)
	}
	parts := strings.Split(pattern, "*")
	return glob{r, parts, len(pattern) - len(parts) + 1}, nil
}

func (g *glob) match(key string) bool {
	last := len(g.parts) - 1
	if len(key) < g.literal || !strings.HasPrefix(key, g.parts[0]) || !strings.HasSuffix(key, g.parts[last]) {
		return false
	}
	key = key[len(g.parts[0]) : len(key)-len(g.parts[last])]
	for _, part := range g.parts[1:last] {
		i := strings.Index(key, part)
		if i < 0 {
			return false
		}
		key = key[i+len(part):]
	}
	return true
}

// bothName reports whether some text is named by both patterns.
func bothName(a, b string) bool {
	// row[j] says that what is left of a and b[j:] have a text in common.
	row := make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		next := slices.Clone(row)
		for j := len(b); j >= 0; j-- {
			switch {
			case i == len(a) && j == len(b):
				row[j] = true
			case i < len(a) && a[i] == '*':
				row[j] = next[j] || j < len(b) && row[j+1]
			case j < len(b) && b[j] == '*':
				row[j] = row[j+1] || i < len(a) && next[j]
			default:
				row[j] = i < len(a) && j < len(b) && a[i] == b[j] && next[j+1]
			}
		}
	}
	return row[0]
}
