package headers

// mergeFamilies makes one limit of what two families of headers, or a general
// and a per-window header, say of the same counter. The numbers must agree;
// where they differ, both limits stay.
func (p *parser) mergeFamilies() {
	for i := range p.n {
		a := p.at(i)
		for k := i + 1; k < p.n && !a.dead; k++ {
			b := p.at(k)
			if b.dead || !a.couldBe(b) {
				continue
			}
			if p.compared = true; !a.sameAs(b) {
				continue
			}
			// The better described one takes the other in.
			to, from := a, b
			if b.rank() > a.rank() {
				to, from = b, a
			}
			to.fill(from)
			from.dead = true
		}
	}
}

// rank orders what is merged: a structured item says most.
func (d *draft) rank() int {
	switch {
	case d.origin == fromStructured:
		return 3
	case d.Window.Known:
		return 2
	}
	return 1
}

// couldBe reports whether a and b may describe one counter, if their numbers
// say so.
func (a *draft) couldBe(b *draft) bool {
	return a.vendor == b.vendor && a.Unit == b.Unit && a.place == b.place &&
		(a.Partition == b.Partition || a.Partition == "" || b.Partition == "") &&
		!(a.Window.Known && b.Window.Known && a.Window != b.Window) && sameName(a, b)
}

// sameAs reports whether a and b, which could be one, describe one counter.
func (a *draft) sameAs(b *draft) bool {
	if a.family != b.family && (b.onlyReset() && a.origin == fromStructured || a.onlyReset() && b.origin == fromStructured) {
		return true
	}
	equal, ok := agree(a, b)
	switch {
	case !ok:
		return false
	case a.family == b.family:
		// A header and its twin with a window: all they both say, and enough.
		return a.per != b.per && equal > 0 && (equal > 1 || a.Used.Known && b.Used.Known)
	case equal > 0:
		return true
	}
	// Nothing in common at all: two halves of one, unless one has a name.
	return a.origin == fromName && b.origin == fromName && a.Name == "" && b.Name == "" && a.per == b.per &&
		!(a.Reset.Known && b.Reset.Known) && a.says() && b.says()
}

// sameName reports whether the names allow a and b to be one: they are equal,
// or one has none and the other's is that of a policy or a window.
func sameName(a, b *draft) bool {
	if a.Name == b.Name {
		return true
	}
	if a.Name == "" {
		a, b = b, a
	}
	return b.Name == "" && (a.origin != fromName || a.joined || a.per > 0) && a.origin != fromItem
}

// agree counts the numbers that a and b both know and have equal; ok is false
// if one differs.
func agree(a, b *draft) (equal int, ok bool) {
	for _, pair := range [...][2]Opt[float64]{{a.Quota, b.Quota}, {a.Remaining, b.Remaining}, {a.Used, b.Used}} {
		if pair[0].Known && pair[1].Known {
			if pair[0].Value != pair[1].Value {
				return 0, false
			}
			equal++
		}
	}
	return equal, true
}

// nameThem gives the texts of label headers to the limits that have none, and
// what only the host tells.
func (p *parser) nameThem() {
	for i := range p.n {
		d := p.at(i)
		if d.dead {
			continue
		}
		if d.Name == "" && d.origin == fromName && d.vendor == p.text.labelVendor {
			d.Name = p.text.label
		}
		if d.Scope == "" && d.vendor == p.text.scopeVendor {
			d.Scope = p.text.scope
		}
		if d.Scope == "" && isScope(d.called) {
			d.Scope = d.called
		}
		if h := p.host; h != nil {
			if h.name != "" && d.Name == h.name {
				d.Unit = h.unit
			}
			if d.Reset.Known && h.means != Unknown {
				d.ResetMeans = h.means
			}
		}
	}
}

// isScope knows names that say whom a limit is counted for.
func isScope(name string) bool {
	switch name {
	case "user", "client", "organization", "org", "account", "tenant", "project", "global", "app", "ip", "key", "route", "path":
		return true
	}
	return false
}
