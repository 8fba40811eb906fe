package attribution

import (
	"hash/maphash"
	"math"
	"strings"
)

// A Way is one of the ways in which requests of one kind fall into parts.
type Way uint8

const (
	ByHead Way = iota // by the first segment of the path that does not belong to the kind
	ByForm            // by the stem: the path without the ids of objects
	ByFull            // by the path
	Ways              // how many there are
)

// A Part says, for each Way, to which part a request belongs: a keyed hash.
type Part [Ways]uint64

// mostParts bounds the parts whose answers are counted one by one. With more, those that were asked
// for last are; what is known of the others counts as that of one.
const mostParts = 64

// nearby is how many requests have to be served in a row until a refusal is so long ago that answers
// are not counted any more until the next one, as mostly there is none: to count one takes as long as
// half of a call. What had been refused is taken to be served by then.
const nearby = 256

// To look for a Split takes some 0.1 ms, so after the first lookEach refusals only one in lookEvery
// does: it comes a few refusals later then.
const (
	lookEach  = 16
	lookEvery = 8
)

// leastTurns is after how many recoveries the rivals are compared. Limits that are spent in one
// burst of requests look like one until then.
const leastTurns = 3

// mostVain bounds how much more evidence a Split takes that proved to be wrong before.
const mostVain = 4

// Parts find out whether limits bind parts of one kind of request, and which Way tells these
// apart. It is the question of Split, asked about each Way. Then they go on to compare what
// predicts the next answer best, as chance may have misled them: calls to one part may follow one
// another. The zero Parts have counted nothing.
type Parts struct {
	by      [Ways][]counted
	rest    [Ways]Answers // of the parts that are not in by any more
	answers uint32        // that were counted
	served  uint16        // answers since the last refusal, at most nearby
	refused bool          // the last answer was a refusal
	way     Way           // by which parts with limits of their own are told apart
	split   Split         // All: there are none, for all that is known; Few: those that there are share one; Each: each has its own
	every   bool          // all parts have limits, not only those that were refused
	vain    int           // how many times a Split proved to be wrong; at most mostVain
	bad     int           // refusals until one was found
	since   rivals
}

// rivals are what may predict the answers since parts were told apart.
type rivals struct {
	own     [Ways][2]answered // the last answer of the same part: it was served, or refused
	few     [2]answered       // the last one of all parts that have limits
	free    answered          // of parts that have none, for all that was known
	all     [2]answered       // the last one of all
	refused [2]bool           // that of the free, and of the few
	turns   int               // how many times a refused one of either was followed by one that was served
}

// counted is a part whose answers are counted.
type counted struct {
	Answers
	last uint32 // when it was asked for, by Parts.answers
	key  uint64
}

// Quiet reports whether the last refusal is so long ago that an answer that is none need not be
// counted.
func (s *Parts) Quiet() bool { return s.served >= nearby }

// Count counts an answer to a request of part p. It reports whether limits bind others than before
// from now on.
func (s *Parts) Count(p Part, refused bool) (news bool) {
	if !refused {
		s.served = min(s.served+1, nearby)
	} else if s.Quiet() {
		s.recover()
	}
	s.answers++
	var own [Ways]*Answers
	for w := range own {
		own[w] = s.part(Way(w), p)
	}
	if s.split != All {
		s.compare(&own, refused)
	}
	for _, a := range own {
		a.Count(s.refused, refused)
	}
	if s.refused = refused; !refused {
		return false
	}
	if s.served = 0; s.split != All {
		return s.doubt()
	}
	if s.bad++; s.bad > lookEach && s.bad%lookEvery != 0 {
		return false
	}
	return s.divide()
}

// divide looks for the way and the split that explain all answers best. It reports whether one is
// beyond doubt.
func (s *Parts) divide() bool {
	best := beyondDoubt*float64(1+s.vain) + math.Log(float64(Ways)) // as there are so many guesses
	for w, by := range s.by {
		all := make([]Answers, 0, mostParts+1)
		for i := range by {
			all = append(all, by[i].Answers)
		}
		if rest := s.rest[w]; rest != (Answers{}) {
			all = append(all, rest)
		}
		if split, odds := likeliest(all); odds > best {
			s.way, s.split, s.every, best = Way(w), Each, split == Each, odds
		}
	}
	return s.split != All
}

// recover takes what was refused last to be served since.
func (s *Parts) recover() {
	for _, by := range s.by {
		for i := range by {
			by[i].refused = false
		}
	}
	for w := range s.rest {
		s.rest[w].refused = false
	}
	for i := range s.since.refused {
		if last := &s.since.refused[i]; *last {
			*last = false
			s.since.turns++
		}
	}
	s.refused = false
}

// part are the answers of the part of p, made if need be.
func (s *Parts) part(w Way, p Part) *Answers {
	by, oldest := s.by[w], 0
	for i := range by {
		if by[i].key == p[w] {
			if by[i].last = s.answers; i > 0 { // what is asked for often is found soon
				i--
				by[i], by[i+1] = by[i+1], by[i]
			}
			return &by[i].Answers
		}
		if by[i].last < by[oldest].last {
			oldest = i
		}
	}
	if len(by) < mostParts {
		s.by[w] = append(by, counted{key: p[w], last: s.answers})
		return &s.by[w][len(by)].Answers
	}
	c := &by[oldest]
	s.rest[w].add(c.Answers)
	*c = counted{key: p[w], last: s.answers}
	return &c.Answers
}

// of are the answers of the part of p; nil: none are counted.
func (s *Parts) of(w Way, p Part) *Answers {
	for i := range s.by[w] {
		if c := &s.by[w][i]; c.key == p[w] {
			return &c.Answers
		}
	}
	return nil
}

// compare counts an answer for each of the rivals. own are those of its part.
func (s *Parts) compare(own *[Ways]*Answers, refused bool) {
	r := &s.since
	for w, a := range own {
		r.own[w][class(a.refused)].count(refused)
	}
	if r.all[class(s.refused)].count(refused); r.all[0].n()+r.all[1].n() > recalled {
		r.halve()
	}
	bound := s.every || own[s.way].Refused() // for all that was known before this answer
	if bound {
		r.few[class(r.refused[1])].count(refused)
	} else {
		r.free.count(refused)
	}
	last := &r.refused[class(bound)]
	if *last && !refused {
		r.turns++
	}
	*last = refused
}

func (r *rivals) halve() {
	for w := range r.own {
		halve(r.own[w][:])
	}
	halve(r.few[:])
	halve(r.all[:])
	r.free = answered{r.free.good / 2, r.free.bad / 2}
}

// doubt takes a Split back that another one beats beyond doubt. It reports whether it did.
func (s *Parts) doubt() bool {
	r := &s.since
	if r.turns < leastTurns {
		return false
	}
	own, few, all := pair(r.own[s.way]), pair(r.few)+r.free.log(), pair(r.all)
	best := s.way
	for w := range r.own {
		if pair(r.own[w]) > pair(r.own[best]) {
			best = Way(w)
		}
	}
	switch known := max(own, few); {
	case all-known > beyondDoubt:
		*s = Parts{vain: min(s.vain+1, mostVain)}
	case pair(r.own[best])-known > beyondDoubt:
		s.way, s.split, s.since = best, Each, rivals{}
	case s.split == Each && few-own > beyondDoubt:
		s.split = Few
	case s.split == Few && own-few > beyondDoubt:
		s.split = Each
	default:
		return false
	}
	return true
}

func pair(t [2]answered) float64 { return t[0].log() + t[1].log() }

// Found is how parts have limits, for all that is known.
func (s *Parts) Found() Division { return Division{s.way, s.split, s.every} }

// Divided are Parts that begin with what was found in an earlier run of the program. Answers may
// refute it.
func Divided(d Division) *Parts { return &Parts{way: d.Way, split: d.Split, every: d.Every} }

// Own reports whether the part of p has limits of its own.
func (s *Parts) Own(p Part) bool {
	if s.split == All || s.every {
		return s.every
	}
	a := s.of(s.way, p)
	return a != nil && a.Refused()
}

// PartOf is the Part of a request with that method and path, of which the first own bytes are
// those of its kind. seed must always be the same.
func PartOf(seed maphash.Seed, method, path string, own int) Part {
	end := min(own, len(path))
	if i := strings.IndexByte(path[min(end+1, len(path)):], '/'); i >= 0 {
		end += 1 + i
	} else {
		end = len(path)
	}
	var head maphash.Hash
	head.SetSeed(seed)
	head.WriteString(method)
	head.WriteString(path[:end])
	w := WhereOf(seed, method, path)
	return Part{ByHead: head.Sum64(), ByForm: w.stem, ByFull: w.full}
}
