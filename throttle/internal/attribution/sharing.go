package attribution

import (
	"hash/maphash"
	"math"
	"strings"
)

// A Where tells requests apart more finely than kinds do, by keyed hashes of
// method and path. The zero Where tells nothing.
type Where struct {
	stem uint64 // without what may be the id of an object
	full uint64
}

// A Depth is how finely requests of one kind are told apart.
type Depth uint8

const (
	ByKind Depth = iota // not at all
	ByStem              // by path, but for what may be the id of an object
	ByPath
)

// at is the hash by which limits are told apart at that depth.
func (w Where) at(d Depth) uint64 {
	if d == ByStem {
		return w.stem
	}
	return w.full
}

// WhereOf is where a request with that method and path goes.
func WhereOf(seed maphash.Seed, method, path string) Where {
	var space [160]byte // what is longer costs an allocation
	text := append(space[:0], method...)
	text = append(text, ' ')
	text = append(text, path...)
	full := maphash.Bytes(seed, text)

	text = append(text[:0], method...)
	for more := true; more; {
		var segment string
		segment, path, more = strings.Cut(path, "/")
		text = append(text, '/')
		if !mayBeID(segment) {
			text = append(text, segment...)
		}
	}
	return Where{maphash.Bytes(seed, text) | 1, full | 1}
}

// mayBeID reports whether a segment of a path may be the id of an object.
func mayBeID(segment string) bool {
	for i := range len(segment) {
		switch c := segment[i]; {
		case c >= '0' && c <= '9', c == '@', c == '%', c == ':', c == '=':
			return true
		}
	}
	return len(segment) > 32
}

// Servers state limits of one name for all that a client sends, for each of
// their endpoints, or for each object. So a quota finds out who shares it. Its
// first guess is that all requests of a kind do. It tells them apart by their
// paths when one is served as though it had a count of its own.

const (
	mostSeen  = 256 // stems and paths of a quota that are compared; with more it is taken for one limit
	settledAt = 6   // votes for one limit, after which no more are compared
	apartAt   = -5  // votes for several: chance makes a bucket look so once or twice
	refusedIs = 3   // votes that the refusal of one that asked counts for: two refusals settle it

	// A comparison is made when twice as much of others was answered as may be
	// under way, and so many units beside: else what answers that overtake one
	// another leave open is as large as what is to be told apart. A bucket into
	// which units flow then looks by chance as though it were several about one
	// time in six.
	comparedAfter  = 4
	votesOf        = 2   // a comparison in which one guess is right and the other is wrong
	votesOfNeither = 0.5 // one in which both are wrong: units flowed in
)

// newStems is the hash under which stems that come for the first time are compared.
// Those of Where are odd.
const newStems = 0

// A Sharing is what a stated limit knows of who shares it. The zero Sharing has heard
// nothing.
type Sharing struct {
	depth  Depth
	common [2]float32        // votes for one limit of several stems, and of several paths of a stem; negative: against
	seen   map[uint64]*drawn // stems and paths; nil: none
	lately [2]*drawn         // of these the stem and the path of last, which most often come again; nil: to be looked up
	count  float64           // units answered
	last   Where             // of the last answer
	more   [2]bool           // there are several stems, several paths of a stem
}

// drawn is what a stem or a path has drawn on a quota.
type drawn struct {
	left  float64 // as its last answer said
	count float64 // units answered

	// A comparison begins with what was left and what was under way, and the counts
	// of its own and of all with which it is compared: of all stems, or of all
	// paths of its stem.
	base, open, own, all float64
}

// Depth is how finely the limit is told apart from others of its name.
func (s *Sharing) Depth() Depth { return s.depth }

// Divide tells it apart so finely from now on.
func (s *Sharing) Divide(d Depth) { s.depth = d }

// Settled reports that requests of one kind were seen to share the limit.
func (s *Sharing) Settled() bool {
	return s.depth == ByKind && s.common[0] >= settledAt && s.common[1] >= settledAt
}

// Unsure reports that it may be several: more than one stem or path was seen, and
// they have not agreed often.
func (s *Sharing) Unsure() bool {
	return s.depth == ByKind && s.more[0] && s.common[0] < settledAt ||
		s.depth != ByPath && s.more[1] && s.common[1] < settledAt
}

func (s *Sharing) knows(hash uint64) bool { return s.seen[hash] != nil }

// left is what the last answer of a stem or a path said was left; zero: there was none.
func (s *Sharing) left(hash uint64) float64 {
	if d := s.seen[hash]; d != nil {
		return d.left
	}
	return 0
}

// Binds reports whether requests to w, of a kind that the limit binds, draw on it.
func (s *Sharing) Binds(w Where) bool { return s.depth == ByKind || s.knows(w.at(s.depth)) }

// strange is the level at which w was not seen with the limit: 0 if its stem was
// not, 1 if only its path was not.
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

// Strange reports whether w was not seen with the limit, and how finely it then has to
// be told apart if w has one of its own.
func (s *Sharing) Strange(w Where) (d Depth, is bool) {
	level, strange := s.strange(w)
	d = Depth(level + 1)
	return d, strange && s.depth < d
}

// MayAsk reports whether requests of n units to w may go though the limit is spent:
// they were not seen to draw on it, or what was said to them last leaves room, and it
// is not sure that they share it.
func (s *Sharing) MayAsk(w Where, n float64) bool {
	level, strange := s.strange(w)
	if strange {
		s.more[level] = true
		return s.common[level] < settledAt
	}
	return s.Unsure() && s.left(w.full) >= n
}

// Answered takes in that an answer to a request to w, of cost units, said that left are
// left while so many were under way, and compares.
func (s *Sharing) Answered(w Where, left, cost, underWay float64) {
	if s.Settled() || w == (Where{}) {
		return
	}
	if s.seen == nil {
		s.seen = make(map[uint64]*drawn, 4)
	}
	if s.last != (Where{}) && w.stem != s.last.stem {
		s.more[0] = true
	} else if s.last != (Where{}) && w.full != s.last.full {
		s.more[1] = true
	}
	if s.last != w {
		s.last, s.lately = w, [2]*drawn{}
	}
	if len(s.seen)+4 > mostSeen {
		s.common[1] = settledAt // nor is there room to tell more paths apart
		if s.depth == ByKind {
			s.common[0], s.seen, s.lately = settledAt, nil, [2]*drawn{}
		}
		return
	}
	s.count += cost
	stem := s.drew(0, w.stem, newStems, s.count, left, cost, underWay)
	if s.depth != ByStem || s.common[1] < settledAt {
		s.drew(1, w.full, ^w.stem, stem.count, left, cost, underWay)
	}
}

// drew takes in an answer of a stem or a path. all is what was answered of those
// with which it is compared. Where they share one limit as much less is left as all
// of them drew; where each has its own, as it drew itself. Those that come for the
// first time are compared with those that came before them, under the hash fresh.
func (s *Sharing) drew(level int, hash, fresh uint64, all, left, cost, flying float64) *drawn {
	d := s.lately[level]
	if d == nil {
		d = s.seen[hash]
	}
	known := d != nil
	if !known {
		d = new(drawn)
		s.seen[hash] = d
		if s.seen[fresh] == nil {
			s.seen[fresh] = new(drawn)
		}
		s.compare(level, s.seen[fresh], all, left, flying, true)
	}
	s.lately[level] = d
	d.left, d.count = left, d.count+cost
	s.compare(level, d, all, left, flying, !known)
	return d
}

// compare votes when the comparison that d began is due, and begins the next.
func (s *Sharing) compare(level int, d *drawn, all, left, flying float64, fresh bool) {
	own, drop, open := d.count-d.own, d.base-left, max(d.open, flying)
	others := all - d.all - own
	due := 2*open + comparedAfter
	if fresh && open <= 1 {
		due = 3 // nothing else is open, and units that flow in speak for nothing here
	}
	switch {
	case d.all > 0 && drop >= 0 && others < due:
		return
	case d.all == 0 || drop < 0:
	case drop > own+others-open-0.5:
		s.vote(level, min(votesOf, float32(others)))
	case fresh: // their own may have been drawn on by somebody else
	case math.Abs(drop-own) < 0.5:
		s.vote(level, -votesOf)
	case math.Abs(drop-own) < 0.5+open*own/(own+others):
		s.vote(level, -1)
	case drop > own+open: // more than its own that overtook one another
		s.vote(level, votesOfNeither)
	}
	d.base, d.open, d.own, d.all = left, flying, d.count, all
}

// vote counts votes for one limit, as long as none is settled.
func (s *Sharing) vote(level int, votes float32) {
	if s.common[level] < settledAt {
		s.common[level] += votes
	}
}

// Refused takes in a refusal of a request to w, which asked whether w has a count of
// its own, or did not.
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
		s.lately = [2]*drawn{}
	}
}

// Divided is how finely the limit has to be told apart, if it proved to be several.
func (s *Sharing) Divided() (d Depth, is bool) {
	for level, n := range s.common {
		if d = Depth(level + 1); n <= apartAt && s.depth < d {
			return d, true
		}
	}
	return 0, false
}
