package stated

import (
	"math"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

const (
	// plentiful stands for what is left if that is not known. It is larger than any limit,
	// and an int of 32 bits can hold it.
	plentiful = math.MaxInt32

	// MostWindow bounds windows: a year, which some servers have, and a month more.
	MostWindow = 400 * 24 * time.Hour

	// shortWindow is the longest window that has a trail: in longer ones an error of Coarse
	// matters little, unless only refusals state the limit.
	shortWindow = 5 * time.Second

	// Coarse is by how much a reset may be wrong, either way: servers state whole seconds.
	Coarse = time.Second
)

// A Key is by what a server tells its limits apart.
type Key struct {
	Name, Unit, Partition string        // as in headers.Limit
	Window                time.Duration // zero: not stated
}

// KeyOf is the Key of a limit that an answer states.
func KeyOf(l *headers.Limit) Key { return Key{l.Name, l.Unit, l.Partition, l.Window.Value} }

// Names reports whether k is the Key of l.
func (k *Key) Names(l *headers.Limit) bool {
	return k.Window == l.Window.Value && k.Unit == l.Unit && k.Name == l.Name && k.Partition == l.Partition
}

// Terms are settings. They do not change.
type Terms struct {
	MaxPause time.Duration // the longest wait that one answer may cause
	Pace     bool          // the units left are spread over the rest of the window
	Fleet    bool          // there is a Store
	Members  int           // processes in the fleet; zero: not known, and none has a share of its own
}

// A Limit is a limit as the server states it: what was left when it last said so, less what
// has been sent since. It follows the server's own count, so it does not assume that more is
// there than the server says. New makes one, which has heard nothing. Its owner guards it.
//
// Answers may overtake one another. Only an answer to a request that was sent
// after the last one was heard is certainly newer. Of the others the smallest number of
// units left is right, because within one window that number only falls.
type Limit struct {
	meter.Open
	ID      Key                 // as the server names it; does not change
	Source  string              // the header that stated it; does not change
	Sharing attribution.Sharing // which requests share it

	terms    *Terms
	waiters  interface{ Waited() bool } // reports whether requests wait; nil: none can
	window   time.Duration              // zero: not known
	size     headers.Opt[float64]       // units of the whole limit
	refill   float64                    // units per second that come back, as the server said; zero: it did not
	counted  bool                       // it is known, or guessed, how many units requests draw
	guessed  bool                       // it is guessed, see Count
	quiet    quiet                      // what is known if only refusals state it
	price    price
	trail    *trail // nil: its window is long, or not known
	belief   attribution.Belief
	counters *attribution.Counters // nil: nobody has waited yet
	ignored  bool                  // the belief is that it is not to be obeyed
	shared   shared

	presumed presumed // what is known of requests whose answers take long

	out    float64       // units under way, of requests that drew on it
	early  float64       // units under way of requests that started before it was known
	passed int           // how many requests these are
	left   float64       // units left when the requests were served whose answers have come
	basis  meter.Instant // when left was learned

	sentSince int64         // units sent since statedAt; see since
	statedAt  meter.Instant // what basis was at the last start

	reset headers.Opt[meter.Instant]
	means headers.ResetMeans
	agree int           // how many later answers confirmed the reset
	named meter.Instant // when it was first named
	moved bool          // a reset was named that is later than one which had not come, and no reset was confirmed since

	windows  int               // how many windows have ended
	trickles bool              // the server stated how fast units come back
	judge    refill.Judge      // the way in which its units come back
	filling  refill.Filling    // whether resets are when it is full, if the server does not say what they mean
	fresh    cooldown.Question // open: the reset has passed, and it is not known what there is
	spare    float64           // units that may be spent until that is known
	sooner   uint8             // by how many halves MaxPause is shorter for q; see servedEarly
	slack    time.Duration     // by how much resets have proved too early
	rolled   meter.Instant     // when the last window was taken to end; zero: none has ended
	lastSent meter.Instant     // when a request last started
	heard    meter.Instant     // when an answer last stated it; zero: none has
}

// New returns a limit of which nothing is known but its name.
func New(id Key, source string, t *Terms) Limit {
	return Limit{ID: id, Source: source, terms: t, window: id.Window}
}

// Count says what requests have to do with q. If counted, they draw units of it; otherwise
// they only wait until its reset when nothing is left. If guessed, what they draw is a guess
// ([Limit.Usual]), because of which no request may be refused. waiters reports whether requests
// wait for q; nil: none can.
func (q *Limit) Count(counted, guessed bool, waiters interface{ Waited() bool }) {
	q.counted, q.guessed, q.waiters = counted, guessed, waiters
	if !counted {
		q.out, q.presumed = 0, presumed{trip: q.presumed.trip, before: q.presumed.before, passed: q.presumed.passed} // from now on Answered and Return do not lower it
	}
}

// exact reports that it is known, and not guessed, what requests draw.
func (q *Limit) exact() bool { return q.counted && !q.guessed }

func (q *Limit) waited() bool { return q.waiters != nil && q.waiters.Waited() }

// flying is the number of units under way that may be missing from left.
func (q *Limit) flying() float64 {
	if q.shared.tally == nil {
		return q.out + q.early
	}
	return max(q.out+q.early, q.shared.elsewhere())
}

// sizeOr is how many units there are in all, if that is known.
func (q *Limit) sizeOr(otherwise float64) float64 {
	if q.size.Known {
		return q.size.Value
	}
	return otherwise
}

// since is the number of units that were certainly sent after left was learned.
func (q *Limit) since() int64 {
	if q.statedAt != q.basis {
		return 0
	}
	return q.sentSince
}

// level is what may be spent now.
func (q *Limit) level(now meter.Instant) float64 {
	if left, ok := q.unspent(now); ok {
		return left
	}
	return q.computed(now) - q.flying()
}

// there is level together with what is under way.
func (q *Limit) there(now meter.Instant) float64 {
	if left, ok := q.unspent(now); ok {
		return left + q.flying()
	}
	return q.computed(now)
}

// computed is there, if the trail does not say it.
func (q *Limit) computed(now meter.Instant) float64 {
	left := q.left
	if q.flows() {
		left += q.gain(now)
		if q.size.Known {
			most := max(1, q.size.Value, q.left) // less than a unit gathers until it is one
			left = min(left, most+q.shared.elsewhere())
		}
	}
	return left
}

// supported reports that enough answers agree on the reset to wait for it, up to
// cooldown.MostBelieved.
func (q *Limit) supported(now meter.Instant) bool {
	return q.agree >= agreed && q.reset.Value.Sub(now) <= cooldown.MostBelieved
}

// until is when the reset is waited for no longer.
func (q *Limit) until() meter.Instant {
	if most := q.basis.Add(q.most()); q.reset.Value > most && !q.supported(q.basis) {
		return most
	}
	return q.reset.Value
}

// most is the longest wait for a reset that is not supported.
func (q *Limit) most() time.Duration {
	return max(min(time.Second, q.terms.MaxPause), q.terms.MaxPause>>q.sooner)
}

// servedEarly learns from the answer to a request that was sent at sent and asked what there is.
// If it asked because the reset was too far away, and is served, the server contradicts itself,
// and is asked after half of the time from then on. A refusal takes back one of these steps.
func (q *Limit) servedEarly(sent meter.Instant, refused bool) {
	switch {
	case refused:
		q.sooner -= min(q.sooner, 1)
	case !q.reset.Known && q.reset.Value.Sub(max(q.rolled, sent)) > 2*Coarse:
		q.sooner = min(q.sooner+1, 16) // a second of 18 hours
	}
}

// roll brings q up to date: after its reset a new window begins. Then one request at a time
// asks how much there is, and others may spend what was left of the last window.
func (q *Limit) roll(now meter.Instant) {
	if !q.ample(now, 0) {
		q.presume(now)
	}
	if q.weighted() && q.flows() && now.Sub(q.basis) >= q.judge.Span() { // the judge does not know what came back before
		q.left, q.basis = q.level(now)+q.flying(), now
	}
	if !q.reset.Known {
		if now.Sub(q.basis) > attribution.StaleAfter {
			q.left, q.basis = q.sizeOr(plentiful), now
		}
		return
	}
	if back := q.until(); now >= back {
		if _, ok := q.unspent(now); ok && q.quiet.is {
			q.rolled, q.reset.Known, q.agree = back, false, 0 // nobody can be asked what there is, and the trail says it
			return
		}
		if q.slid(now) {
			return
		}
		if q.rolls(q.rolled, back); q.slid(now) { // this reset showed that the server counts in a log
			return
		}
		if q.flows() {
			q.left = q.level(back) + q.flying() // units that came back until then stay
		}
		q.rolled, q.basis = back, back
		q.reset.Known, q.agree = false, 0
		q.ask(true)
	}
}

// ask makes q let one request through, whose answer says what there is, and others for which
// the last window still had room. passed says that a reset has passed; otherwise the request
// asks because none is known.
func (q *Limit) ask(passed bool) {
	if q.flows() {
		return // it goes on by its rate
	}
	q.opens()
	q.fresh.Open()
	q.presumed.opens()
	q.quiet.asks(passed)
	unused := max(0, q.left-q.flying())
	q.left = q.sizeOr(plentiful)
	q.windows++
	// What was left of the last window is there even if the stated reset was too early.
	if q.spare = unused; q.terms.Pace || q.shared.tally != nil || q.testing() {
		q.spare = 0
	}
}

// testing reports whether this window is spent slowly, to find out whether q is a bucket.
// If all units are spent at once, a window and a bucket look the same: empty, and full again
// after a short time. If they are spent slowly, a bucket gives some back meanwhile.
// Only the second and third window are tested, as this costs a little time. Limits of less
// than four units are not, as too few requests would be compared.
func (q *Limit) testing() bool {
	return q.shared.tally == nil && q.windows > 0 && q.windows <= 2 && !q.judge.Sure() && !q.flows() && q.means != headers.Boundary &&
		q.window > 0 && q.window <= shortWindow && q.sizeOr(0) >= 4
}

// guess is how long to wait for a limit that is spent and whose reset is not known.
func (q *Limit) guess() time.Duration {
	most := min(cooldown.MostGuess, q.terms.MaxPause)
	switch r := q.rate(); {
	case r > 0 && !q.quiet.is: // else it may give back all at once, and will not say so
		return time.Duration(min(most.Seconds(), 1/r) * float64(time.Second))
	case q.window > 0:
		return min(most, q.window)
	}
	return min(most, time.Second)
}
