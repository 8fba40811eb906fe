package attribution

import "math"

// Servers state limits of the same name for all that a client sends, for each of their
// endpoints, or for each object. So a Sharing finds out which requests share a stated limit.
// Its first guess is that all requests of a kind do. It compares how many units are left, as
// answers say: with one limit for all, the requests of others take from it, too. Each
// comparison votes for one limit or for several.

const (
	// mostSeen is how many stems and paths of a limit are compared. With more they are
	// taken to share it, as memory is bounded.
	mostSeen = 256
	// settledAt is at how many votes for one limit no more are compared.
	settledAt = 6
	// apartAt is at how many votes, against, there are several limits. It takes three
	// comparisons, as a bucket votes so by chance once or twice.
	apartAt = -5
	// refusedIs is how many votes a refusal of a request that asked has: two settle it.
	refusedIs = 3

	// comparedAfter is how many units of others must be answered before a comparison, besides
	// twice those under way. Otherwise the uncertainty, because answers overtake one another,
	// would be as large as the difference between the guesses. With it, a bucket into which
	// units flow looks by chance like several limits about one time in six.
	comparedAfter  = 4
	votesOf        = 2   // votes of a comparison in which one guess is right and the other is wrong
	votesOfNeither = 0.5 // votes of one in which both are wrong: units came back
)

// newStems stands, among the hashes of stems, for all stems that come for the first time. The
// hashes of a Where are odd.
const newStems = 0

// A Sharing finds out which requests share a stated limit. The zero Sharing has heard
// nothing.
type Sharing struct {
	depth  Depth
	common [2]float32        // votes for one limit of several stems, and for one of several paths of a stem; negative: against
	seen   map[uint64]*drawn // by hash of stems and paths; nil: none
	lately [2]*drawn         // seen of the stem and the path of last, which are the most likely to come again; nil: not looked up
	count  float64           // units answered
	last   Where             // of the last answer
	still  bool              // its drawn in lately have no comparison due, and none can be as long as only they are answered
	more   [2]bool           // several stems were seen; several paths of a stem were
}

// drawn is what requests of a stem or a path have taken of a limit.
type drawn struct {
	left  float64 // units left, as the last answer to one of them said
	count float64 // units answered

	// At the beginning of a comparison: the units left (base) and under way (open), count
	// (own), and the count of all with which it is compared (all): of all stems, or of all
	// paths of its stem.
	base, open, own, all float64
}

// Depth is how finely requests are told apart: those that differ by it have other limits of
// the same name.
func (s *Sharing) Depth() Depth { return s.depth }

// Divide sets the Depth.
func (s *Sharing) Divide(d Depth) { s.depth = d }

// Several reports whether requests to more than one path were answered.
func (s *Sharing) Several() bool {
	paths := -1 // one is a stem
	for hash := range s.seen {
		if hash&1 != 0 {
			paths++
		}
	}
	return paths > 1
}

// Settled reports that all requests of one kind were found to share the limit.
func (s *Sharing) Settled() bool {
	return s.depth == ByKind && s.common[0] >= settledAt && s.common[1] >= settledAt
}

// Unsure reports that there may be several limits: more than one stem or path was seen, and
// few comparisons have shown that they share one.
func (s *Sharing) Unsure() bool {
	return s.depth == ByKind && s.more[0] && s.common[0] < settledAt ||
		s.depth != ByPath && s.more[1] && s.common[1] < settledAt
}

// Common reports that comparisons have shown that all stems share the limit.
func (s *Sharing) Common() bool { return s.depth == ByKind && s.common[0] >= settledAt }

func (s *Sharing) knows(hash uint64) bool { return s.seen[hash] != nil }

// left is how many units the last answer of a stem or a path said are left; zero: there was
// none.
func (s *Sharing) left(hash uint64) float64 {
	if d := s.seen[hash]; d != nil {
		return d.left
	}
	return 0
}

// Binds reports whether the limit applies to requests to w, if it applies to their kind.
func (s *Sharing) Binds(w Where) bool { return s.depth == ByKind || s.knows(w.at(s.depth)) }

// strange reports whether no answer to w has stated the limit yet. Then level is 0 if none
// to its stem has, and 1 if only none to its path has.
func (s *Sharing) strange(w Where) (level int, is bool) {
	switch {
	case s.depth == ByKind && w == s.last, s.depth == ByPath, len(s.seen) == 0, w == Where{}:
		return 0, false
	case !s.knows(w.stem):
		return 0, true
	case !s.knows(w.full):
		return 1, true
	}
	return 0, false
}

// Strange reports whether no answer to w has stated the limit yet, and which Depth is needed
// if w has a limit of its own.
func (s *Sharing) Strange(w Where) (d Depth, is bool) {
	level, strange := s.strange(w)
	d = Depth(level + 1)
	return d, strange && s.depth < d
}

// MayAsk reports whether requests of n units to w may go although the limit is spent. They may
// if it is not certain that they share it, and if no answer to them has stated it, or the last
// one said that there is room.
func (s *Sharing) MayAsk(w Where, n float64) bool {
	level, strange := s.strange(w)
	if strange {
		s.more[level] = true
		return s.common[level] < settledAt
	}
	return s.Unsure() && s.left(w.full) >= n
}

// Answered learns from an answer to a request to w of cost units, which said that left units
// are left, while so many units were under way.
func (s *Sharing) Answered(w Where, left, cost, underWay float64) {
	if s.Settled() || w == (Where{}) {
		return
	}
	if s.last != w || s.seen == nil {
		s.turn(w)
	} else if stem, full := s.lately[0], s.lately[1]; s.still && left <= stem.base && left <= full.base {
		s.count += cost
		stem.left, stem.count = left, stem.count+cost
		full.left, full.count = left, full.count+cost
		return
	}
	if len(s.seen)+4 > mostSeen {
		s.common[1] = settledAt // there is no room for more paths: those of a stem share the limit
		if s.depth == ByKind {
			s.common[0], s.seen, s.lately, s.still = settledAt, nil, [2]*drawn{}, false
		}
		return
	}
	s.count += cost
	stem, due := s.drew(0, w.stem, newStems, s.count, left, cost, underWay)
	if s.depth != ByStem || s.common[1] < settledAt {
		_, dueToo := s.drew(1, w.full, ^w.stem, stem.count, left, cost, underWay)
		s.still = !due && !dueToo
	}
}

// turn notes that the next answer is to a request to w, and the last one was not, or is forgotten.
func (s *Sharing) turn(w Where) {
	if s.seen == nil {
		s.seen = make(map[uint64]*drawn, 4)
	}
	if s.last != (Where{}) && w.stem != s.last.stem {
		s.more[0] = true
	} else if s.last != (Where{}) && w.full != s.last.full {
		s.more[1] = true
	}
	if w.stem != s.last.stem {
		s.lately[0] = nil
	}
	s.last, s.lately[1], s.still = w, nil, false
}

// drew learns from an answer of a stem or a path. all is the count of those with which it is
// compared. If they share one limit, what is left falls by as much as all of them took; if each
// has its own, by what it took itself. Stems or paths that come for the first time are
// compared, together, with those before them; fresh is the hash for them. due says that drew had to
// look whether a comparison is due.
func (s *Sharing) drew(level int, hash, fresh uint64, all, left, cost, flying float64) (d *drawn, due bool) {
	d = s.lately[level]
	known := d != nil
	if !known {
		if d = s.seen[hash]; d != nil {
			known = true
		} else {
			d = s.meet(level, hash, fresh, all, left, flying)
		}
		s.lately[level] = d
	}
	d.left, d.count = left, d.count+cost
	if known && d.all > 0 && left <= d.base && all-d.all-(d.count-d.own) < comparedAfter {
		return d, false // compare would find out the same: it is not due, however few are under way
	}
	s.compare(level, d, all, left, flying, !known)
	return d, true
}

// meet begins to count a stem or a path that comes for the first time.
func (s *Sharing) meet(level int, hash, fresh uint64, all, left, flying float64) *drawn {
	d := new(drawn)
	s.seen[hash] = d
	if s.seen[fresh] == nil {
		s.seen[fresh] = new(drawn)
	}
	s.compare(level, s.seen[fresh], all, left, flying, true)
	return d
}

// compare votes if the comparison that d has begun is due, and then begins the next one.
func (s *Sharing) compare(level int, d *drawn, all, left, flying float64, fresh bool) {
	own, drop, open := d.count-d.own, d.base-left, max(d.open, flying)
	others := all - d.all - own
	due := 2*open + comparedAfter
	if fresh && open <= 1 {
		due = 3 // nothing else is under way, and for fresh ones units that come back have no vote
	}
	switch {
	case d.all > 0 && drop >= 0 && others < due:
		return
	case d.all == 0 || drop < 0:
	case drop > own+others-open-0.5:
		s.vote(level, min(votesOf, float32(others)))
	case fresh: // another client may have taken from a limit of their own
	case math.Abs(drop-own) < 0.5:
		s.vote(level, -votesOf)
	case math.Abs(drop-own) < 0.5+open*own/(own+others):
		s.vote(level, -1)
	case drop > own+open: // more than its own requests explain, even if answers overtook one another
		s.vote(level, votesOfNeither)
	}
	d.base, d.open, d.own, d.all = left, flying, d.count, all
}

// vote adds votes for one limit, until there are settledAt.
func (s *Sharing) vote(level int, votes float32) {
	if s.common[level] < settledAt {
		s.common[level] += votes
	}
}

// Refused notes a refusal of a request to w. asked says that the request was sent to ask
// whether w has a limit of its own.
func (s *Sharing) Refused(w Where, asked bool) {
	if w == (Where{}) {
		return
	}
	level, strange := s.strange(w)
	for i := range s.common {
		if asked && (!strange || i == level) {
			s.vote(i, refusedIs)
		}
	}
	if s.seen == nil && !s.Settled() {
		s.seen = make(map[uint64]*drawn, 4)
	}
	if s.seen != nil && len(s.seen)+2 <= mostSeen {
		s.seen[w.stem], s.seen[w.full] = new(drawn), new(drawn)
		s.lately, s.still = [2]*drawn{}, false
	}
}

// Divided reports whether there proved to be several limits, and which Depth tells them apart.
func (s *Sharing) Divided() (d Depth, is bool) {
	for level, n := range s.common {
		if d = Depth(level + 1); n <= apartAt && s.depth < d {
			return d, true
		}
	}
	return 0, false
}
