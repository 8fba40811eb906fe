package throttle

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strconv"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

// What all processes draw of a limit that the server states is counted in the Store.
// An answer says what was left when its request was served, and the Store how many
// units had been booked before: so each process knows how far the count may go, and
// the Store lets nobody go further. A new window begins with one request of each
// process, which asks, as it does without a Store.

const (
	// mostTallies is how many limits of a learner are ever counted in the Store: a
	// server that gives its limits ever new names does not fill it.
	mostTallies = 8

	// mostDoubt is the part of a limit that may be left over: see shared.doubt.
	// Without doubt a fleet of 16 was refused 3 to 4 times as often; an eighth
	// spared it little more, and left more over.
	mostDoubt = 16

	mostUnit = 40 // bytes of a unit's name
)

// shared is what a quota knows of other processes' use of it.
type shared struct {
	tally *fleet.Tally // nil: it is not shared
	size  float64      // of the limit, when that was looked at
	tried bool         // it was
	based bool         // base is known
	base  int64        // the count when what is left was stated
	sent  instant      // when the request was sent whose answer stated it
	// doubt is how many units may have been booked before base and arrived at the
	// server after it stated what is left: of those that were booked within the
	// last round trip or so, about half.
	doubt float64
	// Of the window that was known last: how far the count may have gone in it, and
	// how long it lasts at most.
	end  int64
	span time.Duration
	turn turn

	slide slide
	marks marks
	// While the Store is gone each process takes its part of what is left, and for a
	// window longer: others may not have noticed that it is back.
	alone bool
	lone  instant // when it was last
}

// shares reports that q may be counted in the Store.
func (q *quota) shares() bool {
	return q.terms.fleet && !q.ignored && q.counted && q.sharing.Depth() == attribution.ByKind && len(q.key.unit) <= mostUnit
}

// tallied is q's tally; nil if it has none.
func (q *quota) tallied() *fleet.Tally {
	if s := &q.shared; !q.shares() || s.tried && s.size != q.sizeOr(0) {
		*s = shared{}
	}
	return q.shared.tally
}

// tallyFor is q's tally for the caller to whom l belongs, made if it had none; nil:
// l has too many.
func (q *quota) tallyFor(l *learner, caller string) *fleet.Tally {
	if t, s := q.tallied(), &q.shared; t == nil && q.shares() && !s.tried {
		*s = shared{tried: true, size: q.sizeOr(0), alone: s.alone}
		if l.tallies < mostTallies {
			l.tallies++
			s.tally = fleet.NewTally(q.fleetID(caller), unitName(q.key.unit))
		}
	}
	return q.shared.tally
}

// fleetID names q in every process.
func (q *quota) fleetID(caller string) string {
	size := strconv.FormatFloat(q.shared.size, 'g', -1, 64)
	text := strconv.Quote(caller) + strconv.Quote(q.id.name) + strconv.Quote(q.id.unit) + strconv.Quote(q.id.partition)
	return digest(text + q.id.window.String() + " " + size)
}

// fleetName names in every process whose request q is to l; "": a stranger's, who
// shares l with others.
func (q *ask) fleetName(l *learner) string {
	if q.credential != l.credential {
		return ""
	}
	return digest(q.whose)
}

// digest names what may be a secret.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// elsewhere is how many units all processes have drawn, or may have, since what is
// left was stated.
func (s *shared) elsewhere() float64 {
	if s.tally == nil || !s.based {
		return 0
	}
	n, _ := s.tally.Count()
	return float64(max(0, n-s.base)) + s.doubt
}

// booked is that without what may have been counted when that was stated.
func (s *shared) booked() float64 { return max(0, s.elsewhere()-s.doubt) }

// room is how much of level this process may draw.
func (q *quota) room(level float64) float64 {
	if k := float64(q.terms.members); q.shared.alone && k > 0 {
		return level - q.left*(1-1/k)
	}
	return level
}

// blind reports that no answer has brought a count yet: one request at a time goes
// until one does.
func (q *quota) blind() bool {
	s := &q.shared
	return !s.based && !s.alone && (s.tally != nil || !s.tried && q.shares())
}

// share takes in the count when the request was booked whose answer was heard now.
func (q *quota) share(now, sent instant, l *headers.Limit, units float64, booked *fleet.Grant) {
	t, s := q.tallied(), &q.shared
	n, known := booked.Counts(t)
	switch {
	case known:
		s.alone = s.alone && now.Sub(s.lone) < s.span
	case q.shares() && booked.Alone():
		s.alone, s.lone = true, now
		if t != nil {
			n, known = t.Count()
		}
	}
	if known && (!s.based || q.basis == now) {
		trip := now.Sub(sent).Seconds()
		lately := min(1, trip/max(trip, sent.Sub(s.sent).Seconds())) // what part of the bookings
		s.doubt = min(math.Abs(float64(n-s.base))*lately/2, q.sizeOr(0)/mostDoubt)
		s.base, s.based, s.sent = n, true, sent
	}
	if left, ok := remaining(l); ok && known {
		if left < plentiful {
			q.tell(n+int64(left), q.out+q.early <= max(1, units))
		}
		s.slides(q, now, sent, left, n)
	}
	if q.reset.Known {
		s.span = max(s.span, q.key.window, q.reset.Value.Sub(now))
	}
}

// took notes that units were taken off what is left that the count has, too.
func (s *shared) took(units float64) { s.base += int64(units) }

// opens notes that a window may have ended, of which left units were left.
func (s *shared) opens(left float64) {
	s.end = s.base + int64(left)
	if s.tally != nil {
		s.slide.rolled, _ = s.tally.Count()
	}
	if s.alone {
		s.turn.lead = 0 // nobody knows what the others draw
	}
}

// barred takes in that the store refused one that asked: a window's worth was booked
// since the last one ended, as far as this process knows. The next one asks the server
// whatever was booked, as a window may be shorter than it was once said to be.
func (q *quota) barred(now instant) {
	s := &q.shared
	if n, known := s.tally.Count(); q.asking && known && s.span > 0 {
		q.asking, q.left, q.basis = false, 0, now
		s.base = n
		q.reset = headers.Opt[instant]{Value: q.rolled.Add(s.span * (1 + now.Sub(q.rolled)/s.span)), Known: true}
		s.span = 0
	}
}

// bound lets the tally of q go as far as there is something left.
func (q *quota) bound(now instant) {
	q.roll(now)
	most := int64(fleet.Unbounded)
	switch s := &q.shared; {
	case !s.based:
	case q.asking && q.size.Known && s.span > 0:
		most = s.end + int64(q.size.Value)*int64(1+now.Sub(q.rolled)/s.span)
	case !q.asking && q.left < plentiful:
		most = s.base + int64(math.Floor(q.level(now)+q.flying()-s.doubt+1e-9))
	}
	q.shared.tally.Bound(most)
}

// tallies are those of needs, at most so many. The lock is held.
func (p *passage) tallies(now instant, a *ask, needs []queue.Need, most int) (list []*fleet.Tally) {
	for i := range needs {
		q, ok := needs[i].Account.Meter.(*quota)
		if !ok || len(list) == most || q.size.Known && float64(needs[i].N) > q.size.Value {
			continue
		}
		if t := q.tallyFor(p.kind.learner, a.fleetName(p.kind.learner)); t != nil {
			q.shared.marks.join(p, q.account, t)
			q.bound(now)
			list = append(list, t)
			if len(list) < most {
				list = append(list, q.shared.marks.tally)
			}
		}
	}
	return list
}
