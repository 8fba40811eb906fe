package throttle

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// A foundLimit is what refusals tell of a limit that nobody states: for how long they pause, and
// the evidence of how many requests may go, and when. It binds all requests of a learner, or those
// of a group of kinds, which draw on both. It is the meter of its account. Its owner tells the
// evidence what is sent, and how that ends.
type foundLimit struct {
	pauser
	terms    *learnTerms
	evidence *evidence // nil: there was one request at most
	only     *group    // that it binds; nil: it binds all
}

// counts is the evidence; nil while learning is switched off, as what was found does not count then.
func (f *foundLimit) counts() *evidence {
	if f.terms.pausesOnly {
		return nil
	}
	return f.evidence
}

func (f *foundLimit) At(now instant, _ int64) instant {
	if f.cooldown == nil {
		return now
	}
	at := f.cooldown.At(now)
	if at == never {
		return f.cooldown.Again()
	}
	return max(at, f.counts().at(now, f.account.Backlog()))
}

func (f *foundLimit) ETA(now instant, ahead, _ int64) instant {
	at := f.cooldown.At(now)
	if at != never {
		at = f.counts().outlook(now, at, ahead, f.account.Backlog())
	}
	return at
}

func (f *foundLimit) Regain(int64) time.Duration { return f.counts().regain() }

// Words are those of Wait.Why.
func (f *foundLimit) Words(now instant) string {
	switch {
	case f.only != nil && len(f.only.kinds) == 0: // who waits for it is to be asked anew
	case f.rests(now):
		return cause{what: causeCooldown, found: f}.in(now, f.terms.zero)
	case f.counts() == nil:
	case f.evidence.away.Releases(now):
		return "the host is back, and those who waited for it go one after another"
	case f.evidence.believes():
		return cause{what: causeRate, found: f}.in(now, f.terms.zero)
	}
	return "others are to go first"
}

// lift lets all go that wait for it.
func (f *foundLimit) lift(e *queue.Domain, now instant) {
	f.pauser.lift(e, now)
	f.evidence.lift()
}

// found is what is found of the limit of k: that of the group that it is in, or that of all.
func (k *endpoint) found() *foundLimit {
	if k.group != nil {
		return &k.group.foundLimit
	}
	return &k.learner.foundLimit
}

// everyFound calls f for everything that was found.
func (l *learner) everyFound(f func(f *foundLimit)) {
	f(&l.foundLimit)
	l.everyEndpoint(func(k *endpoint) {
		if g := k.group; g != nil && g.kinds[0] == k { // once
			f(&g.foundLimit)
		}
	})
}

// waited reports whether somebody waits for l.
func (l *learner) waited() bool {
	waited := false
	l.each(func(a *queue.Account) { waited = waited || a.Waited() })
	return waited
}

// each calls f for every account of l.
func (l *learner) each(f func(a *queue.Account)) {
	l.everyFound(func(x *foundLimit) { f(&x.account) })
	l.everyEndpoint(func(k *endpoint) {
		f(&k.account)
		if k.paths != nil && k.paths.head != nil {
			f(&k.paths.head.account)
		}
		if a := k.asker(); a != nil {
			f(&a.account)
		}
	})
	if l.paths != nil && l.paths.asker != nil {
		f(&l.paths.asker.account)
	}
	for _, q := range l.quotas {
		f(q.account)
	}
}

// everyEndpoint calls f for every endpoint, also that of all others.
func (l *learner) everyEndpoint(f func(k *endpoint)) {
	for _, k := range l.endpoints {
		f(k)
	}
	if l.other != nil {
		f(l.other)
	}
}

// evidenceOf is the evidence for an endpoint, made if need be; nil is any endpoint that is in no
// group.
func (l *learner) evidenceOf(k *endpoint) *evidence {
	if k != nil && k.group != nil {
		return k.group.evidence
	}
	if l.evidence == nil {
		l.evidence = new(evidence)
		l.evidence.fates = attribution.FatesOf(int(l.good))
		if first := l.begun; first != 0 {
			if l.evidence.sent(first); !l.out {
				l.evidence.accepted(first, first)
			}
		}
	}
	return l.evidence
}

// evidenceNow is evidenceOf, but nil if it was not made.
func (k *endpoint) evidenceNow() *evidence { return k.found().evidence }

// restart forgets the limit that was found for an endpoint.
func (l *learner) restart(k *endpoint) {
	l.evidenceOf(k).forget()
}
