package throttle

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/pattern"
	"github.com/weirhttp/weir/internal/table"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// record is what a Transport keeps of a host, or of a partition of it. A host's
// domain is its partitions' too, as they wait for its pauses and share its slow
// start. Hosts of a pool share theirs, and so does what has no record of its own.
type record struct {
	domain atomic.Pointer[queue.Domain] // or one that has joined it; nil: the record is not made yet
	scope
	t      *Transport
	host   string
	part   string
	memory headers.Memory     // of the layout of answers; it needs no lock
	over   map[string]*record // of the overflow: the records that hosts beyond MaxKeys share, one for each set of budgets. The shared domain's lock guards it
}

// homeRecord is the record of a host that has a domain of its own. What a call
// writes of the two stands together.
type homeRecord struct {
	domain queue.Domain
	record
}

// make makes the record of a host and partition in domain d. Nobody else knows r,
// or they hold d's lock. What it draws on it gets when it is used.
func (r *record) make(t *Transport, d *queue.Domain, host, part, shown string) *record {
	r.t, r.host, r.part = t, host, part
	r.scope = scope{key: shown, Group: queue.Group{Gate: t.domains.NewGate()}}
	r.Gate.Group = &r.Group
	r.domain.Store(d)
	return r
}

// made reports whether there is something in r's place in a table.
func (r *record) made() bool { return r.domain.Load() != nil }

// lock takes the lock of r's domain, which guards all of r. Until it is given up
// r.domain is that domain.
func (r *record) lock() *queue.Domain {
	d := r.domain.Load()
	e := d.Lock()
	if e != d {
		r.domain.Store(e)
	}
	return e
}

// current is lock, of r with accounts as the budgets are now. It returns when the
// domain last looked at the clock, too.
func (r *record) current() (e *queue.Domain, last, now instant) {
	for {
		e := r.lock()
		last := e.Last()
		now := e.Now()
		if r.version == r.t.budgets.Load().version || r.renew(e, now) {
			return e, last, now
		}
		e.Unlock()
		queue.Join(e, r.t.domains.Shared)
	}
}

// renew makes the accounts of r from the budgets, which have changed, and plans
// those anew that wait. It reports false if r needs the shared domain for that,
// where the accounts of pools are.
func (r *record) renew(e *queue.Domain, now instant) bool {
	b := r.t.budgets.Load()
	routes := b.set.Host(r.host)
	plan := b.whole(routes)
	if e != r.t.domains.Shared && anyPool(plan, routes) {
		return false
	}
	r.version, r.routes = b.version, routes
	r.learned.heed(r.t.terms(r.host))
	old := make(map[string][]*queue.Account)
	for _, m := range r.own {
		if m.a.Group != nil {
			route := m.a.Label.Route
			old[route] = append(old[route], m.a)
		}
	}
	own := r.members(now, nil, plan, 0, old[""])
	for i := range routes.Len() {
		route, plan := routes.Route(i)
		own = r.members(now, own, plan, i+1, old[route])
	}
	r.own = own
	r.rest(now, r.Gate.Paused, false)
	if r.Waiting > 0 {
		e.Redraw(now, &r.Group)
	}
	return true
}

// anyPool reports whether a host to which these budgets apply draws on a pool.
func anyPool(plan *plan, routes *pattern.Routes[*plan]) bool {
	if plan.budget.Pool != "" {
		return true
	}
	for i := range routes.Len() {
		if _, plan := routes.Route(i); plan.budget.Pool != "" {
			return true
		}
	}
	return false
}

// members appends the accounts of one plan.
func (r *record) members(now instant, to []member, p *plan, route int, old []*queue.Account) []member {
	var list []*queue.Account
	if p.budget.Pool != "" {
		list = r.t.pool(now, p.budget.Pool, r)
	} else {
		list = p.accounts(now, &r.Group, &r.t.domains.Clock, old)
	}
	if to == nil {
		to = make([]member, 0, len(list))
	}
	for _, a := range list {
		to = append(to, member{a, route})
	}
	return to
}

// Idle is for the table of hosts.
func (r *record) Idle(time.Time) bool {
	if slices.ContainsFunc(r.others(), func(o *record) bool { return !o.Idle(time.Time{}) }) {
		return false
	}
	e := r.lock()
	defer e.Unlock()
	return r.entered == 0 && r.idle(e.Now())
}

// of returns the record of the host of entry. key is the canonical host.
func (t *Transport) of(entry *hosts.Entry, key string) *record {
	o := entry.Value.Occupant(hosts.Throttle)
	if o == nil {
		var r *record
		if entry.Overflow {
			r = new(record).make(t, t.domains.Shared, key, "", "others")
		} else {
			h := new(homeRecord)
			t.domains.Begin(&h.domain)
			r = h.make(t, &h.domain, key, "", key)
		}
		o = entry.Value.Occupy(hosts.Throttle, r)
		e, _, _ := o.(*record).current() // of a pool the host's share comes before its partitions'
		e.Unlock()
	}
	if entry.Overflow {
		return o.(*record).overflow(key)
	}
	return o.(*record)
}

// overflow returns what hosts share for which there is no room: those to which
// the same budgets apply share one of each. r is the overflow's record.
func (r *record) overflow(key string) *record {
	e := r.lock()
	defer e.Unlock()
	routes := r.t.budgets.Load().set.Host(key)
	sign := []string{routes.Pattern}
	if own := r.t.budgets.Load().hosts; own != nil {
		sign = append(sign, own.Host(key).Pattern)
	}
	for i := range routes.Len() {
		text, _ := routes.Route(i)
		sign = append(sign, text)
	}
	name := strings.Join(sign, "\n")
	o := r.over[name]
	if o == nil {
		if r.over == nil {
			r.over = make(map[string]*record)
		}
		o = new(record).make(r.t, e, key, "", "others")
		r.over[name] = o
	}
	return o
}

// others are the records in r, if it is the overflow's.
func (r *record) others() []*record {
	e := r.lock()
	defer e.Unlock()
	return slices.Collect(maps.Values(r.over))
}

// partition returns the record of a partition of a host, whose record is home. It
// is held: its entry is to be released.
func (t *Transport) partition(home *record, host, part string) (*record, *table.Entry[record]) {
	entry := t.parts.Acquire(host+"\x00"+part, time.Time{})
	r, d := &entry.Value, home.domain.Load()
	if entry.Overflow {
		d = t.domains.Shared
	}
	if !r.made() {
		e := d.Lock()
		if !r.made() {
			r.make(t, e, host, part, host+"#"+t.shown(part))
		}
		e.Unlock()
	}
	if entry.Overflow {
		r = r.overflow(host)
	}
	if r.domain.Load() != home.domain.Load() { // home was met anew, or one of them is shared
		queue.Join(r.domain.Load(), home.domain.Load())
		r.lock().Unlock() // now both know
		home.lock().Unlock()
	}
	return r, entry
}

// hostOf is the canonical host of r.
func hostOf(r *http.Request) string { return hosts.Key(r) }
