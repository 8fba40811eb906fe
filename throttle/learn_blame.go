package throttle

import (
	"slices"

	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/cooldown"
)

// blame is on which kind of request the last refusal was blamed. Which kinds share a limit is
// a guess at first, and then follows from how each was answered: see attribution.Split.
type blame struct {
	attribution.Blame
	endpoint *endpoint
	parted   bool              // by met: those that wait do not know yet
	spent    bool              // the last answer to a kind in no group was a refusal
	asks     bool              // requests of other kinds ask, one at a time, whether they are to stay away, too
	reach    attribution.Reach // of long hints, over the kinds
	objects  objects
}

// longHint is how long a hint is that other requests do not just heed. Shorter ones cost
// nobody much, and as servers round them up, by up to this, who is served meanwhile says
// nothing about whom they bind.
const longHint = cooldown.MostSlack

func isLong(said cooldown.Hint) bool { return said.Known && said.Wait > longHint }

// isRest reports whether a refusal is for the rest of a long wait that is p's alone: barred says
// that p was told to stay away for long, and reach whom such waits bind.
func (p *pauser) isRest(said cooldown.Hint, barred bool, reach *attribution.Reach) bool {
	return barred && !isLong(said) && !p.cooldown.Over() && !reach.All()
}

// refused takes in a refusal, and what that says of how long to stay away. How long is the
// server's word, but not who does. It reports whether k alone does for now, because the wait
// is long: then requests of other kinds ask, one at a time, unless waits were seen to bind one
// kind only.
func (b *blame) refused(l *learner, now instant, k *endpoint, sent instant, said cooldown.Hint) (alone bool) {
	if k.isRest(said, k.barred, &b.reach) {
		return true
	}
	last, both := b.endpoint, false
	b.asks = isLong(said)
	switch {
	case b.asks && len(l.endpoints) > 1 && (k.group == nil || len(k.group.kinds) > 1):
		return b.refusedForLong(l, now, k, sent, said)
	case last != k:
		both = b.Another(sent, k.group != nil)
		if k.group != nil && (last == nil || last.group != k.group) {
			k.group.since = sent
		}
		b.endpoint, b.parted = k, false
	}
	own := b.Refused(sent, !said.Known || b.asks, l.serves(k, sent)) && k.group == nil
	l.count(k, true)
	if own {
		b.part(l, now, []*endpoint{k})
		return false
	}
	kinds, answers := l.sharers(k, sent)
	switch split := attribution.SplitOf(answers); {
	case split == attribution.Few && k.group == nil:
		b.part(l, now, slices.DeleteFunc(kinds, func(o *endpoint) bool { return !o.paths.answers.Refused() }))
	case split == attribution.Each:
		l.partEach(kinds)
	case split == attribution.All && both && last.group != nil:
		l.join(last.group)
	}
	return false
}

// refusedForLong is refused for a hint that is long, at a host with several kinds.
func (b *blame) refusedForLong(l *learner, now instant, k *endpoint, sent instant, said cooldown.Hint) (alone bool) {
	last := b.endpoint
	wait, _ := said.Believed(l.terms.MaxPause)
	other := last != k && k.cooldown.News(sent) && !(k.barred && l.spares(k))
	alone, asks := b.reach.Refused(sent, now, wait, other, len(l.endpoints)-2)
	k.barred = true
	if b.endpoint, b.parted = k, false; asks {
		l.cooldown.Doubt(now)
	}
	if !alone && last != nil && last.group != nil && last.group != k.group {
		l.join(last.group)
	}
	return alone
}

// sharers returns the kinds that may share a limit with k, for all that is known, and how they
// were answered: those of its group or, if it is in none, those of none and of groups that were
// refused lately as well.
func (l *learner) sharers(k *endpoint, now instant) (kinds []*endpoint, answers []attribution.Answers) {
	l.everyEndpoint(func(o *endpoint) {
		if o.group == k.group || k.group == nil && now.Sub(o.group.since) < attribution.BothWithin {
			kinds, answers = append(kinds, o), append(answers, made(&o.paths).answers)
		}
	})
	return kinds, answers
}

// count counts an answer to k.
func (l *learner) count(k *endpoint, refused bool) {
	last := &l.blame.spent
	if k.group != nil {
		last = &k.group.refused
	}
	made(&k.paths).answers.Count(*last, refused)
	*last = refused
}

// part lets the kinds that are blamed alone have the limit and the pause that were found.
func (b *blame) part(l *learner, now instant, kinds []*endpoint) {
	l.part(now, kinds)
	if b.asks {
		l.cooldown.Doubt(now)
	}
}

// isOn reports whether no other kind than k was refused last.
func (b *blame) isOn(k *endpoint) bool { return b.endpoint == nil || b.endpoint == k }

// met takes in that an endpoint is asked for the first time: what another was refused is not
// known to bind it.
func (b *blame) met(l *learner, now instant) {
	if b != nil && b.endpoint != nil && b.endpoint.group == nil && len(l.endpoints) == 2 && b.Alone(now) {
		b.part(l, now, []*endpoint{b.endpoint})
		b.parted = true
	}
}

// good takes in that a request to k was served that was sent at sent.
func (b *blame) good(l *learner, k *endpoint, sent instant) {
	if b == nil {
		return
	}
	k.barred = false
	if b.reach.Served(sent) {
		l.evidenceOf(k).vague = true
	}
	l.count(k, false)
}

// spares reports whether another endpoint than k was not told to stay away for long: that k
// was told so once more does not say that this one is to.
func (l *learner) spares(k *endpoint) bool {
	return slices.ContainsFunc(l.endpoints, func(o *endpoint) bool { return o != k && !o.barred && o.group == nil })
}

// untold reports whether a kind of request was never told to stay away alone: a limit of all
// refuses whoever comes, and so each kind in time.
func (l *learner) untold() bool {
	return slices.ContainsFunc(l.endpoints, func(o *endpoint) bool { return o.cooldown == nil })
}

// serves reports whether another endpoint than k was served lately.
func (l *learner) serves(k *endpoint, now instant) bool {
	return slices.ContainsFunc(l.endpoints, func(o *endpoint) bool {
		return o != k && o.overload.ServedWithin(now, attribution.BothWithin)
	})
}

// others is when a request of k may go at now, as far as it is to find out whether long waits that
// others were told are its own, too.
func (k *endpoint) others(now instant) instant {
	at := now
	if b := k.learner.blame; b != nil {
		at = b.reach.Asks(now)
	}
	if k.paths != nil {
		at = max(at, k.paths.reach.Asks(now))
	}
	return at
}
