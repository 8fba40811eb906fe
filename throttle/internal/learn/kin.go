package learn

import (
	"cmp"
	"math"
	"slices"
)

// Kin is what Learners have found whose limiters are probably alike, such as those of the objects
// of one kind. For one more of them that is the first guess, which its own evidence may refute. The
// zero Kin is nothing.
type Kin struct {
	of   []lent    // at most maxCandidates
	shut [2]spread // how long bans may be, see bank
}

// lent is a limiter that kin have found.
type lent struct {
	shape
	size   float64
	weight float64 // those that it has among the kin together, at most mostKin
}

const (
	// mostKin is how many kin count for a limiter: they may all be wrong in the same way.
	mostKin = 4
	// kinPrior is how rare a limiter is that kin have found and nothing else suggests: as one of an
	// odd period.
	kinPrior = 2
)

// Add adds what l has seen. The limiters that it believes in count if they explain several
// refusals, by what it has seen itself: what kin lent to it would come back to them.
func (k *Kin) Add(l *Learner) {
	if l.mind == nil {
		return
	}
	for i := range k.shut {
		k.shut[i].join(l.mind.bank.shut[i])
	}
	if !l.Believes() || !l.Explains() {
		return
	}
	of := l.mind.bank.of
	var own [maxCandidates]float64 // scores without what kin lent
	best, sum := math.Inf(-1), 0.0
	for i := range of {
		own[i] = of[i].score - l.mind.bank.kin.lends(&of[i])
		best = max(best, own[i])
	}
	for _, x := range own[:len(of)] {
		sum += math.Exp(x - best)
	}
	for i := range of {
		c, w := &of[i], math.Exp(own[i]-best)/sum
		if w < heavyAt || c.family == atOnce { // how many at a time is found for each kind otherwise
			continue
		}
		if x := k.like(c); x != nil {
			x.weight = min(x.weight+w, mostKin)
		} else if len(k.of) < maxCandidates {
			k.of = append(k.of, lent{c.shape, c.size, w})
		}
	}
}

// Empty reports whether no kin have found a limiter.
func (k *Kin) Empty() bool { return len(k.of) == 0 }

// Clone is a copy of k that shares nothing with it.
func (k *Kin) Clone() Kin { return Kin{slices.Clone(k.of), k.shut} }

// like is the limiter of k that is c, apart from its size; nil: there is none.
func (k *Kin) like(c *candidate) *lent {
	if i := slices.IndexFunc(k.of, func(x lent) bool { return c.alike(&candidate{shape: x.shape}) }); i >= 0 {
		return &k.of[i]
	}
	return nil
}

// lends is how much likelier c is because of what kin have found, as a logarithm: one that is sure
// makes a limiter as likely as one that was found in an earlier run, see borneOut.
func (k *Kin) lends(c *candidate) float64 {
	if k == nil {
		return 0
	}
	x := k.like(c)
	if x == nil {
		return 0
	}
	return math.Log1p(math.Exp(c.prior+borneOut) * x.weight)
}

// banned is how much is against shapes without a ban, as rows of refusals of several kin were
// equally long.
func (k *Kin) banned() float64 {
	if k == nil || max(k.shut[0].rows, k.shut[1].rows) < 2 {
		return 0
	}
	return otherOdds
}

// fears reports whether the likeliest limiter of k has a ban. Then it is dear to find out whether
// somebody else has the same.
func (k *Kin) fears() bool {
	return len(k.of) > 0 && slices.MaxFunc(k.of, func(x, y lent) int { return cmp.Compare(x.weight, y.weight) }).ban > 0
}

// Resemble makes the limiters of k likelier. Before anything was refused, l obeys them only if a
// refusal is dear.
func (l *Learner) Resemble(now Instant, k Kin) {
	if l.mind == nil && !k.fears() {
		return
	}
	m := l.think(now)
	m.bank.kin, m.fresh = &k, false
	var p replay
	old := m.bank.of
	m.bank.of = make([]candidate, 0, maxCandidates)
	for i := range old {
		m.bank.try(old[i], &p)
	}
	m.bank.kindred(&p)
	m.bank.weigh()
	if !m.refusing && k.fears() {
		m.begin(now)
	}
}

// kindred tries what kin have found.
func (b *bank) kindred(p *replay) {
	if b.kin == nil {
		return
	}
	for _, x := range b.kin.of {
		b.try(candidate{shape: x.shape, size: x.size, prior: kinPrior}, p)
	}
}
