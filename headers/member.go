package headers

import (
	"strings"
	"time"
)

// facts are the pairs of one item.
type facts struct {
	name, unit, scope, partition string
	quota, remaining, used       Opt[float64]
	window, reset                Opt[time.Duration]
	broken                       bool // a remaining or a reset is no integer
}

// gather reads the pairs of x by their keys, in the spelling of the drafts and
// in those of others.
func gather(x *item, now time.Time) (f facts) {
	for i := range x.npair {
		pr := &x.pairs[i]
		var low [16]byte
		if len(pr.key) > len(low) {
			continue
		}
		n := copyLower(low[:], pr.key)
		switch string(low[:n]) {
		case "q", "quota", "limit", "total", "max":
			f.quota = countOf(pr.text)
		case "r", "remaining", "rem", "left", "available":
			f.remaining = countOf(pr.text)
			f.broken = f.broken || !isInteger(pr.text)
		case "u", "used", "usage", "count":
			f.used = countOf(pr.text)
		case "t", "reset", "resets", "reset_after", "reset-after":
			if v, _, _, ok := parseReset(pr.text, time.Second, now); ok {
				f.reset = some(v)
			}
			f.broken = f.broken || !isInteger(pr.text)
		case "w", "window", "period", "interval", "per":
			if w, ok := parseWindow(pr.text, time.Second); ok {
				f.window = some(w)
			}
		case "name", "n", "policy", "bucket", "b", "id":
			f.name = pr.text
		case "qu", "unit", "units":
			f.unit = clean(pr.text)
		case "scope":
			f.scope = clean(pr.text)
		case "pk", "partition":
			f.partition = clean(strings.Trim(pr.text, ":"))
		}
	}
	return f
}

func countOf(s string) (o Opt[float64]) {
	if v, minus, ok := parseCount(s); ok && !minus {
		o = some(v)
	}
	return o
}

// any reports whether f holds a number.
func (f *facts) any() bool {
	return f.quota.Known || f.remaining.Known || f.used.Known || f.reset.Known || f.window.Known
}

// give copies what f knows to d.
func (f *facts) give(d *draft) {
	if f.quota.Known {
		d.set(roleQuota, f.quota.Value, false)
	}
	if f.remaining.Known {
		d.set(roleRemaining, f.remaining.Value, false)
	}
	if f.used.Known {
		d.set(roleUsed, f.used.Value, false)
	}
	if f.window.Known {
		d.Window = f.window
	}
	if f.unit != "" {
		d.Unit = f.unit
	}
	if f.scope != "" {
		d.Scope = f.scope
	}
	if f.partition != "" {
		d.Partition = f.partition
	}
}

// structured takes a named item of RateLimit or RateLimit-Policy, drafts -08
// and later. Its numbers must be integers without a sign; if the remaining or
// the reset is none, the whole item is dropped, as the drafts ask.
func (p *parser) structured(m *meaning, x *item, f facts) {
	if f.broken || !f.any() {
		return
	}
	o := fromPolicy
	if f.remaining.Known || f.reset.Known || f.used.Known {
		o = fromStructured
	}
	d := p.add(m, o)
	if d == nil {
		return
	}
	d.Name = clean(x.bare[0].text)
	if x.nbare > 1 {
		d.alias = clean(x.bare[1].text)
	}
	f.give(d)
	if f.reset.Known {
		d.reset(f.reset.Value, sureStructured, Next)
	}
}

// policy takes an item that is a quota with its window, drafts -03 to -07.
func (p *parser) policy(m *meaning, quota float64, minus bool, f facts) {
	if minus {
		return
	}
	f.quota = some(quota)
	d := p.add(m, fromPolicy)
	if d == nil {
		return
	}
	d.Name = clean(f.name)
	f.give(d)
}

// assoc is the state of a list of pairs without bare values: "limit=10,
// remaining=5, reset=1" is one limit in three items, "q=1;r=1, q=2;r=2" is two.
// So are two lines, if they say different quotas.
type assoc struct {
	draft  int // index of the limit that is being filled; -1: none
	seen   facts
	made   int
	begins bool // a line
}

// assoc takes such an item.
func (p *parser) assoc(m *meaning, x *item, f facts, a *assoc) {
	if !f.any() {
		p.shares(m, x)
		return
	}
	again := f.name != "" || f.quota.Known && a.seen.quota.Known || f.remaining.Known && a.seen.remaining.Known ||
		f.reset.Known && a.seen.reset.Known || f.used.Known && a.seen.used.Known
	if a.begins && a.draft >= 0 && f.name == "" {
		quota := p.at(a.draft).Quota
		again = f.quota.Known && quota.Known && f.quota != quota
		a.seen = facts{}
	}
	a.begins = false
	if a.draft < 0 || again {
		per, place := m.window, 0
		if w, ok := windowNamed(f.name); ok {
			per = w
		} else if a.made > 0 {
			place = maxItems + a.made // apart from all bare lists
		}
		d := p.draft(m, per, place)
		if d == nil {
			return
		}
		if per > 0 {
			d.Window = some(per)
		} else if f.name != "" {
			d.Name = clean(f.name)
		}
		a.draft, a.seen = p.index(d), facts{}
		a.made++
	}
	d := p.at(a.draft)
	f.give(d)
	a.seen.merge(&f)
	if f.reset.Known {
		d.reset(f.reset.Value, sureDelta, Unknown)
	}
}

// merge notes what has been seen.
func (f *facts) merge(g *facts) {
	f.quota.Known = f.quota.Known || g.quota.Known
	f.remaining.Known = f.remaining.Known || g.remaining.Known
	f.used.Known = f.used.Known || g.used.Known
	f.reset.Known = f.reset.Known || g.reset.Known
}

// shares takes pairs like "api-usage=25/5000", each a limit of its own.
func (p *parser) shares(m *meaning, x *item) {
	for i := range x.npair {
		if used, quota, ok := slashPair(x.pairs[i].text); ok {
			p.share(m, p.named(m, x.pairs[i].key), used, quota)
		}
	}
}

// index returns the place of d.
func (p *parser) index(d *draft) int {
	for i := range p.n {
		if d == p.at(i) {
			return i
		}
	}
	return -1
}

// windowNamed reads a name that is nothing but a window: "per_hour".
func windowNamed(s string) (time.Duration, bool) {
	if len(s) > 16 {
		return 0, false
	}
	var low [16]byte
	b := low[:copyLower(low[:], s)]
	if len(b) > 4 && string(b[:3]) == "per" && (b[3] == '_' || b[3] == '-') {
		b = b[4:]
	}
	w := windowOf(string(b))
	return w.window, w.window > 0
}

// parseWindow reads the length of a window: a number, a duration, a word.
func parseWindow(s string, unit time.Duration) (w time.Duration, ok bool) {
	if d, ok := parseDecimal(s); ok {
		w = d.times(unit)
	} else if d, ok := parseSpan(s); ok {
		w = d
	} else if d, ok := windowNamed(s); ok {
		w = d
	}
	return w, w > 0
}

// categories reads "60:transaction:key, 2700:default;error:organization": for
// each category nothing is left for so many seconds. No category means all,
// and then the seconds are a wait as well.
func (p *parser) categories(m *meaning, s string) {
	for more, n := true, 0; more && n < maxItems; n++ {
		var entry string
		entry, s, more = strings.Cut(s, ",")
		secs, rest, _ := strings.Cut(entry, ":")
		d, ok := parseDecimal(trim(secs))
		if !ok {
			continue
		}
		wait := d.times(time.Second)
		names, rest, _ := strings.Cut(rest, ":")
		scope, _, _ := strings.Cut(rest, ":")
		if trim(names) == "" {
			p.waits.add(some(wait), false)
		}
		for again, k := true, 0; again && k < maxItems; k++ {
			var name string
			name, names, again = strings.Cut(names, ";")
			if d := p.named(m, trim(name)); d != nil {
				d.set(roleRemaining, 0, false)
				d.reset(wait, sureDelta, Boundary)
				if d.Scope == "" {
					d.Scope = clean(trim(scope))
				}
			}
		}
	}
}
