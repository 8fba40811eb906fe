package headers

import "net/http"

// refused decides whether the response is a refusal for quota, and of what
// kind. 413 never is: what is too large stays so however long one waits.
func (p *parser) refused(limits []Limit, b *body) (bool, Kind) {
	_, coded := kindOfCode(p.text.code)
	coded = coded || b.coded
	base := Quota
	switch p.status {
	case http.StatusTooManyRequests, 420, 430, 509:
	case 529:
		base = Overload
	case http.StatusTeapot:
		if !p.waits.wait().Known && !p.weighed(limits) {
			return false, NoKind
		}
		base = Ban
	case http.StatusForbidden:
		if !coded && !b.worded && !p.metaCode(b, limits) && !p.waits.wait().Known && !exhausted(limits) {
			return false, NoKind
		}
	case http.StatusServiceUnavailable:
		if !coded && !exhausted(limits) {
			return false, NoKind
		}
		if !exhausted(limits) {
			base = NoKind // the code says it
		}
	case http.StatusBadRequest:
		if !coded && !p.metaCode(b, limits) {
			return false, NoKind
		}
	case http.StatusOK:
		if !coded || b.graph.served() {
			return false, NoKind
		}
	default:
		return false, NoKind
	}
	return true, p.kind(base, limits, b)
}

// kind refines the kind that the status suggests.
func (p *parser) kind(base Kind, limits []Limit, b *body) Kind {
	k := stronger(base, b.kind)
	if c, ok := kindOfCode(p.text.code); ok {
		k = stronger(k, c)
	}
	k = stronger(k, kindOfReason(p.text.reason))
	if k == Quota && !p.waits.wait().Known {
		for i := range limits {
			l := &limits[i]
			if l.Quota.Known && l.Quota.Value == 0 && !l.Reset.Known {
				return NoAllowance
			}
			if l.Unit == "concurrent-requests" && l.Remaining.Known && l.Remaining.Value == 0 {
				k = Concurrency
			}
		}
	}
	return k
}

// exhausted reports whether some limit has nothing left. That all of a quota is said to be used
// is no sign of a refusal: requests are served beyond that where quotas are soft.
func exhausted(limits []Limit) bool {
	for i := range limits {
		if left, known := limits[i].Left(); known && left <= 0 {
			return true
		}
	}
	return false
}

// weighed reports whether a limit counts weight or orders, as the APIs do that
// use 418 for a ban.
func (p *parser) weighed(limits []Limit) bool {
	for i := range limits {
		if u := limits[i].Unit; u == "weight" || u == "orders" {
			return true
		}
	}
	return false
}

// metaCode reports whether an error number that others use too is Meta's: the
// answer then speaks of limits in words, or has a usage header.
func (p *parser) metaCode(b *body, limits []Limit) bool {
	if !b.number {
		return false
	}
	for i := range limits {
		if limits[i].UsedRatio.Known {
			return true
		}
	}
	return b.worded
}
