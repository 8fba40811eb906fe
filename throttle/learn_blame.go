package throttle

import (
	"slices"

	"github.com/weirhttp/weir/throttle/internal/attribution"
)

// blame is on which kind of request the last refusal was blamed.
type blame struct {
	attribution.Blame
	endpoint *endpoint
	parted   bool // by met: those that wait do not know yet
}

// refused takes in a refusal. guessed is whether the server said nothing of how long to
// stay away.
func (b *blame) refused(l *learner, k *endpoint, sent instant, guessed bool) {
	if b.endpoint != k {
		if last := b.endpoint; b.Another(sent, k.apart) {
			last.apart = false
		}
		b.endpoint, b.parted = k, false
	}
	if b.Refused(sent, guessed, l.serves(k, sent)) && !k.apart {
		l.part(k)
	}
}

// met takes in that an endpoint is asked for the first time: what another was refused is not
// known to bind it.
func (b *blame) met(l *learner, now instant) {
	if b != nil && b.endpoint != nil && !b.endpoint.apart && len(l.endpoints) == 2 && b.Alone(now) {
		l.part(b.endpoint)
		b.parted = true
	}
}

func (b *blame) good(k *endpoint, sent instant) {
	if b != nil && b.endpoint != nil && k != b.endpoint {
		b.Served(sent)
	}
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
