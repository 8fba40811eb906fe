package throttle

import (
	"hash/maphash"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/weirhttp/weir/headers"
)

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

// A where tells requests apart more finely than kinds do, by keyed hashes of
// method and path. The zero where tells nothing.
type where struct {
	stem uint64 // without what may be the id of an object
	full uint64
}

// newStems is the hash under which stems that come for the first time are compared.
// Those of where are odd.
const newStems = 0

// How finely a quota tells requests apart.
const (
	byKind = iota
	byStem
	byPath
)

// at is the hash by which a quota of that depth tells requests apart.
func (w where) at(depth uint8) uint64 {
	if depth == byStem {
		return w.stem
	}
	return w.full
}

// kindPaths is what a kind remembers of paths, once limits were stated.
type kindPaths struct {
	asker        *asker // nil: nobody asked
	where        where  // of method and path, the last looked at
	method, path string
}

// learnedPaths is what a learner knows of paths, once limits were stated.
type learnedPaths struct {
	divided []division // at most maxQuotas
	from    where      // of the answer that is learned from
}

// hearFrom says where the request went whose answer is learned from now.
func (l *learner) hearFrom(w where) {
	if l.paths == nil && w != (where{}) {
		l.paths = new(learnedPaths)
	}
	if l.paths != nil {
		l.paths.from = w
	}
}

// from is where that request went.
func (l *learner) from() where {
	if l.paths == nil {
		return where{}
	}
	return l.paths.from
}

// whereOf is where r goes.
func (k *kind) whereOf(r *http.Request) where {
	if r == nil {
		return where{}
	}
	if k.paths == nil {
		k.paths = new(kindPaths)
	}
	p := k.paths
	if method := methodOf(r); p.where == (where{}) || p.path != r.URL.Path || p.method != method {
		p.path, p.method = r.URL.Path, method
		p.where = newWhere(k.learner.terms.seed, method, r.URL.Path)
	}
	return p.where
}

// asker is the meter of those of k that ask; nil: nobody asked.
func (k *kind) asker() *asker {
	if k.paths == nil {
		return nil
	}
	return k.paths.asker
}

func newWhere(seed maphash.Seed, method, path string) where {
	var stem, full maphash.Hash
	stem.SetSeed(seed)
	full.SetSeed(seed)
	full.WriteString(method)
	full.WriteByte(' ')
	full.WriteString(path)
	stem.WriteString(method)
	for more := true; more; {
		var segment string
		segment, path, more = strings.Cut(path, "/")
		stem.WriteByte('/')
		if !strings.ContainsAny(segment, "0123456789@%:=") && len(segment) <= 32 {
			stem.WriteString(segment)
		}
	}
	return where{stem.Sum64() | 1, full.Sum64() | 1}
}

// A sharing is what a quota knows of who shares it.
type sharing struct {
	depth  uint8
	common [2]float32       // votes for one limit of several stems, and of several paths of a stem; negative: against
	seen   map[uint64]drawn // stems and paths; nil: none
	count  float64          // units answered
	last   where            // of the last answer
	more   [2]bool          // there are several stems, several paths of a stem
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

// settled reports that requests of one kind were seen to share the quota.
func (s *sharing) settled() bool {
	return s.depth == byKind && s.common[0] >= settledAt && s.common[1] >= settledAt
}

// unsure reports that it may be several: more than one stem or path was seen, and
// they have not agreed often.
func (s *sharing) unsure() bool {
	return s.depth == byKind && s.more[0] && s.common[0] < settledAt ||
		s.depth != byPath && s.more[1] && s.common[1] < settledAt
}

func (s *sharing) knows(hash uint64) bool {
	_, ok := s.seen[hash]
	return ok
}

// binds reports whether requests to w, of a kind that the quota binds, draw on it.
func (s *sharing) binds(w where) bool { return s.depth == byKind || s.knows(w.at(s.depth)) }

// strange is the level at which w was not seen with the quota: 0 if its stem was
// not, 1 if only its path was not.
func (s *sharing) strange(w where) (level int, is bool) {
	switch {
	case w == where{} || s.depth == byPath || len(s.seen) == 0, s.depth == byKind && w == s.last:
		return 0, false
	case !s.knows(w.stem):
		return 0, true
	case !s.knows(w.full):
		return 1, true
	}
	return 0, false
}

// mayAsk reports whether requests to w may go though q is spent: they were not
// seen to draw on it, or what was said to them last leaves room, and it is not
// sure that they share it.
func (q *quota) mayAsk(now time.Time, w where, n float64) bool {
	s := &q.sharing
	level, strange := s.strange(w)
	if strange {
		s.more[level] = true
	}
	if strange && s.common[level] >= settledAt || !strange && (!s.unsure() || s.seen[w.full].left < n) {
		return false
	}
	q.roll(now)
	return !q.asking && q.reset.Known && q.left < n && !(q.flows && q.rate() > 0)
}

// apart reports whether an answer to a request to w, that was sent at sent, can
// not be of q: w was not seen with q, which had nothing left, and yet it was
// served, with as much left as of a count of its own. Or the sizes differ. level
// tells what q's own requests have in common.
func (q *quota) apart(sent time.Time, w where, l headers.Limit, cost float64, refused bool) (level int, apart bool) {
	s := &q.sharing
	level, strange := s.strange(w)
	if !strange || int(s.depth) > level {
		return 0, false
	}
	if level == 0 && l.Quota.Known && q.size.Known && l.Quota.Value != q.size.Value {
		return 0, true
	}
	left, ok := remaining(l)
	return level, ok && !refused && q.over(sent) && left+cost >= max(1, q.sizeOr(2)/2)
}

// over reports whether a request that was sent at sent would have been refused by
// q, as far as was known then.
func (q *quota) over(sent time.Time) bool {
	return !q.asking && !q.flows && q.left < 1 && q.reset.Known &&
		!sent.Before(q.basis) && sent.Before(q.reset.Value.Add(-coarse))
}

// witness takes in what an answer to a request to w says is left, and compares.
func (q *quota) witness(w where, left, cost float64) {
	s := &q.sharing
	if s.settled() || w == (where{}) {
		return
	}
	if s.seen == nil {
		s.seen = make(map[uint64]drawn, 4)
	}
	if s.last != (where{}) && w.stem != s.last.stem {
		s.more[0] = true
	} else if s.last != (where{}) && w.full != s.last.full {
		s.more[1] = true
	}
	s.last = w
	if len(s.seen)+4 > mostSeen {
		s.common[1] = settledAt // nor is there room to tell more paths apart
		if s.depth == byKind {
			s.common[0], s.seen = settledAt, nil
		}
		return
	}
	s.count += cost
	stem := s.drew(0, w.stem, newStems, s.count, left, cost, q.flying())
	if s.depth != byStem || s.common[1] < settledAt {
		s.drew(1, w.full, ^w.stem, stem.count, left, cost, q.flying())
	}
}

// drew takes in an answer of a stem or a path. all is what was answered of those
// with which it is compared. Where they share one limit as much less is left as all
// of them drew; where each has its own, as it drew itself. Those that come for the
// first time are compared with those that came before them, under the hash fresh.
func (s *sharing) drew(level int, hash, fresh uint64, all, left, cost, flying float64) drawn {
	d, known := s.seen[hash]
	if !known {
		first := s.seen[fresh]
		s.seen[fresh] = s.compare(level, first, all, left, flying, true)
	}
	d.left, d.count = left, d.count+cost
	d = s.compare(level, d, all, left, flying, !known)
	s.seen[hash] = d
	return d
}

// compare votes when the comparison that d began is due, and begins the next.
func (s *sharing) compare(level int, d drawn, all, left, flying float64, fresh bool) drawn {
	own, drop, open := d.count-d.own, d.base-left, max(d.open, flying)
	others := all - d.all - own
	due := 2*open + comparedAfter
	if fresh && open <= 1 {
		due = 3 // nothing else is open, and units that flow in speak for nothing here
	}
	switch {
	case d.all > 0 && drop >= 0 && others < due:
		return d
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
	return d
}

// vote counts votes for one limit, as long as none is settled.
func (s *sharing) vote(level int, votes float32) {
	if s.common[level] < settledAt {
		s.common[level] += votes
	}
}

// share takes in a refusal of a request to w, which asked whether w has a count of
// its own, or did not.
func (s *sharing) share(w where, asked bool) {
	level, strange := s.strange(w)
	for i := range s.common {
		if asked && (!strange || i == level) {
			s.vote(i, refusedIs)
		}
	}
	if s.seen == nil && !s.settled() {
		s.seen = make(map[uint64]drawn, 4)
	}
	if s.seen != nil && len(s.seen)+2 <= mostSeen {
		s.seen[w.stem], s.seen[w.full] = drawn{}, drawn{}
	}
}

// divided is the level at which q proved to be several limits, if it did.
func (s *sharing) divided() (level int, is bool) {
	for level, n := range s.common {
		if n <= apartAt && int(s.depth) <= level {
			return level, true
		}
	}
	return 0, false
}
