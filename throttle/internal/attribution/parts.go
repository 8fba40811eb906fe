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

// mostParts bounds the parts whose answers are counted. Those beyond count as one.
const mostParts = 64

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

// beyond stands, among the hashes of parts, for all parts beyond mostParts.
const beyond = 0

// Parts find out whether limits bind parts of one kind of request, and which Way tells these
// apart. It is the question of Split, asked about each Way. Then they go on to compare what
// predicts the next answer best, as chance may have misled them: calls to one part may follow one
// another. The zero Parts have counted nothing.
type Parts struct {
	by      [Ways]map[uint64]*Answers
	refused bool  // the last answer was a refusal
	way     Way   // by which parts with limits of their own are told apart
	split   Split // All: there are none, for all that is known; Few: those that there are share one; Each: each has its own
	every   bool  // all parts have limits, not only those that were refused
	vain    int   // how many times a Split proved to be wrong; at most mostVain
	bad     int   // refusals until one was found
	since   rivals
}

// rivals are what may predict the answers since parts were told apart.
type rivals struct {
	own     [Ways][2]answered // the last answer of the same part: it was served, or refused
	few     [2]answered       // the last one of all parts that have limits
	free    answered          // of parts that have none
	all     [2]answered       // the last one of all
	refused bool              // that of the few
	turns   int               // how many times a refused one of these was followed by one that was served
}

// Count counts an answer to a request of part p. It reports whether limits bind others than before
// from now on.
func (s *Parts) Count(p Part, refused bool) (news bool) {
	if s.split != All {
		s.compare(p, refused)
	}
	for w := range s.by {
		s.answers(Way(w), p).Count(s.refused, refused)
	}
	s.refused = refused
	switch {
	case !refused:
		return false
	case s.split != All:
		return s.doubt()
	}
	if s.bad++; s.bad > lookEach && s.bad%lookEvery != 0 {
		return false
	}
	best := beyondDoubt*float64(1+s.vain) + math.Log(float64(Ways)) // as there are so many guesses
	for w, by := range s.by {
		all := make([]Answers, 0, mostParts+1)
		for _, a := range by {
			all = append(all, *a)
		}
		if split, odds := likeliest(all); odds > best {
			s.way, s.split, s.every, best = Way(w), Each, split == Each, odds
		}
	}
	return s.split != All
}

// answers are those of the part of p that were counted, made if need be.
func (s *Parts) answers(w Way, p Part) *Answers {
	key := p[w]
	if a := s.by[w][key]; a != nil {
		return a
	}
	if s.by[w] == nil {
		s.by[w] = make(map[uint64]*Answers)
	}
	if len(s.by[w]) >= mostParts {
		key = beyond
	}
	return made(s.by[w], key)
}

// compare counts an answer for each of the rivals.
func (s *Parts) compare(p Part, refused bool) {
	r := &s.since
	for w := range s.by {
		r.own[w][class(s.answers(Way(w), p).refused)].count(refused)
	}
	if r.all[class(s.refused)].count(refused); r.all[0].n()+r.all[1].n() > recalled {
		r.halve()
	}
	if !refused && !s.Own(p) {
		r.free.count(refused)
		return
	}
	r.few[class(r.refused)].count(refused)
	if r.refused && !refused {
		r.turns++
	}
	r.refused = refused
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

// Found reports which Way has parts with limits of their own, and whether each has its own or they
// share one. All: there are none, for all that is known.
func (s *Parts) Found() (Way, Split) { return s.way, s.split }

// Own reports whether the part of p has limits of its own.
func (s *Parts) Own(p Part) bool {
	if s.split == All || s.every {
		return s.every
	}
	a := s.by[s.way][p[s.way]]
	return a != nil && a.Refused()
}

func made(m map[uint64]*Answers, key uint64) *Answers {
	if m[key] == nil {
		m[key] = new(Answers)
	}
	return m[key]
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
	w, head := WhereOf(seed, method, path), WhereOf(seed, method, path[:end])
	return Part{ByHead: head.full, ByForm: w.stem, ByFull: w.full}
}
