package headers

import (
	"strings"
	"time"
)

// read takes the lines of one header whose name means m.
func (p *parser) read(m *meaning, lines []string) {
	if len(lines) > maxLines {
		lines = lines[:maxLines]
	}
	switch m.role {
	case roleNone:
	case roleWait, roleNext:
		p.waits.add(longestWait(lines, m.scale, p.now), m.scale < time.Second || m.prefer > 0)
	case roleDelay:
		if p.status == 429 || p.status == 503 { // elsewhere it is time already lost
			p.waits.add(longestWait(lines, m.scale, p.now), m.scale < time.Second || m.prefer > 0)
		}
	case roleLabel, roleScope, roleReason, roleAdvice, roleCode:
		p.text.add(m, lines)
	case roleReset:
		p.resets(m, lines)
	case roleWindow:
		for _, s := range lines {
			if w, ok := parseWindow(trim(s), m.scale); ok {
				if d := p.draft(m, m.window, 0); d != nil {
					d.Window = some(w)
				}
			}
		}
	case roleSentry:
		for _, s := range lines {
			p.categories(m, s)
		}
	default:
		a := assoc{draft: -1}
		for _, s := range lines {
			a.begins = true
			p.counts(m, trimBlanks(s), &a)
		}
	}
}

// add keeps the text of a label header.
func (t *texts) add(m *meaning, lines []string) {
	if len(lines) == 0 {
		return
	}
	s := trim(lines[0])
	switch m.role {
	case roleLabel:
		if m.name == 0 && t.label == "" {
			t.label, t.labelVendor = clean(s), m.vendor
		}
	case roleScope:
		t.scope, t.scopeVendor = clean(s), m.vendor
	case roleReason:
		t.reason = s
	case roleCode:
		t.code = s
	case roleAdvice:
		if strings.EqualFold(s, "true") || s == "1" {
			t.advice = some(true)
		} else if strings.EqualFold(s, "false") || s == "0" {
			t.advice = some(false)
		}
	}
}

// counts reads a line that holds a number of units, or a list that may say
// more than its header's name does.
func (p *parser) counts(m *meaning, s string, a *assoc) {
	if s == "" {
		return
	}
	if v, minus, ok := parseCount(s); ok {
		if m.role != roleList || m.plain {
			p.count(m, m.window, 0, v, minus)
		}
		return
	}
	if s[0] == '{' || s[0] == '[' {
		p.json(m, s)
		return
	}
	if n, equal := bareNumbers(s); n > 1 && !(equal && m.role == roleQuota) {
		p.places(m, s)
	}
	l := list{rest: s}
	var x item
	for l.next(&x) {
		p.item(m, &x, l.n, a)
	}
}

// count records one number.
func (p *parser) count(m *meaning, per time.Duration, place int, v float64, minus bool) *draft {
	d := p.draft(m, per, place)
	if d != nil {
		d.set(m.role, v, minus)
	}
	return d
}

// bareNumbers returns how many items s has if all are numbers, else 0, and
// whether they are all the same.
func bareNumbers(s string) (n int, equal bool) {
	equal = true
	var first float64
	for more := true; more; n++ {
		var piece string
		piece, s, more = strings.Cut(s, ",")
		v, _, ok := parseCount(piece)
		if !ok || n == maxItems {
			return 0, false
		}
		if n == 0 {
			first = v
		}
		equal = equal && v == first
	}
	return n, equal
}

// places keeps the numbers of a bare list by their place. A second list of the
// same limits must stand beside it, or they are taken as one number: see
// settlePlaces.
func (p *parser) places(m *meaning, s string) {
	for i, more := 1, true; more && i <= 4; i++ {
		var piece string
		piece, s, more = strings.Cut(s, ",")
		v, minus, _ := parseCount(piece)
		d := p.count(m, m.window, i, v, minus)
		if d != nil && m.row != nil && i <= len(m.row.windows) && m.row.windows[i-1] > 0 {
			d.Window = some(m.row.windows[i-1])
		}
	}
}

// item reads the n-th item of a list by its shape.
func (p *parser) item(m *meaning, x *item, n int, a *assoc) {
	f := gather(x, p.now)
	switch {
	case x.nbare == 0:
		p.assoc(m, x, f, a)
	case x.bare[0].quoted || !p.number(m, x, n, f):
		p.structured(m, x, f)
	}
}

// number reads an item that begins with a number, alone or in a pair, or ends
// with one; it reports false for all others.
func (p *parser) number(m *meaning, x *item, n int, f facts) bool {
	first, last := x.bare[0].text, x.bare[x.nbare-1].text
	if v, minus, ok := parseCount(first); ok {
		if m.role == rolePolicy || n > 1 && x.npair > 0 && (m.role == roleQuota || m.role == roleList) {
			p.policy(m, v, minus, f)
		} else if m.role != roleList || m.plain {
			if d := p.count(m, m.window, 0, v, minus); d != nil && f.window.Known {
				d.Window = f.window
			}
		}
		return true
	}
	if m.role == rolePolicy {
		return false
	}
	if v, w, ok := colonPair(first); ok {
		if d := p.count(m, w, 0, v, false); d != nil {
			d.Window = some(w)
		}
		return true
	}
	if v, w, ok := perPair(first); ok {
		if d := p.count(m, m.window, 0, v, false); d != nil {
			d.Window = some(w)
		}
		return true
	}
	if part, quota, ok := slashPair(first); ok {
		p.share(m, p.draft(m, m.window, 0), part, quota)
		return true
	}
	v, minus, ok := parseCount(last)
	if !ok || x.nbare < 2 || m.role == roleList {
		return false
	}
	if d := p.named(m, first); d != nil {
		d.set(m.role, v, minus)
		if w, ok := windowIn(d.Name); ok && !d.Window.Known {
			d.Window = some(w)
		}
	}
	return true
}

// share records "used/quota", or under a remaining "remaining/quota".
func (p *parser) share(m *meaning, d *draft, part, quota float64) {
	if d == nil {
		return
	}
	d.set(roleQuota, quota, false)
	if m.role == roleRemaining {
		d.set(roleRemaining, part, false)
	} else {
		d.set(roleUsed, part, false)
	}
}

// named returns the draft of a limit that names itself within a value.
func (p *parser) named(m *meaning, name string) *draft {
	name = clean(name)
	for i := range p.n {
		if d := p.at(i); d.origin == fromItem && d.family == m.family && d.called == name {
			return d
		}
	}
	d := p.add(m, fromItem)
	if d != nil {
		d.Name, d.called = name, name
	}
	return d
}

// colonPair reads "100:120": units and seconds.
func colonPair(s string) (v float64, w time.Duration, ok bool) {
	a, b, ok := strings.Cut(s, ":")
	if !ok || !isInteger(a) || !isInteger(b) {
		return 0, 0, false
	}
	n, _ := parseDecimal(a)
	secs, _ := parseDecimal(b)
	w = secs.times(time.Second)
	return n.float(), w, w > 0
}

// perPair reads "100/minute" and "100 per 5 minutes".
func perPair(s string) (v float64, w time.Duration, ok bool) {
	left, right, ok := strings.Cut(s, "/")
	if !ok {
		if left, right, ok = strings.Cut(s, " per "); !ok {
			return 0, 0, false
		}
	}
	n, ok := parseDecimal(trim(left))
	if right = trim(right); !ok || right == "" || isInteger(right) {
		return 0, 0, false
	}
	w, ok = parseWindow(right, time.Second)
	return n.float(), w, ok
}

// slashPair reads "32/40", whatever stands behind it in parentheses.
func slashPair(s string) (a, b float64, ok bool) {
	s, _, _ = strings.Cut(s, "(")
	left, right, ok := strings.Cut(s, "/")
	if !ok {
		return 0, 0, false
	}
	x, ok1 := parseDecimal(trim(left))
	y, ok2 := parseDecimal(trim(right))
	return x.float(), y.float(), ok1 && ok2
}

// windowIn reads the window at the end of a limit's own name:
// "Microsoft.Compute/GetVMScaleSet30Min".
func windowIn(name string) (time.Duration, bool) {
	i := len(name)
	for i > 0 && !isDigit(name[i-1]) {
		i--
	}
	for i > 0 && isDigit(name[i-1]) {
		i--
	}
	d, n := countedSpan(name[i:])
	return d, n > 0 && i+n == len(name)
}
