package throttle

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// What a wait is for.
type causeKind uint8

const (
	causeNone causeKind = iota
	causeCooldown
	causeRate
	causeQuota
	causeFlight
	causes // how many there are
)

// A cause is what makes a request wait. Words are made of it only when
// somebody reads them. It has four words of memory because every answer's lesson
// is one: a larger struct would not be returned in registers.
type cause struct {
	what     causeKind
	found    *foundLimit // of a rate, and of a pause of all that it binds
	quota    *quota
	endpoint *endpoint // of requests at a time, and of a pause of this kind alone
}

// A lesson is something that was learned; the zero lesson is nothing new.
type lesson = cause

// unit is the unit of the account that binds; "" for all others.
func (c cause) unit() string {
	if c.what == causeQuota {
		return unitName(c.quota.ID.Unit)
	}
	return ""
}

// name is what the server calls the limit.
func (c cause) name() string {
	if c.what == causeQuota {
		return c.quota.ID.Name
	}
	return ""
}

// in describes the cause, without the host. zero is what our zero time is on the wall.
func (c cause) in(now instant, zero time.Time) string {
	if c.what == causeFlight {
		if n, own := c.atOnce(); own {
			return fmt.Sprintf("at most %d at a time for %s, shown by its answers", n, c.endpoint.name())
		}
	}
	return c.words(now, zero) + c.only()
}

// words are in without for whom it is.
func (c cause) words(now instant, zero time.Time) string {
	switch c.what {
	case causeCooldown:
		return c.pauser().cooldown.State().Words(now, zero)
	case causeRate:
		return c.found.evidence.words()
	case causeQuota:
		return c.quota.Limit.Words(now, zero)
	case causeFlight:
		n, own := c.atOnce()
		if own {
			return fmt.Sprintf("at most %d at a time, shown by its answers", n)
		}
		return fmt.Sprintf("at most %d at a time until it has answered more", n)
	}
	return ""
}

// atOnce is how many requests at a time c allows: of its own kind, or of a host that is
// not well known if that allows fewer.
func (c cause) atOnce() (n int, own bool) {
	host := &c.endpoint.learner.host.Slow
	if n = c.endpoint.slow.Allowed(); n > 0 && (host.Free() || n <= host.Allowed()) {
		return n, true
	}
	return host.Allowed(), false
}

// alone is the only kind of request that a pause or a rate is for, or for parts of which; "": not one only.
func (c cause) alone() string {
	kinds := c.kinds()
	if len(kinds) == 0 || slices.ContainsFunc(kinds, func(k *endpoint) bool { return k.kind() != kinds[0].kind() }) {
		return ""
	}
	return kinds[0].key.String()
}

// kinds are the kinds of request that a pause or a rate is for; nil: all.
func (c cause) kinds() []*endpoint {
	switch {
	case c.found != nil && c.found.only != nil:
		return c.found.only.kinds
	case c.found == nil && c.what == causeCooldown:
		return []*endpoint{c.endpoint}
	}
	return nil
}

// pauser is what makes the pause that c is.
func (c cause) pauser() *pauser {
	if c.found != nil {
		return &c.found.pauser
	}
	return &c.endpoint.pauser
}

// name is what k is called in words.
func (k *endpoint) name() string {
	if k.isPart() {
		return "a part of " + k.key.String()
	}
	return k.key.String()
}

// only is kinds in words.
func (c cause) only() string {
	const most = 3 // that are named
	var names []string
	kinds := c.kinds()
	for _, k := range kinds {
		name := k.name()
		if k.isPart() && slices.ContainsFunc(kinds, func(o *endpoint) bool { return o != k && o.isPart() && o.kind() == k.kind() }) {
			name = "some parts of " + k.key.String()
		}
		if slices.Contains(names, name) {
			continue
		}
		if len(names) == most {
			names = append(names, "others")
			break
		}
		names = append(names, name)
	}
	if names == nil {
		return ""
	}
	return ", for " + strings.Join(names, ", ") + " only"
}

// restrictions describes everything learned that limits requests now.
func (l *learner) restrictions(now instant, add func(c cause, d time.Duration)) {
	held := func(c cause) {
		if d := c.pauser().cooldown.At(now).Until(now); d > 0 {
			add(c, d)
		}
	}
	l.everyFound(func(f *foundLimit) {
		held(cause{what: causeCooldown, found: f})
		if f.counts().believes() {
			add(cause{what: causeRate, found: f}, f.evidence.at(now, f.account.Backlog()).Until(now))
		}
	})
	if l.terms.pausesOnly {
		return
	}
	l.everyEndpoint(func(k *endpoint) {
		held(cause{what: causeCooldown, endpoint: k})
		if k.slow.Cut() {
			add(cause{what: causeFlight, endpoint: k}, 0)
		}
	})
	for _, q := range l.quotas {
		if at := q.At(now, 1); q.Facts(now).Told {
			add(cause{what: causeQuota, quota: q}, at.Until(now))
		}
	}
}
