package throttle

import (
	"slices"

	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/cooldown"
)

// blame is on which kind of request the last refusal was blamed.
type blame struct {
	attribution.Blame
	endpoint *endpoint
	parted   bool              // by met: those that wait do not know yet
	asks     bool              // requests of other kinds ask, one at a time, whether they are to stay away, too
	reach    attribution.Reach // of long hints, over the kinds
	objects  objects
}

// longHint is how long a hint is that other requests do not just heed. Shorter ones cost
// nobody much, and as servers round them up, by up to this, who is served meanwhile says
// nothing about whom they bind.
const longHint = cooldown.MostSlack

func isLong(said cooldown.Hint) bool { return said.Known && said.Wait > longHint }

// refused takes in a refusal, and what that says of how long to stay away. How long is the
// server's word, but not who does. It reports whether k alone does for now, because the wait
// is long: then requests of other kinds ask, one at a time, unless waits were seen to bind one
// kind only.
func (b *blame) refused(l *learner, now instant, k *endpoint, sent instant, said cooldown.Hint) (alone bool) {
	if !isLong(said) && k.barred && !k.cooldown.Over() && !b.reach.All() {
		return true // the rest of a long wait that was k's alone
	}
	last := b.endpoint
	b.asks = isLong(said)
	switch {
	case b.asks && len(l.endpoints) > 1 && !k.apart:
		wait, _ := said.Believed(l.terms.MaxPause)
		other := last != k && k.cooldown.News(sent) && !(k.barred && l.spares(k))
		alone, asks := b.reach.Refused(sent, now, wait, other, len(l.endpoints)-2)
		k.barred = true
		if b.endpoint, b.parted = k, false; asks {
			l.cooldown.Doubt(now)
		}
		if !alone && last != nil {
			last.apart = false
		}
		return alone
	case last != k:
		if b.Another(sent, k.apart) {
			last.apart = false
		}
		b.endpoint, b.parted = k, false
	}
	if b.Refused(sent, !said.Known || b.asks, l.serves(k, sent)) && !k.apart {
		b.part(l, now)
	}
	return false
}

// part lets the kind that is blamed alone have the limit and the pause that were found.
func (b *blame) part(l *learner, now instant) {
	l.part(b.endpoint)
	if b.asks {
		l.cooldown.Doubt(now)
	}
}

// isOn reports whether no other kind than k was refused last.
func (b *blame) isOn(k *endpoint) bool { return b.endpoint == nil || b.endpoint == k }

// met takes in that an endpoint is asked for the first time: what another was refused is not
// known to bind it.
func (b *blame) met(l *learner, now instant) {
	if b != nil && b.endpoint != nil && !b.endpoint.apart && len(l.endpoints) == 2 && b.Alone(now) {
		b.part(l, now)
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
	if b.endpoint != nil && k != b.endpoint {
		b.Served(sent)
	}
}

// spares reports whether another endpoint than k was not told to stay away for long: that k
// was told so once more does not say that this one is to.
func (l *learner) spares(k *endpoint) bool {
	return slices.ContainsFunc(l.endpoints, func(o *endpoint) bool { return o != k && !o.barred && !o.apart })
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

// part lets k alone have the limit and the pause that were found.
func (l *learner) part(k *endpoint) {
	k.apart, k.cooldown, k.evidence = true, made(&l.cooldown).Part(), l.evidenceOf(nil)
	l.evidence = new(evidence)
	l.evidence.fates = k.evidence.fates
	l.evidence.Under(k.evidence.UnderWay())
	k.evidence.Under(k.slow.UnderWay())
}
