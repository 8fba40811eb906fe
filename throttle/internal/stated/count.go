package stated

import (
	"cmp"
	"math"
	"strconv"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/fleet"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

// The Store counts what all processes draw of a limit that the server states: the tally.
// An answer says what was left when its request was served, and the Store says what the count
// was when the request was booked. So each process knows how far the count may go, and
// tells the Store, which books no more than that. A new window begins with one request of each
// process, which asks, as it does without a Store; but the Store books no more of these than
// the window holds, as far as that and the count at its beginning are known.

const (
	// mostDoubt is the part of a limit that may be left unused: see shared.doubt.
	// Without doubt, a fleet of 16 was refused 3 to 4 times as often. With an eighth, it
	// was refused little less often than with a sixteenth, and left more unused.
	mostDoubt = 16

	// mostUnit is how many bytes the name of a unit may have to be part of a key of the
	// Store. Real ones are shorter.
	mostUnit = 40
)

// shared is what a limit knows of its use by other processes.
type shared struct {
	tally *fleet.Tally  // nil: it is not shared
	kept  *fleet.Tally  // what tally was before the limit was not obeyed for a while
	size  float64       // the size of the limit when tried was set
	tried bool          // Tally was asked to make one
	based bool          // base is known
	base  int64         // what the count was when left was stated
	sent  meter.Instant // when the request was sent whose answer stated it
	// doubt is how many units may have been booked before base and arrived at the
	// server after it stated what is left: of those that were booked within the
	// last round trip or so, about half. Zero where an earlier answer tells better.
	doubt float64
	// Of the window that was known last: how far the count may have gone in it, and
	// how long it lasts at most.
	end    int64
	span   time.Duration
	barred bool  // Barred was called, and no answer has come since: span may be too long
	most   int64 // how far the count may go in the window since rolled; zero: nobody knows
	lead   fleet.Lead
	anew   meter.Instant // when an answer last told of another window

	slide slide
	marks marks
	// alone says that the Store cannot be reached. Then each process takes its part of what
	// is left. It goes on to do so for one window after the Store is back, as others may not
	// have noticed that.
	alone bool
	lone  meter.Instant // when the Store was last found to be out of reach
}

// shares reports whether q may be counted in the Store.
func (q *Limit) shares() bool {
	return q.terms.Fleet && !q.ignored && q.exact() && q.Sharing.Depth() == attribution.ByKind && len(q.ID.Unit) <= mostUnit
}

// tallied is q's tally; nil if it has none. While q is not obeyed it has none. Then it has the same
// again, so that this process is as far ahead of the others as before.
func (q *Limit) tallied() *fleet.Tally {
	switch s := &q.shared; {
	case s.tried && s.size != q.sizeOr(0):
		*s = shared{}
	case !q.shares():
		*s = shared{kept: cmp.Or(s.tally, s.kept), size: s.size, span: s.span, lead: s.lead, marks: s.marks}
	}
	return q.shared.tally
}

// Tally is the count of q in the Store, bounded by what is left now; nil: it has none. create
// makes it, under a name that is the same in every process and differs from those of other
// limits of one caller. create may return nil, if there are too many.
func (q *Limit) Tally(now meter.Instant, create func(name string) *fleet.Tally) *fleet.Tally {
	if t, s := q.tallied(), &q.shared; t == nil && q.shares() && !s.tried {
		anew := shared{tried: true, size: q.sizeOr(0), alone: s.alone, span: s.span}
		if s.kept != nil && s.size == anew.size {
			anew.tally, anew.lead, anew.marks = s.kept, s.lead, s.marks
		}
		if *s = anew; s.tally == nil {
			s.tally = create(q.name())
		}
	}
	if q.shared.tally != nil {
		q.bound(now)
	}
	return q.shared.tally
}

// name is the name of q's tally; see Tally.
func (q *Limit) name() string {
	size := strconv.FormatFloat(q.shared.size, 'g', -1, 64)
	return strconv.Quote(q.ID.Name) + strconv.Quote(q.ID.Unit) + strconv.Quote(q.ID.Partition) + q.ID.Window.String() + " " + size
}

// elsewhere is how many units all processes may have drawn since left was stated, at most.
func (s *shared) elsewhere() float64 {
	if s.tally == nil || !s.based {
		return 0
	}
	n, _ := s.tally.Count()
	return float64(max(0, n-s.base)) + s.doubt
}

// booked is elsewhere without doubt: units that were certainly drawn since then.
func (s *shared) booked() float64 { return max(0, s.elsewhere()-s.doubt) }

// room is how much of level this process may draw: all of it, unless it is alone.
func (q *Limit) room(level float64) float64 {
	if k := float64(q.terms.Members); q.shared.alone && k > 0 {
		return level - q.left*(1-1/k)
	}
	return level
}

// blind reports that no answer has brought a count yet. Until one does, one request goes at a
// time.
func (q *Limit) blind() bool {
	s := &q.shared
	return !s.based && !s.alone && (s.tally != nil || !s.tried && q.shares())
}

// share takes in the count when the request was booked whose answer was heard now. end is
// how far the count might go before that.
func (q *Limit) share(now, sent meter.Instant, l *headers.Limit, units float64, booked *fleet.Grant, end int64) {
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
		lately := min(1, trip/max(trip, sent.Sub(s.sent).Seconds())) // the part of the bookings that was made within a round trip
		s.doubt = min(math.Abs(float64(n-s.base))*lately/2, q.sizeOr(0)/mostDoubt)
		s.base, s.based, s.sent = n, true, sent
		if s.anew != now && !q.flows() && t != nil {
			// Units that were booked within a round trip before this request may have arrived
			// after it. So much less may be left than the answer states, if an earlier one
			// stated less. In the burst of a start answers differ by half of a limit.
			late := max(0, n-t.Before(2*now.Sub(sent)))
			q.left, s.doubt = min(q.left, max(float64(end-n), q.left-float64(late))), 0
		}
		if s.most > 0 && now.Sub(q.rolled) < s.span/2 { // later another window may have begun
			q.left = min(q.left, float64(max(0, s.most-n)))
		}
	}
	if left, ok := l.Left(); ok && known {
		if left < plentiful {
			q.tell(n+int64(left), n-t.Before(2*now.Sub(sent)), q.out+q.early <= max(1, units))
		}
		s.slides(q, now, sent, left, n)
	}
	if s.barred {
		was := s.span
		s.barred, s.span = false, 0
		if q.rolled != 0 && q.reset.Known {
			s.span = min(was, q.reset.Value.Sub(q.rolled)) // windows may have passed since rolled
		}
	}
	if q.reset.Known {
		s.span = max(s.span, q.window, q.reset.Value.Sub(now))
		s.tellSpan()
	}
}

// took notes that units were subtracted from left which the count has, too.
func (s *shared) took(units float64) { s.base += int64(units) }

// opens notes that a window may have ended. If requests waited for that, this process has
// watched the count: all of it was booked in earlier windows, so it is known how far it may go
// in the new one, also if no answer has brought a count yet. An answer says that less exactly,
// because requests arrive in another order than they were booked.
func (q *Limit) opens() {
	s := &q.shared
	s.end, s.most = s.base+int64(q.left), 0
	if s.tally != nil {
		n, known := s.tally.Count()
		s.slide.rolled = n
		if known && s.span > 0 && !s.alone && q.size.Known && q.waited() {
			s.most = n + int64(q.size.Value)
		}
	}
	if s.alone {
		s.lead.Forget() // it is not known what the others draw
	}
}

// began learns that there are units more than q knew of. If they are most of the limit, a new
// window has begun before the reset of q, which was too late. At that reset the other
// processes might have spent the new window, so the reset is moved to its end.
func (q *Limit) began(now meter.Instant, units float64) {
	s := &q.shared
	if q.flows() || q.judge.Kind() == refill.Log || s.span <= 0 || !q.size.Known || units < q.size.Value*windowPart {
		return
	}
	q.rolled, s.most = 0, 0
	late := fleet.AskPause(q.terms.Members) / 2 // by how much it is heard late, on average
	q.reset, q.agree = headers.Opt[meter.Instant]{Value: now.Add(s.span - late), Known: true}, 0
}

// Barred notes that the Store refused a request that was to ask: as far as this process knows,
// as much as a window holds was booked since the last one ended. Then q is spent until the end
// of that window. As windows may be shorter than the server said once, one process may ask
// then if nothing was booked since that end, whatever was booked before: its answer tells the
// others by the mark, if it is served. (With as many as a window holds, 40 processes at limits
// of 5 to 20 units were refused twice as often.)
func (q *Limit) Barred(now meter.Instant) {
	s := &q.shared
	if s.tally == nil {
		return
	}
	if n, known := s.tally.Count(); q.fresh.IsOpen() && known && s.span > 0 {
		q.fresh.Close()
		q.left, q.basis = 0, now
		s.base = n
		q.reset = headers.Opt[meter.Instant]{Value: s.next(q.rolled, now), Known: true}
		s.based, s.barred = true, true
	}
}

// Ends reports whether it is known how long a window lasts, so that Barred has an effect.
func (q *Limit) Ends() bool { return q.shared.tally == nil || q.shared.span > 0 }

// next is the end of the window at now, if one ended at last.
func (s *shared) next(last, now meter.Instant) meter.Instant {
	return last.Add(s.span * (1 + now.Sub(last)/s.span))
}

// bound bounds the tally of q by what is left.
func (q *Limit) bound(now meter.Instant) {
	q.roll(now)
	most := int64(fleet.Unbounded)
	switch s := &q.shared; {
	case !s.based && q.fresh.IsOpen() && s.most > 0:
		most = s.most
	case !s.based:
	case q.fresh.IsOpen() && q.size.Known && s.barred:
		most = s.slide.rolled + 1
	case q.fresh.IsOpen() && q.size.Known && s.span > 0:
		most = s.end + int64(q.size.Value)*int64(1+now.Sub(q.rolled)/s.span)
	case !q.fresh.IsOpen() && q.left < plentiful:
		most = s.base + int64(math.Floor(q.level(now)+q.flying()-s.doubt+1e-9))
	}
	q.shared.tally.Bound(most)
}

// turn is how long a request of cost units has to wait, although level units are left, so that
// other processes get their part.
func (q *Limit) turn(now meter.Instant, cost, level float64) time.Duration {
	s := &q.shared
	if s.tally == nil || q.terms.Members == 0 || s.lead.Short() == 0 || now.Sub(s.lead.Short()) > 2*s.span {
		return 0
	}
	k := float64(q.terms.Members)
	if s.alone {
		level = q.sizeOr(level) + k/2 // its part, rounded up, as it is not known what others draw
	}
	if q.out+q.early == 0 && !s.alone {
		s.lead.Counted()
	}
	n, _ := s.tally.Count()
	others, _ := s.tally.Others()
	ahead := s.lead.Ahead(n-others, n, k, q.sizeOr(0)) + cost - level/k
	if s.marks.waits != nil {
		asked, _ := s.marks.waits.Others()
		others += asked
	}
	d := s.lead.Wait(now, ahead, max(1, level/k), fleet.Turn(s.span, q.terms.Members), others, 0)
	if d <= 0 {
		return 0
	}
	return q.watch(now, d, nil)
}
