package headers

import (
	"net/http"
	"strings"
	"time"
)

// newLayout returns the layout of resp, nil if it has none: if its headers say anything
// but plain numbers, or if their numbers decide how they are joined. It reads resp
// as Parse does and notes which draft each number went to.
func newLayout(resp *http.Response, now time.Time) *layout {
	var space [16]entry
	found, c := collect(space[:0], resp.Header)
	if len(found) == 0 || len(found) > maxSlots || isGraphQL(resp.Header[mediaType]) {
		return nil
	}
	f := &layout{host: strings.Clone(hostOf(resp)), key: -1}
	f.named = !strings.ContainsAny(f.host, ":[]")
	f.know("Age", asAge)
	f.know("Date", asDate)
	if t, ok := parseTime(c.date.value); ok {
		now = t
		if new(civil).fixed(c.date.value) {
			f.day = strings.Clone(c.date.value[:17])
			f.starts, _ = parseTime(f.day + "00:00:00 GMT")
		}
	}
	p := parser{status: resp.StatusCode, now: now}
	p.from(f.host)
	if !f.readAll(&p, found) {
		return nil
	}
	f.derives(&p)
	f.limits = p.settle()
	if _, coded := kindOfCode(p.text.code); coded || p.compared || !f.place(&p) {
		return nil
	}
	f.advice = p.text.advice
	for i := range f.limits {
		l := &f.limits[i]
		for _, s := range [...]*string{&l.Name, &l.Unit, &l.Scope, &l.Partition, &l.Source} {
			*s = strings.Clone(*s) // what it is a part of is not to be kept
		}
	}
	f.lookAside(resp.Header)
	if f.text() > maxLayoutText {
		return nil
	}
	return f
}

// readAll reads the headers into p and makes the slots. The limit of a number is
// the index of a draft, until place.
func (f *layout) readAll(p *parser, found []entry) bool {
	for _, e := range found {
		m := p.names.read(e.name)
		if m.role == roleNone {
			f.know(strings.Clone(e.name), asAside)
			continue
		}
		if len(e.lines) != 1 {
			return false
		}
		p.source = e.name
		was := p.n
		p.read(&m, e.lines)
		x := slot{name: strings.Clone(e.name)}
		ok := x.fill(p, &m, e.lines[0], was)
		x.fixed = x.figure.role == roleNone && len(x.items) == 0
		if !ok || x.figure.role != roleNone && f.has(x.figure) {
			return false
		}
		if x.fixed && (f.key < 0 || m.role == roleLabel) {
			f.key = len(f.slots)
		}
		f.dated = f.dated || x.figure.role == roleReset && x.figure.sure == sureDate
		f.know(x.name, int8(len(f.slots)))
		f.slots = append(f.slots, x)
	}
	return true
}

// has reports whether another header states the same number.
func (f *layout) has(x figure) bool {
	for i := range f.slots {
		if y := f.slots[i].figure; y.role == x.role && y.limit == x.limit {
			return true
		}
	}
	return false
}

// fill takes down what p has read of one header, whose drafts are those from was
// on if it is a list.
func (x *slot) fill(p *parser, m *meaning, s string, was int) bool {
	_, plain := parseDecimal(s)
	switch m.role {
	case roleLabel, roleScope, roleReason, roleAdvice, roleCode, roleWindow:
		x.value = strings.Clone(s)
		return true
	case roleQuota: // sizes rarely change, and policies are joined by them
		x.value = strings.Clone(s)
		return plain
	case roleRemaining, roleUsed:
		x.figure = figure{role: m.role, limit: p.index(p.draft(m, m.window, 0))}
		return plain && x.figure.limit >= 0
	case roleReset:
		x.figure = figure{role: roleReset, limit: p.index(p.draft(m, m.window, 0)), scale: p.resetScale(m)}
		var ok bool
		_, x.figure.sure, x.figure.means, ok = parseReset(s, x.figure.scale, p.now)
		return ok && single(s) && x.figure.limit >= 0
	case roleList, rolePolicy:
		return x.fillItems(m, s, was, p.n-was)
	}
	return false
}

// fillItems takes down a structured field that has made n drafts from was on.
func (x *slot) fillItems(m *meaning, s string, was, n int) bool {
	if strings.ContainsAny(s, `\{[`) {
		return false
	}
	l := list{rest: s}
	var it item
	var want []string // the numbers, in their order
	for l.next(&it) {
		if _, _, counts := parseCount(it.bare[0].text); it.nbare == 0 ||
			!it.bare[0].quoted && !(m.role == rolePolicy && counts) || it.npair == len(it.pairs) || l.n > n {
			return false
		}
		for _, pr := range it.pairs[:it.npair] {
			switch key := pr.key; {
			case key == "r" || key == "t":
				if pr.quoted || !it.bare[0].quoted {
					return false
				}
				want = append(want, key+pr.text)
				x.items = append(x.items, figure{role: roleOf(key), limit: was + l.n - 1})
			case !timeless(key):
				return false
			}
		}
	}
	return l.n == n && n > 0 && len(want) <= maxSlots && x.cut(s, want)
}

func roleOf(key string) role {
	if key == "t" {
		return roleReset
	}
	return roleRemaining
}

// timeless reports whether the pair of such a key means the same at any time, and
// has nothing to do with r and t.
func timeless(key string) bool {
	switch key {
	case "q", "w", "qu", "pk", "name", "comment", "burst", "policy":
		return true
	}
	return false
}

// cut finds the numbers in s that want names, each with its key in front, and what
// stands between them.
func (x *slot) cut(s string, want []string) bool {
	from, n := 0, 0
	quoted := false
	for i := 0; i < len(s); i++ {
		if s[i] == '"' {
			quoted = !quoted
		}
		if quoted || s[i] != ';' {
			continue
		}
		k := i + 1
		for k < len(s) && s[k] == ' ' {
			k++
		}
		if k+1 >= len(s) || s[k] != 'r' && s[k] != 't' || s[k+1] != '=' {
			continue
		}
		d := digits(s[k+2:])
		end := k + 2 + d
		if n == len(want) || s[k:k+1]+s[k+2:end] != want[n] || end < len(s) && s[end] != ';' && s[end] != ',' ||
			!x.items[n].readInteger(&Limit{}, s[k+2:end]) {
			return false
		}
		x.items[n].before = strings.Clone(s[from : k+2])
		from, i = end, end-1
		n++
	}
	x.value = strings.Clone(s[from:])
	return n == len(want)
}

// derives notes what settle will derive.
func (f *layout) derives(p *parser) {
	for i := range p.n {
		d := p.at(i)
		switch { // d.minus is for Parse: no slot reads such a number
		case !d.Quota.Known && d.Used.Known && d.Remaining.Known:
			f.sums = append(f.sums, derived{limit: i})
		case d.Quota.Known && d.Used.Known && !d.Remaining.Known:
			f.sums = append(f.sums, derived{limit: i, remaining: true})
		}
	}
}

// place turns the indexes of drafts into those of limits. It reports false if a
// number's draft has become none of its own, or if a policy may have been joined by
// a number.
func (f *layout) place(p *parser) bool {
	var at [2 * maxLimits]int
	n, policies := 0, false
	for i := range p.n {
		d := p.at(i)
		policies = policies || d.origin == fromPolicy
		if at[i] = -1; !d.dead && n < len(f.limits) {
			at[i] = n
			n++
		}
	}
	for i := range f.slots {
		x := &f.slots[i]
		if x.figure.role != roleNone {
			if x.figure.limit = at[x.figure.limit]; x.figure.limit < 0 {
				return false
			}
		}
		for k := range x.items {
			if x.items[k].limit = at[x.items[k].limit]; x.items[k].limit < 0 {
				return false
			}
		}
	}
	for i := range f.sums {
		s := &f.sums[i]
		if s.limit = at[s.limit]; s.limit < 0 || policies {
			return false
		}
	}
	return n > 0
}

// lookAside remembers the names that are of no interest, as far as there is room for
// them. To find a name among those takes less time than to see that it is of no interest.
func (f *layout) lookAside(h http.Header) {
	room := maxLayoutText - f.text()
	for name := range h {
		if len(f.names) < maxNames && len(name) <= room && aside(name) && f.as(name) == asStrange {
			f.know(strings.Clone(name), asideAs(name))
			room -= len(name)
		}
	}
}

// text is how many bytes of text f keeps.
func (f *layout) text() int {
	n := len(f.host)
	for _, x := range f.slots {
		n += len(x.value)
		for _, it := range x.items {
			n += len(it.before)
		}
	}
	for _, k := range f.names {
		n += len(k.name)
	}
	for _, l := range f.limits {
		n += len(l.Name) + len(l.Unit) + len(l.Scope) + len(l.Partition) + len(l.Source)
	}
	return n
}
