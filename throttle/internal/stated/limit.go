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
	plentiful = math.MaxInt32 // what is left when nobody knows

	// MostWindow bounds what is believed of a window: a year, and a month to be late.
	MostWindow = 400 * 24 * time.Hour

	shortWindow = 5 * time.Second // resets of these say little, rounded as they are

	// Coarse is how much resets are rounded by, up or down: servers tell whole seconds.
	Coarse = time.Second
)

// A Key is what a server calls a limit.
type Key struct {
	Name, Unit, Partition string
	Window                time.Duration // zero: not said
}

// KeyOf is the Key of a limit that an answer states.
func KeyOf(l *headers.Limit) Key { return Key{l.Name, l.Unit, l.Partition, l.Window.Value} }

// Names reports whether l is what k calls.
func (k *Key) Names(l *headers.Limit) bool {
	return k.Window == l.Window.Value && k.Unit == l.Unit && k.Name == l.Name && k.Partition == l.Partition
}

// Terms are settings. They do not change.
type Terms struct {
	MaxPause time.Duration // the longest wait that one answer is believed about
	Pace     bool          // what is left is spread over the rest of its window
	Fleet    bool          // there is a Store
	Members  int           // of the fleet, of which each has a share; zero: none has
}

// A Limit is one as the server stated it: what remained when it last said so, less what
// has been sent since. It follows the server's own count, so that it promises no more
// than the server does. New makes one, which has heard nothing. Its owner guards it.
//
// Answers may overtake one another. Only an answer to a request that was sent
// after the last one was received is surely newer; of the others the smallest
// remaining is right, because within one window remaining only falls.
type Limit struct {
	meter.Open
	ID      Key    // as the server names it; does not change
	Source  string // the header it came from; does not change
	Sharing attribution.Sharing

	terms   *Terms
	waiters interface{ Waited() bool } // nil: nobody can wait
	window  time.Duration              // as far as it is known
	size    headers.Opt[float64]
	refill  float64 // units per second; zero: unknown
	counted bool    // our requests' costs in its unit are known
	guessed bool    // they are guessed, see Count
	price   price
	trail   *trail // nil: its window is long, or not known
	belief  attribution.Belief
	ignored bool // nothing speaks for its word: it binds nobody
	shared  shared

	out    float64       // units under way, of requests that drew on it
	early  float64       // units under way of requests that started before it was known
	passed int           // how many those are
	left   float64       // units left when the answers received so far were given
	basis  meter.Instant // when left was learned

	sentSince int64         // units sent since statedAt; see since
	statedAt  meter.Instant // basis at the last start

	reset headers.Opt[meter.Instant]
	means headers.ResetMeans
	agree int // answers that named the same reset

	windows  int               // that ended since it was heard of
	trickles bool              // the server stated how fast it refills
	judge    refill.Judge      // whether it is a window, a bucket or a log
	fresh    cooldown.Question // what there is, as the reset has passed
	spare    float64           // units that may be spent until that is known
	slack    time.Duration     // by how much resets have proved too early
	rolled   meter.Instant     // when the last window was taken to end
	lastSent meter.Instant     // the last start
	heard    meter.Instant
}

// New returns a limit that nothing is known of but its name.
func New(id Key, source string, t *Terms) Limit {
	return Limit{ID: id, Source: source, terms: t, window: id.Window}
}

// Count says whether requests draw units of q, or only wait for its pauses; whether what
// they draw is a guess, [Limit.Usual], and so no fact to refuse anybody by; and who waits
// for it.
func (q *Limit) Count(counted, guessed bool, waiters interface{ Waited() bool }) {
	q.counted, q.guessed, q.waiters = counted, guessed, waiters
	if !counted {
		q.out = 0 // from now on nobody tells when those come back
	}
}

// exact reports that it is known what requests draw.
func (q *Limit) exact() bool { return q.counted && !q.guessed }

func (q *Limit) waited() bool { return q.waiters != nil && q.waiters.Waited() }

// flying is the number of units under way that may be missing from left.
func (q *Limit) flying() float64 {
	if q.shared.tally == nil {
		return q.out + q.early
	}
	return max(q.out+q.early, q.shared.elsewhere())
}

// since is the number of units that were surely sent after left was learned.
func (q *Limit) since() int64 {
	if q.statedAt != q.basis {
		return 0
	}
	return q.sentSince
}

// level is what may be spent now.
func (q *Limit) level(now meter.Instant) float64 {
	left := q.left
	away := q.flying()
	if q.flows() {
		left += q.rate() * now.Sub(q.basis).Seconds()
		if q.size.Known {
			most := max(1, q.size.Value, q.left) // less than a unit gathers until it is one
			left = min(left, most+q.shared.elsewhere())
		}
	}
	return left - away
}

// rate is how fast it refills, in units per second; zero: unknown.
func (q *Limit) rate() float64 {
	switch {
	case q.refill > 0:
		return q.refill
	case q.size.Known && q.window > 0:
		return q.size.Value / q.window.Seconds()
	}
	return 0
}

// flows reports that it comes back all the time, at a rate that is known.
func (q *Limit) flows() bool {
	return (q.trickles || q.judge.Kind() == refill.Bucket && q.means != headers.Boundary) && q.rate() > 0
}

// supported reports that the reset was said often enough to be waited for,
// however far it is.
func (q *Limit) supported(now meter.Instant) bool {
	return q.agree >= agreed && q.reset.Value.Sub(now) <= cooldown.MostBelieved
}

// until is when the reset is waited for no longer.
func (q *Limit) until() meter.Instant {
	if most := q.basis.Add(q.terms.MaxPause); q.reset.Value > most && !q.supported(q.basis) {
		return most
	}
	return q.reset.Value
}

// roll brings q to now: past its reset there is a new window. One request at a time
// asks how much it holds, and others go as far as the last one had something left.
func (q *Limit) roll(now meter.Instant) {
	if !q.reset.Known {
		if now.Sub(q.basis) > attribution.StaleAfter {
			q.left, q.basis = q.sizeOr(plentiful), now
		}
		return
	}
	if back := q.until(); now >= back {
		if d := q.trail.wait(now, q.sizeOr(0), 1, q.early, q.window); q.judge.Kind() == refill.Log && d > 0 && d < meter.Unknown {
			q.reset.Value = now.Add(d) // it was that of units that have left since
			return
		}
		if q.slid(now) {
			return
		}
		if q.flows() {
			q.left = q.level(back) + q.flying() // what flowed in stays
		}
		q.rolls(q.rolled, back)
		q.rolled, q.basis = back, back
		q.reset.Known, q.agree = false, 0
		q.ask()
	}
}

// ask makes q let one request through, whose answer tells what there is, and as many
// beside it as there was room for until now.
func (q *Limit) ask() {
	if q.flows() {
		return // it goes on by its rate
	}
	q.opens()
	q.fresh.Open()
	unused := max(0, q.left-q.flying())
	q.left = q.sizeOr(plentiful)
	q.windows++
	// What the last window had left is there even if the reset was told too early.
	if q.spare = unused; q.terms.Pace || q.shared.tally != nil || q.testing() {
		q.spare = 0
	}
}

// testing reports whether this window is spent slowly, to find out whether it is one.
// What is spent at once tells nothing: both a window and a bucket are empty then, and
// full again after a short reset. A bucket gives units back while it is spent slowly.
// Only the second and third window are tested, as it costs a little time.
func (q *Limit) testing() bool {
	return q.shared.tally == nil && q.windows > 0 && q.windows <= 2 && !q.judge.Sure() && !q.flows() && q.means != headers.Boundary &&
		q.window > 0 && q.window <= shortWindow && q.sizeOr(0) >= 4
}

// guess is how long to wait for a quota that is spent and does not say when
// it comes back.
func (q *Limit) guess() time.Duration {
	most := min(cooldown.MostGuess, q.terms.MaxPause)
	switch r := q.rate(); {
	case r > 0:
		return time.Duration(min(most.Seconds(), 1/r) * float64(time.Second))
	case q.window > 0:
		return min(most, q.window)
	}
	return min(most, time.Second)
}

// Unmentioned notes that a request of q was answered without a word about it. good
// tells that the answer was none of a refusal.
func (q *Limit) Unmentioned(asked, good bool, cost float64) {
	if asked && good {
		q.fresh.Close()
	}
	if good && q.exact() {
		q.left -= cost
		q.judge.Spent(cost)
		q.shared.took(cost)
	}
}
