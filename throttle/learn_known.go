package throttle

import (
	"cmp"
	"slices"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/concurrency"
	"github.com/weirhttp/weir/throttle/internal/learn"
)

// This file is all that knows of both what a learner holds and the form in which
// that is kept while a program does not run.

// keep is what the next run should know of l's caller, as plain limits.
func (l *learner) keep(now instant) []KnownLimit {
	x := keeping{now: now, zero: l.terms.zero}
	x.found(&l.foundLimit, nil)
	x.atOnce(&l.host.Slow, nil)
	for _, k := range l.endpoints {
		x.kind(k)
		x.parts(k)
	}
	for _, q := range l.quotas {
		if limit, ok := q.keep(now); ok {
			x.list = append(x.list, limit)
		}
	}
	if b := l.terms.before; b != nil {
		for _, limit := range b.limits { // of routes that were not called in this run
			if len(limit.Routes) > 0 && limit.credible(onWall(x.zero, now.Time())) && !slices.ContainsFunc(limit.Routes, l.called) {
				x.list = append(x.list, limit)
			}
		}
	}
	return x.list[:min(len(x.list), knownLimits)]
}

// keeping is what is kept of a learner, as far as it was asked.
type keeping struct {
	now  instant
	zero time.Time // what our zero time is on the wall
	list []KnownLimit
}

func (x *keeping) pause(p *pauser, routes []string) {
	if until := p.cooldown.Until(); until > x.now {
		x.list = append(x.list, KnownLimit{Kind: LearnedPause, Routes: routes, Source: p.cooldown.State().Source, Until: onWall(x.zero, until.Time())})
	}
}

func (x *keeping) found(f *foundLimit, routes []string) {
	x.pause(&f.pauser, routes)
	if !f.evidence.binds(x.now) {
		return
	}
	if limit, ok := f.evidence.found(); ok {
		x.list = append(x.list, KnownLimit{Kind: LearnedRate, Routes: routes, Unit: requests, Limit: limit.Units, Per: limit.Per, Left: limit.Burst})
	}
}

func (x *keeping) atOnce(s *concurrency.Limit, routes []string) {
	switch n, grown := s.Borne(); {
	case s.Cut():
		x.list = append(x.list, KnownLimit{Kind: LearnedConcurrency, Routes: routes, Source: shownByAnswers, Limit: n})
	case grown:
		x.list = append(x.list, KnownLimit{Kind: LearnedConcurrency, Routes: routes, Limit: n})
	}
}

// kind keeps what is known of k, and of its group if k is the first of that.
func (x *keeping) kind(k *endpoint) {
	name, whole := k.key.Whole()
	if !whole || k.isPart() {
		return // it may be a secret, and is not shown whole; or no name tells it from its kind
	}
	routes := []string{name}
	x.pause(&k.pauser, routes)
	if k.group != nil {
		if all := namesOf(k.group.kinds); all[0] == name { // once
			x.found(&k.group.foundLimit, all)
		}
	}
	x.atOnce(&k.slow, routes)
}

// parts keeps how parts of k have limits of their own, and of these the one in the middle. Which part
// is which is not kept: names would tell paths, and what is found for one part is likely that of others.
func (x *keeping) parts(k *endpoint) {
	name, whole := k.key.Whole()
	if !whole || k.isPart() || !k.divided() {
		return
	}
	limit, ok := k.commonLimit(x.now)
	if b := k.paths.before; !ok && b != nil { // as before, for all that is known
		limit = learn.Limit{Units: b.Limit, Per: b.Per, Burst: b.Left}
	} else if !ok {
		return
	}
	x.list = append(x.list, KnownLimit{
		Kind: LearnedRate, Routes: []string{name}, Parts: k.paths.parts.Found().String(), Unit: requests,
		Limit: limit.Units, Per: limit.Per, Left: limit.Burst,
	})
}

// commonLimit is the limit of parts of k that is in the middle of those that still hold some up.
func (k *endpoint) commonLimit(now instant) (learn.Limit, bool) {
	var all []learn.Limit
	for _, g := range k.groupsOfParts() {
		if limit, ok := g.evidence.found(); ok && g.evidence.binds(now) {
			all = append(all, limit)
		}
	}
	if len(all) == 0 {
		return learn.Limit{}, false
	}
	slices.SortFunc(all, func(a, b learn.Limit) int {
		return cmp.Or(cmp.Compare(a.Units/a.Per.Seconds(), b.Units/b.Per.Seconds()), cmp.Compare(a.Per, b.Per))
	})
	return all[(len(all)-1)/2], true
}

// called reports whether l knows the route.
func (l *learner) called(route string) bool {
	return slices.ContainsFunc(l.endpoints, func(k *endpoint) bool { return k.key.String() == route })
}

// shownByAnswers is the source of a limit on requests at a time that is more than
// a slow start's.
const shownByAnswers = "answers"

// keep is q as it is kept: while its window lasts, and of all paths of an endpoint.
func (q *quota) keep(now instant) (KnownLimit, bool) {
	f := q.Facts(now)
	if f.Asking || !f.Reset.Known || !f.Size.Known || !f.Told || q.Sharing.Depth() > attribution.ByKind {
		return KnownLimit{}, false
	}
	x := KnownLimit{
		Kind: LearnedQuota, Name: q.ID.Name, Part: q.ID.Partition, Unit: q.ID.Unit, Source: q.Source, Per: q.ID.Window,
		Limit: figure(f.Size.Value), Left: min(figure(f.Level), figure(f.Size.Value)), Until: onWall(q.terms.zero, f.Reset.Value.Time()),
	}
	x.Routes = namesOf(q.endpoints)
	return x, len(x.Routes) > 0
}

// namesOf are the names of those of the kinds that may be shown whole.
func namesOf(kinds []*endpoint) (names []string) {
	for _, k := range kinds {
		if name, whole := k.key.Whole(); whole && !k.isPart() {
			names = append(names, name)
		}
	}
	return names
}

// before is what is known of a caller from another run.
type before struct {
	limits   []KnownLimit
	recalled bool // those that bind all endpoints
}

// from is t for one caller of whom something is known from another run. Few are,
// so a learner has no place of its own for that.
func (t *learnTerms) from(b *before) *learnTerms {
	own := *t
	own.before = b
	return &own
}

// recall lets a kind of l's begin with what is known from before.
func (l *learner) recall(k *endpoint, now instant) {
	name := k.key.String()
	from := l.terms.before
	for i := range from.limits {
		x := &from.limits[i]
		all := len(x.Routes) == 0
		if all && from.recalled || !all && !slices.Contains(x.Routes, name) || l.terms.pausesOnly && x.Kind != LearnedPause {
			continue
		}
		until := now.Add(x.Until.Sub(onWall(l.terms.zero, now.Time())))
		switch x.Kind {
		case LearnedPause:
			c := &l.cooldown
			if !all {
				c = &k.cooldown
			}
			made(c).Recall(now, until, l.terms.MaxPause, x.Source)
		case LearnedRate:
			l.recallRate(now, k, x, all)
		case LearnedConcurrency:
			s := &k.slow
			if all {
				s = &l.host.Slow
			}
			s.Recall(now, x.Limit, x.Source != "")
		case LearnedQuota:
			l.recallQuota(now, k, x, until)
		}
	}
	from.recalled = true
}

// recallRate lets a limit that was found before bind k, or all kinds that have none of their own.
func (l *learner) recallRate(now instant, k *endpoint, x *KnownLimit, all bool) {
	of := k
	switch {
	case x.Parts != "":
		k.recallParts(now, x)
		return
	case all:
		made(&l.cooldown)
		of = nil
	case k.group == nil:
		k.enterGroup(l.grouped(x.Routes))
	}
	l.evidenceOf(of).recall(now, x, l.terms.MaxPause)
}

// recallParts lets parts of k have limits of their own, as was found before.
func (k *endpoint) recallParts(now instant, x *KnownLimit) {
	if l := k.learner; l.terms.Fleet || !l.mayCount(now) {
		return
	}
	p := made(&k.paths)
	p.parts, p.before = attribution.Divided(attribution.DivisionOf(x.Parts)), x
}

// grouped is the group of a kind that is one of the routes, made if there is none.
func (l *learner) grouped(routes []string) *group {
	for _, k := range l.endpoints {
		if k.group != nil && !k.isPart() && slices.Contains(routes, k.key.String()) {
			return k.group
		}
	}
	return l.newGroup()
}

// recallQuota takes x as what an answer to a request to endpoint k states now.
func (l *learner) recallQuota(now instant, k *endpoint, x *KnownLimit, until instant) {
	if until <= now {
		return
	}
	known := func(v float64) headers.Opt[float64] { return headers.Opt[float64]{Value: v, Known: true} }
	limit := &headers.Limit{
		Name: x.Name, Unit: x.Unit, Partition: x.Part, Source: x.Source, Quota: known(x.Limit), Remaining: known(x.Left),
		Window: headers.Opt[time.Duration]{Value: x.Per, Known: x.Per > 0},
		Reset:  headers.Opt[time.Duration]{Value: until.Sub(now), Known: true},
	}
	g := ticket{endpoint: k, sent: now}
	l.hearLimit(now, &g, limit, false, 0)
}

// recall lets e begin with a limit that was found before. A belief that would hold
// requests up for longer than a pause may is none.
func (e *evidence) recall(now instant, x *KnownLimit, most time.Duration) {
	if x.Limit/x.Per.Seconds()*most.Seconds() >= 1 {
		e.last = now
		e.Recall(now, learn.Limit{Units: x.Limit, Per: x.Per, Burst: x.Left})
	}
}
