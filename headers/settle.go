package headers

import "time"

// settle turns the drafts into limits: what several headers say of one limit
// becomes one, and what says nothing goes.
func (p *parser) settle() []Limit {
	p.settlePlaces()
	for i := range p.n {
		p.at(i).derive(p.status)
	}
	p.joinPolicies()
	p.shareReset()
	p.fillBase()
	p.mergeFamilies()
	p.nameThem()
	n := 0
	for i := range p.n {
		if d := p.at(i); d.says() {
			n++
		} else {
			d.dead = true
		}
	}
	if n == 0 {
		return nil
	}
	limits := make([]Limit, 0, min(n, maxLimits))
	for i := range p.n {
		if d := p.at(i); !d.dead && len(limits) < maxLimits {
			limits = append(limits, d.Limit)
		}
	}
	return limits
}

// says reports whether d holds anything of its own. A window known from a name
// alone is not enough.
func (d *draft) says() bool {
	return !d.dead && (d.counts() || d.Reset.Known || d.UsedRatio.Known || d.Refill.Known || d.Window.Known)
}

// counts reports whether d has a number of units.
func (d *draft) counts() bool { return d.Quota.Known || d.Remaining.Known || d.Used.Known }

// settlePlaces decides about bare lists: "600,30000" beside "120,4000" are two
// limits, on its own it is one number that was sent twice.
func (p *parser) settlePlaces() {
	for i := range p.n {
		d := p.at(i)
		if d.place == 0 || d.place >= maxItems {
			continue
		}
		if !d.Quota.Known || !d.Used.Known && !d.Remaining.Known {
			d.dead = true
			continue
		}
		for k := range p.n {
			if b := p.at(k); b.origin == fromName && b.place == 0 && b.family == d.family &&
				b.called == d.called && b.Unit == d.Unit && b.per == d.per {
				b.dead = true
			}
		}
	}
}

// derive fills what follows from the other numbers of d.
func (d *draft) derive(status int) {
	if d.minus && status < 400 && d.Remaining.Value == 0 {
		d.Remaining = Opt[float64]{} // some servers say -1 for "unknown"
	}
	switch {
	case !d.Quota.Known && d.Used.Known && d.Remaining.Known:
		if q := d.Used.Value + d.Remaining.Value; sane(q) {
			d.Quota = some(q)
		}
	case d.Quota.Known && d.Used.Known && !d.Remaining.Known && !d.minus:
		d.Remaining = some(max(d.Quota.Value-d.Used.Value, 0))
	}
	if d.Refill.Known && d.Window.Known && !d.rate {
		// So many units per interval: the interval is the bucket's, not the quota's.
		d.Refill.Value /= d.Window.Value.Seconds()
		d.Window = Opt[time.Duration]{}
	} else if !d.Window.Known && d.per > 0 && d.says() {
		d.Window = some(d.per)
	}
}

// joinPolicies gives each policy to the limit it is about: by name and
// partition, or, where policies have no names, by the quota.
func (p *parser) joinPolicies() {
	for i := range p.n {
		pol := p.at(i)
		if pol.origin != fromPolicy || pol.dead {
			continue
		}
		d := p.namedBy(pol)
		if d == nil {
			d = p.quotaOf(pol)
		}
		if d == nil {
			continue
		}
		d.joined, pol.dead = true, true
		d.fill(pol)
		if d.origin == fromName && pol.Name != "" {
			d.Name = pol.Name
		}
		if pol.Unit != "requests" {
			d.Unit = pol.Unit
		}
		if d.sure == sureDelta && d.ResetMeans == Unknown && d.Window.Known {
			d.ResetMeans = Boundary // drafts -03 to -07: when the quota resets
		} else if d.ResetMeans == Next && (containsFold(pol.Name, "fixed") || containsFold(pol.alias, "fixed")) {
			d.ResetMeans = Boundary // a policy that calls itself a fixed window
		}
	}
}

// namedBy finds the limit that a policy names.
func (p *parser) namedBy(pol *draft) *draft {
	for i := range p.n {
		d := p.at(i)
		if d.origin != fromStructured || d.dead || d.joined || d.vendor != pol.vendor {
			continue
		}
		if d.Partition != "" && pol.Partition != "" && d.Partition != pol.Partition {
			continue
		}
		if d.Name == pol.Name || pol.alias != "" && d.Name == pol.alias || d.alias != "" && d.alias == pol.Name {
			return d
		}
	}
	return nil
}

// quotaOf finds the limit whose quota is that of a policy, or the only one
// whose quota is not stated.
func (p *parser) quotaOf(pol *draft) *draft {
	for i := range p.n {
		d := p.at(i)
		if d.origin != fromName || d.dead || d.joined || d.family != pol.family || d.Name != "" ||
			d.Window.Known && d.Window != pol.Window {
			continue
		}
		if d.Quota.Known && d.Quota == pol.Quota || !d.Quota.Known && d.counts() && p.onlyPolicy(pol) {
			return d
		}
	}
	return nil
}

// onlyPolicy reports whether its family has no other policy.
func (p *parser) onlyPolicy(pol *draft) bool {
	n := 0
	for i := range p.n {
		if d := p.at(i); d.origin == fromPolicy && d.family == pol.family {
			n++
		}
	}
	return n == 1
}

// fill copies to d what it does not know and from does.
func (d *draft) fill(from *draft) {
	d.Quota = either(d.Quota, from.Quota)
	d.Used = either(d.Used, from.Used)
	d.Remaining = either(d.Remaining, from.Remaining)
	d.UsedRatio = either(d.UsedRatio, from.UsedRatio)
	d.Refill = either(d.Refill, from.Refill)
	d.Cost = either(d.Cost, from.Cost)
	d.Window = either(d.Window, from.Window)
	if from.Reset.Known {
		d.reset(from.Reset.Value, from.sure, from.ResetMeans)
	}
	if d.Name == "" {
		d.Name = from.Name
	}
	if d.Scope == "" {
		d.Scope = from.Scope
	}
	if d.Partition == "" {
		d.Partition = from.Partition
	}
}

func either[T any](a, b Opt[T]) Opt[T] {
	if a.Known {
		return a
	}
	return b
}

// shareReset gives a reset that stands alone to the limits of its family that
// have none.
func (p *parser) shareReset() {
	for i := range p.n {
		base := p.at(i)
		if !base.onlyReset() || base.Name != "" || base.per > 0 {
			continue
		}
		for k := range p.n {
			d := p.at(k)
			if k != i && !d.dead && d.origin == fromName && d.family == base.family && d.Unit == base.Unit &&
				d.counts() && !d.Reset.Known {
				d.Reset, d.sure, d.ResetMeans = base.Reset, base.sure, base.ResetMeans
				base.dead = true
			}
		}
	}
}

// onlyReset reports whether d has a reset and nothing else.
func (d *draft) onlyReset() bool {
	return !d.dead && d.origin == fromName && d.Reset.Known &&
		!d.counts() && !d.UsedRatio.Known && !d.Refill.Known && !d.Window.Known
}

// fillBase joins the unnamed limit of a family, if it has no quota, to the only
// named one that has a quota and nothing else: "DailyLimit" beside "Remaining".
func (p *parser) fillBase() {
	for i := range p.n {
		base := p.at(i)
		if base.dead || base.origin != fromName || base.Name != "" || base.per > 0 || base.Quota.Known || !base.Remaining.Known {
			continue
		}
		var only *draft
		n := 0
		for k := range p.n {
			if d := p.at(k); k != i && !d.dead && d.origin == fromName && d.family == base.family && d.Unit == base.Unit && d.Quota.Known {
				only = d
				n++
			}
		}
		if n == 1 && !only.Remaining.Known && !only.Reset.Known {
			only.fill(base)
			base.dead = true
		}
	}
}
