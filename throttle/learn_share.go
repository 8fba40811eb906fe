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
	settledAt = 6   // answers that speak for one limit, after which no more are compared
	apartAt   = -5  // answers that speak for several: chance makes a bucket look so once or twice
	refusedIs = 3   // answers that the refusal of one that asked counts for: two refusals settle it
)

// A where tells requests apart more finely than kinds do, by keyed hashes of
// method and path. The zero where tells nothing.
type where struct {
	stem uint64 // without what may be the id of an object
	full uint64
}

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
	common [2]int8            // for one limit of several stems, and of several paths of a stem; negative: against
	seen   map[uint64]float64 // of stems and paths, what was left when last said; nil: none
	last   where              // of the last answer
	said   float64            // left, as it said
	heard  time.Time          // when
	more   [2]bool            // there are several stems, several paths of a stem
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
	if strange && s.common[level] >= settledAt || !strange && (!s.unsure() || s.seen[w.full] < n) {
		return false
	}
	q.roll(now)
	return !q.asking && q.reset.Known && q.left < n && !q.flows
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

// witness compares an answer to a request to w, that was sent at sent, with what
// w's own last answer makes expect, and with the last one to others.
func (q *quota) witness(now, sent time.Time, w where, left, cost float64) {
	s := &q.sharing
	if s.settled() || w == (where{}) {
		return
	}
	if s.seen == nil {
		s.seen = make(map[uint64]float64, 4)
	}
	if s.last != (where{}) && w.full != s.last.full {
		s.compare(w, left, cost, q.flying(), !sent.Before(s.heard))
	}
	s.last, s.said, s.heard = w, left, now
	if len(s.seen)+2 > mostSeen {
		s.common[1] = settledAt // nor is there room to tell more paths apart
		if s.depth == byKind {
			s.common[0], s.seen = settledAt, nil
		}
		return
	}
	s.seen[w.stem] = left
	if s.depth != byStem || s.common[1] < settledAt {
		s.seen[w.full] = left
	}
}

// compare votes. For one limit speaks that less is left than the others were told
// of, by no more than can be under way; against it, that w's own count goes on
// though the others' was lower before. after tells that the request was sent when
// they had been told.
func (s *sharing) compare(w where, left, cost, flying float64, after bool) {
	level, own := 0, w.stem
	if w.stem == s.last.stem {
		level, own = 1, w.full
	}
	s.more[level] = true
	before, known := s.seen[own]
	goesOn := known && math.Abs(left-(before-cost)) < 0.5
	fell := s.said - left
	switch {
	case goesOn && after && fell < cost-0.5:
		s.common[level]--
	case !goesOn && fell > cost-0.5 && fell <= cost+flying+2 && s.common[level] < settledAt:
		s.common[level]++
	}
}

// share takes in a refusal of a request to w, which asked whether w has a count of
// its own, or did not.
func (s *sharing) share(w where, asked bool) {
	level, strange := s.strange(w)
	for i := range s.common {
		if asked && s.common[i] < settledAt && (!strange || i == level) {
			s.common[i] += refusedIs
		}
	}
	if s.seen == nil && !s.settled() {
		s.seen = make(map[uint64]float64, 4)
	}
	if s.seen != nil && len(s.seen)+2 <= mostSeen {
		s.seen[w.stem], s.seen[w.full] = 0, 0
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
