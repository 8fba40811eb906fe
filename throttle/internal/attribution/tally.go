package attribution

import "math"

// mostTally is how many answers a Tally counts. Then each counts half, so that a server which
// has changed is judged anew.
const mostTally = 512

// A Tally counts how requests of one kind were answered: by how the one before it of its kind
// was, and by how the one before it was of all kinds that may share a limit with it. A limit
// that is spent stays spent for a while, so what draws on it is mostly answered as the last
// was that drew on it. The zero Tally has counted nothing.
type Tally struct {
	own, joint [2]answers // after one that was served, and after one that was refused
	refused    bool       // the last of its kind was
	bound      bool       // it shares a limit with others that were refused
}

type answers struct{ served, refused uint16 }

func (a *answers) count(refused bool) {
	if refused {
		a.refused++
	} else {
		a.served++
	}
}

func (a *answers) add(b answers) { a.served, a.refused = a.served+b.served, a.refused+b.refused }
func (a *answers) halve()        { a.served, a.refused = a.served/2, a.refused/2 }

// Count counts an answer. after says that the last one to any kind was a refusal.
func (t *Tally) Count(after, refused bool) {
	t.own[class(t.refused)].count(refused)
	t.joint[class(after)].count(refused)
	t.refused = refused
	n := 0
	for _, a := range t.joint {
		n += int(a.served) + int(a.refused)
	}
	for i := range t.joint {
		if n > mostTally {
			t.own[i].halve()
			t.joint[i].halve()
		}
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
func (t *Tally) Begin(bound bool) { *t = Tally{refused: t.refused, bound: bound} }

// Refused reports whether a refusal was counted, or is taken for known.
func (t *Tally) Refused() bool { return t.bound || t.joint[0].refused+t.joint[1].refused > 0 }

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
func SplitOf(all []Tally) Split {
	var few, joint, rest [2]answers
	own, n := 0., 0
	for _, t := range all {
		part := &rest
		if t.Refused() {
			n++
			part = &few
		}
		for i := range joint {
			own += t.own[i].log()
			part[i].add(t.joint[i])
			joint[i].add(t.joint[i])
		}
	}
	one := joint[0].log() + joint[1].log()
	switch {
	case n == 0 || len(all) == 1:
	case n < len(all): // who is not bound is never refused; there are many ways to choose the few
		if few[0].log()+few[1].log()-one-math.Log(float64(len(all)))-logChoose(len(all), n) > beyondDoubt {
			return Few
		}
	case own-one > beyondDoubt:
		return Each
	}
	return All
}

// log is the logarithm of how likely the answers are if each is a refusal with one probability
// that is not known (Jeffreys' prior).
func (a answers) log() float64 {
	const prior = .5
	return logBeta(float64(a.refused)+prior, float64(a.served)+prior) - logBeta(prior, prior)
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
