package throttle

import (
	"net/http"
	"strings"
	"time"

	"github.com/weirhttp/weir/internal/hosts"
	"github.com/weirhttp/weir/internal/pattern"
	"github.com/weirhttp/weir/internal/table"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// record is what a Transport keeps of a host, or of a partition of it.
type record struct {
	scope
	t      *Transport
	host   string
	part   string
	routes *pattern.Routes[*plan]
	over   map[string]*record // in the overflow's record: by what applies to a host
}

// newRecord makes the record of a host and partition. The engine's lock is held.
func (t *Transport) newRecord(now instant, host, part, shown string) *record {
	r := &record{t: t, host: host, part: part}
	r.scope = scope{key: shown, Group: queue.Group{Gate: t.engine.NewGate()}}
	r.Gate.Group = &r.Group
	r.renew(now)
	return r
}

// renew makes the accounts of r from the budgets as they are now, and plans
// those anew that wait.
func (r *record) renew(now instant) {
	b := r.t.budgets
	if r.version == b.version {
		return
	}
	r.version = b.version
	r.routes = b.set.Host(r.host)
	old := make(map[string][]*queue.Account)
	for _, m := range r.own {
		if m.a.Group != nil {
			route := m.a.Label.Route
			old[route] = append(old[route], m.a)
		}
	}
	plan := b.other
	if r.routes.Found {
		plan = r.routes.Value
	}
	own := r.members(now, nil, plan, 0, old[""])
	for i := range r.routes.Len() {
		route, plan := r.routes.Route(i)
		own = r.members(now, own, plan, i+1, old[route])
	}
	r.own = own
	r.rest(now, r.Gate.Paused, false)
	if r.Waiting > 0 {
		r.asks(func(q *ask) { q.match(r.routes) }) // their numbers are others now
		r.t.engine.Redraw(now, &r.Group)
	}
}

// members appends the accounts of one plan.
func (r *record) members(now instant, to []member, p *plan, route int, old []*queue.Account) []member {
	var list []*queue.Account
	if p.budget.Pool != "" {
		list = r.t.pool(now, p.budget.Pool, r)
	} else {
		list = p.accounts(now, &r.Group, &r.t.engine.Clock, old)
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
	e := r.t.engine
	e.Lock()
	defer e.Unlock()
	return r.idleNow(e.Now())
}

func (r *record) idleNow(now instant) bool {
	for _, o := range r.over {
		if !o.idle(now) {
			return false
		}
	}
	return r.entered == 0 && r.idle(now)
}

// of returns the record of the host of entry. key is the canonical host.
func (t *Transport) of(entry *hosts.Entry, key string) *record {
	if o := entry.Value.Occupant(hosts.Throttle); o != nil {
		r := o.(*record)
		if !entry.Overflow {
			return r
		}
		return t.overflow(r, key)
	}
	t.engine.Lock()
	shown := key
	if entry.Overflow {
		shown = "others"
	}
	r := t.newRecord(t.engine.Now(), key, "", shown)
	t.engine.Unlock()
	r = entry.Value.Occupy(hosts.Throttle, r).(*record)
	if entry.Overflow {
		return t.overflow(r, key)
	}
	return r
}

// overflow returns what hosts share for which there is no room: those to which
// the same budgets apply share one of each.
func (t *Transport) overflow(r *record, key string) *record {
	t.engine.Lock()
	defer t.engine.Unlock()
	return t.overflowLocked(r, key)
}

func (t *Transport) overflowLocked(r *record, key string) *record {
	routes := t.budgets.set.Host(key)
	sign := []string{routes.Pattern}
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
		o = t.newRecord(t.engine.Now(), key, "", "others")
		r.over[name] = o
	}
	return o
}

// partition returns the record of a partition of host, held: its entry is to be released.
func (t *Transport) partition(host, part string) (*record, *table.Entry[record]) {
	entry := t.parts.Acquire(host+"\x00"+part, time.Time{})
	e := t.engine
	e.Lock()
	defer e.Unlock()
	r := &entry.Value
	if entry.Overflow {
		r.t = t
		return t.overflowLocked(r, host), entry
	}
	if r.t == nil { // the table's own
		fresh := t.newRecord(e.Now(), host, part, host+"#"+t.shown(part))
		*r = *fresh
		r.Gate.Group = &r.Group
		for _, m := range r.own {
			if m.a.Group != nil {
				m.a.Group = &r.Group
			}
		}
	}
	return r, entry
}

// hostOf is the canonical host of r.
func hostOf(r *http.Request) string { return hosts.Key(r) }
