package attribution

import "math"

// Answers counts how requests of one kind were answered: by how the one before it of its kind
// was, and by how the one before it was of all kinds that may share a limit with it. A limit
// that is spent stays spent for a while, so what draws on it is mostly answered as the last
// was that drew on it. The zero value has counted nothing.
type Answers struct {
	own, joint [2]answered // after one that was served, and after one that was refused
	refused    bool        // the last of its kind was
	bound      bool        // it shares a limit with others that were refused
}

type answered = tally[uint16]

// Count counts an answer. after says that the last one to any kind was a refusal.
func (a *Answers) Count(after, refused bool) {
	a.own[class(a.refused)].count(refused)
	a.joint[class(after)].count(refused)
	a.refused = refused
	if a.joint[0].n()+a.joint[1].n() > recalled {
		halve(a.own[:])
		halve(a.joint[:])
	}
}

// add adds what others were answered.
func (a *Answers) add(o Answers) {
	for i := range a.own {
		a.own[i].add(o.own[i])
		a.joint[i].add(o.joint[i])
	}
	if a.joint[0].n()+a.joint[1].n() > recalled {
		halve(a.own[:])
		halve(a.joint[:])
	}
}

func class(refused bool) int {
	if refused {
		return 1
	}
	return 0
}

// Begin begins anew, as others may share a limit with the kind now. bound says that it was found
// to share one with some that are refused, so it is one of these.
func (a *Answers) Begin(bound bool) { *a = Answers{refused: a.refused, bound: bound} }

// Refused reports whether a refusal was counted, or is taken for known.
func (a *Answers) Refused() bool { return a.bound || a.joint[0].bad+a.joint[1].bad > 0 }

// A Split says which of several kinds of request share a limit.
type Split uint8

const (
	All  Split = iota // all of them, for all that is known
	Few               // only those that were refused
	Each              // none: each has its own
)

// SplitOf compares how likely each Split makes the answers that were counted. Another one than
// All is found beyond doubt only. A limit that all share is taken for another by chance less
// than once in a hundred servers, as which kind is refused is chance then.
func SplitOf(all []Answers) Split {
	split, odds := likeliest(all)
	if odds <= beyondDoubt {
		return All
	}
	return split
}

// likeliest is which other Split than All makes the answers that were counted the likeliest, and
// the logarithm of its odds against All.
func likeliest(all []Answers) (Split, float64) {
	var few, joint [2]answered // of those that were refused, and of all
	own, n := 0., 0
	for _, a := range all {
		refused := a.Refused()
		if refused {
			n++
		}
		for i := range joint {
			own += a.own[i].log()
			joint[i].add(a.joint[i])
			if refused {
				few[i].add(a.joint[i])
			}
		}
	}
	one := joint[0].log() + joint[1].log()
	switch {
	case n == 0 || len(all) == 1:
		return All, 0
	case n < len(all): // who is not bound is never refused; there are many ways to choose the few
		return Few, few[0].log() + few[1].log() - one - math.Log(float64(len(all))) - logChoose(len(all), n)
	}
	return Each, own - one
}

func (t tally[N]) n() int { return int(t.good) + int(t.bad) }

func (t *tally[N]) add(o tally[N]) { t.good, t.bad = t.good+o.good, t.bad+o.bad }

// log is the logarithm of how likely the answers are if each is a refusal with one probability
// that is not known (Jeffreys' prior).
func (t tally[N]) log() float64 {
	const prior = .5
	return logBeta(float64(t.bad)+prior, float64(t.good)+prior) - logBeta(prior, prior)
}

func logBeta(a, b float64) float64 { return logGamma(a) + logGamma(b) - logGamma(a+b) }

func logGamma(x float64) float64 {
	y, _ := math.Lgamma(x)
	return y
}

// logChoose is the logarithm of in how many ways k of n can be chosen.
func logChoose(n, k int) float64 {
	return -logBeta(float64(n-k+1), float64(k+1)) - math.Log(float64(n+1))
}
