package stated

import (
	"math"
	"strconv"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

// What all processes draw of a limit that the server states is counted in the Store.
// An answer says what was left when its request was served, and the Store how many
// units had been booked before: so each process knows how far the count may go, and
// the Store lets nobody go further. A new window begins with one request of each
// process, which asks, as it does without a Store.

const (
	// mostDoubt is the part of a limit that may be left over: see shared.doubt.
	// Without doubt a fleet of 16 was refused 3 to 4 times as often; an eighth
	// spared it little more, and left more over.
	mostDoubt = 16

	mostUnit = 40 // bytes of a unit's name
)

// shared is what a quota knows of other processes' use of it.
type shared struct {
	tally *fleet.Tally  // nil: it is not shared
	size  float64       // of the limit, when that was looked at
	tried bool          // it was
	based bool          // base is known
	base  int64         // the count when what is left was stated
	sent  meter.Instant // when the request was sent whose answer stated it
	// doubt is how many units may have been booked before base and arrived at the
	// server after it stated what is left: of those that were booked within the
	// last round trip or so, about half.
	doubt float64
	// Of the window that was known last: how far the count may have gone in it, and
	// how long it lasts at most.
	end  int64
	span time.Duration
	most int64 // how far the count may go in the window since rolled; zero: nobody knows
	lead fleet.Lead

	slide slide
	marks marks
	// While the Store is gone each process takes its part of what is left, and for a
	// window longer: others may not have noticed that it is back.
	alone bool
	lone  meter.Instant // when it was last
}

// shares reports that q may be counted in the Store.
func (q *Limit) shares() bool {
	return q.terms.Fleet && !q.ignored && q.exact() && q.Sharing.Depth() == attribution.ByKind && len(q.ID.Unit) <= mostUnit
}

// tallied is q's tally; nil if it has none.
func (q *Limit) tallied() *fleet.Tally {
	if s := &q.shared; !q.shares() || s.tried && s.size != q.sizeOr(0) {
		*s = shared{}
	}
	return q.shared.tally
}

// Tally is the count of q in the Store, which goes as far as there is something left now;
// nil: it has none. create makes it, under a name that tells q from other limits of one
// caller in every process, or returns nil if there are too many.
func (q *Limit) Tally(now meter.Instant, create func(name string) *fleet.Tally) *fleet.Tally {
	if t, s := q.tallied(), &q.shared; t == nil && q.shares() && !s.tried {
		*s = shared{tried: true, size: q.sizeOr(0), alone: s.alone}
		s.tally = create(q.name())
	}
	if q.shared.tally != nil {
		q.bound(now)
	}
	return q.shared.tally
}

// name is what tells q from other limits of one caller in every process.
func (q *Limit) name() string {
	size := strconv.FormatFloat(q.shared.size, 'g', -1, 64)
	return strconv.Quote(q.ID.Name) + strconv.Quote(q.ID.Unit) + strconv.Quote(q.ID.Partition) + q.ID.Window.String() + " " + size
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
func (q *Limit) room(level float64) float64 {
	if k := float64(q.terms.Members); q.shared.alone && k > 0 {
		return level - q.left*(1-1/k)
	}
	return level
}

// blind reports that no answer has brought a count yet: one request at a time goes
// until one does.
func (q *Limit) blind() bool {
	s := &q.shared
	return !s.based && !s.alone && (s.tally != nil || !s.tried && q.shares())
}

// share takes in the count when the request was booked whose answer was heard now.
func (q *Limit) share(now, sent meter.Instant, l *headers.Limit, units float64, booked *fleet.Grant) {
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
		if s.most > 0 && now.Sub(q.rolled) < s.span/2 { // later another window may have begun
			q.left = min(q.left, float64(max(0, s.most-n)))
		}
	}
	if left, ok := Remaining(l); ok && known {
		if left < plentiful {
			q.tell(n+int64(left), q.out+q.early <= max(1, units))
		}
		s.slides(q, now, sent, left, n)
	}
	if q.reset.Known {
		s.span = max(s.span, q.window, q.reset.Value.Sub(now))
	}
}

// took notes that units were taken off what is left that the count has, too.
func (s *shared) took(units float64) { s.base += int64(units) }

// opens notes that a window may have ended. Whoever waited for that has watched the count:
// what it is now was booked in old windows, so it says how far the new one goes. An answer
// says it less well, as requests arrive in another order than they were booked.
func (q *Limit) opens() {
	s := &q.shared
	s.end, s.most = s.base+int64(q.left), 0
	if s.tally != nil {
		s.slide.rolled, _ = s.tally.Count()
		if s.based && !s.alone && q.size.Known && q.waited() {
			s.most = s.slide.rolled + int64(q.size.Value)
		}
	}
	if s.alone {
		s.lead.Forget() // nobody knows what the others draw
	}
}

// began takes in that there are so many units more than q knew of. So many at once are a
// window that began before q's reset, which was told too late. To ask at that reset would
// be to ask in the middle of it, when the others may have spent it.
func (q *Limit) began(now meter.Instant, units float64) {
	s := &q.shared
	if q.flows() || q.judge.Kind() == refill.Log || s.span <= 0 || !q.size.Known || units < q.size.Value*windowPart {
		return
	}
	q.rolled, s.most = 0, 0
	late := fleet.AskPause(q.terms.Members) / 2 // that is heard of, on average
	q.reset, q.agree = headers.Opt[meter.Instant]{Value: now.Add(s.span - late), Known: true}, 0
}

// Barred takes in that the store refused one that asked: a window's worth was booked
// since the last one ended, as far as this process knows. The next one asks the server
// whatever was booked, as a window may be shorter than it was once said to be.
func (q *Limit) Barred(now meter.Instant) {
	s := &q.shared
	if s.tally == nil {
		return
	}
	if n, known := s.tally.Count(); q.fresh.IsOpen() && known && s.span > 0 {
		q.fresh.Close()
		q.left, q.basis = 0, now
		s.base = n
		q.reset = headers.Opt[meter.Instant]{Value: q.rolled.Add(s.span * (1 + now.Sub(q.rolled)/s.span)), Known: true}
		s.span = 0
	}
}

// bound lets the tally of q go as far as there is something left.
func (q *Limit) bound(now meter.Instant) {
	q.roll(now)
	most := int64(fleet.Unbounded)
	switch s := &q.shared; {
	case !s.based:
	case q.fresh.IsOpen() && q.size.Known && s.span > 0:
		most = s.end + int64(q.size.Value)*int64(1+now.Sub(q.rolled)/s.span)
	case !q.fresh.IsOpen() && q.left < plentiful:
		most = s.base + int64(math.Floor(q.level(now)+q.flying()-s.doubt+1e-9))
	}
	q.shared.tally.Bound(most)
}

// turn is how long cost units of those that are left have to wait until others had
// their turn.
func (q *Limit) turn(now meter.Instant, cost, level float64) time.Duration {
	s := &q.shared
	if s.tally == nil || q.terms.Members == 0 || s.lead.Short() == 0 || now.Sub(s.lead.Short()) > 2*s.span {
		return 0
	}
	k := float64(q.terms.Members)
	if s.alone {
		level = q.sizeOr(level) + k/2 // its part, rounded up: nobody knows what others leave
	}
	others, _ := s.tally.Others()
	return s.lead.Wait(now, s.lead.Ahead(s.tally, k, q.sizeOr(0))+cost-level/k, max(1, level/k), s.span, others)
}
