package throttle

import (
	"hash/maphash"
	"math"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

const (
	plentiful   = math.MaxInt32    // what is left when nobody knows
	forgetAt    = 10 * time.Minute // a quota not mentioned for that long (and two windows) is dropped
	mostWindow  = 400 * 24 * time.Hour
	shortWindow = 5 * time.Second // resets of these say little, rounded as they are
	coarse      = time.Second     // resets are rounded to seconds, up or down
)

// learnTerms are the settings that learning depends on.
type learnTerms struct {
	maxPause   time.Duration
	pace       bool
	pausesOnly bool      // nothing is learned but pauses
	fleet      bool      // there is a Store
	members    int       // of the fleet, of which each has a share; zero: none has
	zero       time.Time // what our zero time is on the wall, for words
	seed       maphash.Seed
	words      *learnWords
	jitter     func() float64 // uniform in [0,1)
	before     *before        // of one caller, who has terms of his own then: what is known from another run; nil: nothing
}

// learnWords are terms that all hosts share.
type learnWords struct{ server, host, kind, alone, asker *queue.Label }

func newLearnWords() *learnWords {
	return &learnWords{
		server: &queue.Label{Text: "what the server bears", ToHeaders: true, Says: true},
		host:   &queue.Label{Text: "requests at a time to a host not well known", ToHeaders: true},
		kind:   &queue.Label{Text: "requests of one kind at a time", ToHeaders: true},
		alone:  &queue.Label{Text: "refusals of this request alone", ToHeaders: true},
		asker:  &queue.Label{Text: "one request that asks", ToHeaders: true},
	}
}

// forever is a wait whose end is not an instant: it ends with an answer.
const forever = time.Duration(math.MaxInt64)

// quotaKey tells the limits of one credential at one host apart.
type quotaKey struct {
	name, unit, partition string
	window                time.Duration
}

// A quota is one limit as the server stated it: what remained when it last
// said so, less what has been sent since. It follows the server's own count,
// so that it promises no more than the server does. Whoever owns it holds the lock.
//
// Answers may overtake one another. Only an answer to a request that was sent
// after the last one was received is surely newer; of the others the smallest
// remaining is right, because within one window remaining only falls.
type quota struct {
	meter.Open
	id      quotaKey // as the server names it
	key     quotaKey // the same, with what was learned about its window
	source  string   // the header it came from
	size    headers.Opt[float64]
	refill  float64 // units per second; zero: unknown
	terms   *learnTerms
	account *queue.Account
	scope   *scope
	kinds   []*kind // the kinds of request that it binds
	counted bool    // our requests' costs in its unit are known
	trail   *trail  // nil: its window is long, or not known
	belief  attribution.Belief
	ignored bool // nothing speaks for its word: it binds nobody
	sharing attribution.Sharing
	spent   bool // the last answer left nothing
	shared  shared

	out   float64 // units under way, of requests that drew on it
	early float64 // units under way of requests that started before it was known
	left  float64 // units left when the answers received so far were given
	basis instant // when left was learned

	sentSince int64   // units sent since statedAt; see since
	statedAt  instant // basis at the last start

	reset headers.Opt[instant]
	means headers.ResetMeans
	agree int // answers that named the same reset

	windows  int          // that ended since it was heard of
	trickles bool         // the server stated how fast it refills
	judge    refill.Judge // whether it is a window, a bucket or a log
	asking   bool         // the reset has passed; one request asks what there is now
	asked    bool
	slack    time.Duration // by how much resets have proved too early
	rolled   instant       // when the last window was taken to end
	lastSent instant       // the last start, for Pace
	heard    instant
}

// flying is the number of units under way that may be missing from left.
func (q *quota) flying() float64 { return max(q.out+q.early, q.shared.elsewhere()) }

// since is the number of units that were surely sent after left was learned.
func (q *quota) since() int64 {
	if q.statedAt != q.basis {
		return 0
	}
	return q.sentSince
}

// level is what may be spent now.
func (q *quota) level(now instant) float64 {
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
func (q *quota) rate() float64 {
	switch {
	case q.refill > 0:
		return q.refill
	case q.size.Known && q.key.window > 0:
		return q.size.Value / q.key.window.Seconds()
	}
	return 0
}

// flows reports that it comes back all the time, at a rate that is known.
func (q *quota) flows() bool {
	return (q.trickles || q.judge.Kind() == refill.Bucket && q.means != headers.Boundary) && q.rate() > 0
}

// supported reports that the reset was said often enough to be waited for,
// however far it is.
func (q *quota) supported(now instant) bool {
	return q.agree >= 2 && q.reset.Value.Sub(now) <= cooldown.MostBelieved
}

// until is when the reset is waited for no longer.
func (q *quota) until() instant {
	if most := q.basis.Add(q.terms.maxPause); q.reset.Value > most && !q.supported(q.basis) {
		return most
	}
	return q.reset.Value
}

// roll brings q to now: past its reset there is a new window, of which only
// one request at a time knows how much it holds.
func (q *quota) roll(now instant) {
	if !q.reset.Known {
		if now.Sub(q.basis) > attribution.StaleAfter {
			q.left, q.basis = q.sizeOr(plentiful), now
		}
		return
	}
	if back := q.until(); now >= back {
		if d := q.trail.wait(now, q.sizeOr(0), 1, q.early, q.key.window); q.judge.Kind() == refill.Log && d > 0 && d < forever {
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

// ask makes q let one request through, whose answer tells what there is.
func (q *quota) ask() {
	if q.flows() {
		return // it goes on by its rate
	}
	q.shared.opens(q.left)
	q.asking, q.left = true, q.sizeOr(plentiful)
	q.windows++
}

// testing reports whether this window is spent slowly, to find out whether it is one.
// What is spent at once tells nothing: both a window and a bucket are empty then, and
// full again after a short reset. A bucket gives units back while it is spent slowly.
// Only the second and third window are tested, as it costs a little time.
func (q *quota) testing() bool {
	return q.shared.tally == nil && q.windows > 0 && q.windows <= 2 && !q.judge.Sure() && !q.flows() && q.means != headers.Boundary &&
		q.key.window > 0 && q.key.window <= shortWindow && q.sizeOr(0) >= 4
}

// wait is how long cost units have to wait; forever: until an answer comes.
func (q *quota) wait(now instant, cost float64) time.Duration {
	q.roll(now)
	if q.asking {
		if q.asked && q.trailed(now, cost) > 0 {
			return forever
		}
		return 0
	}
	if !q.counted {
		if q.left <= 0 && q.reset.Known {
			return q.until().Sub(now)
		}
		return 0
	}
	if q.size.Known {
		cost = min(cost, max(1, q.size.Value)) // a request that costs more than the limit goes when all of it is left
	}
	q.learns(now)
	lack := cost - q.room(q.level(now))
	if lack > 1e-9 && q.shared.tally != nil {
		q.shared.lacks(now.Time())
	}
	switch {
	case q.blind() && q.out+q.early > 0:
		return forever
	case lack <= 1e-9 && q.terms.pace:
		return q.paced(now, cost)
	case lack <= 1e-9 && q.testing():
		return q.sparing(now)
	case lack <= 1e-9 && q.shared.tally == nil && q.flows():
		return q.dripping(now, cost)
	case lack <= 1e-9 && q.shared.tally == nil:
		return 0
	case lack <= 1e-9:
		return q.turn(now.Time(), cost, cost-lack)
	case q.flows():
		d := time.Duration(min(lack/q.rate(), 1e6) * float64(time.Second))
		if most := q.basis.Add(q.terms.maxPause).Sub(now); d <= q.terms.maxPause || d <= most {
			return max(time.Millisecond, d)
		} else if most <= 0 && q.out+q.early > 0 {
			return forever
		} else {
			return max(0, most)
		}
	case q.left >= cost && q.sharing.Unsure() && q.out+q.early > 0:
		return forever // perhaps what is under way draws on others
	case q.reset.Known:
		return q.watch(now, min(q.until().Sub(now), q.trailed(now, cost)))
	case q.out+q.early > 0:
		return forever
	}
	if d := q.basis.Add(q.guess()).Sub(now); d > 0 {
		return d
	}
	q.basis = now
	q.ask()
	return 0
}

// guess is how long to wait for a quota that is spent and does not say when
// it comes back.
func (q *quota) guess() time.Duration {
	most := min(cooldown.MostGuess, q.terms.maxPause)
	switch r := q.rate(); {
	case r > 0:
		return time.Duration(min(most.Seconds(), 1/r) * float64(time.Second))
	case q.key.window > 0:
		return min(most, q.key.window)
	}
	return min(most, time.Second)
}

// paced spreads what is left evenly over the rest of the window. A window that
// was not said often makes no longer gaps than a pause may be.
func (q *quota) paced(now instant, cost float64) time.Duration {
	if q.lastSent == 0 {
		return 0
	}
	gap := 0.0
	switch level := q.level(now); {
	case q.flows():
		gap = 1 / q.rate()
	case q.reset.Known && level > 0:
		gap = q.reset.Value.Sub(now).Seconds() / level
	case q.rate() > 0:
		gap = 1 / q.rate()
	}
	most := q.terms.maxPause
	if q.agree >= 2 {
		most = max(most, cooldown.MostBelieved)
	}
	gap = min(gap*cost, most.Seconds())
	return max(0, q.lastSent.Add(time.Duration(gap*float64(time.Second))).Sub(now))
}

// ended notes that a request of q was answered without a word about it. good
// tells that the answer was none of a refusal.
func (q *quota) ended(asked, good bool, cost float64) {
	if asked && good {
		q.asking = false
	}
	if good && q.counted {
		q.left -= cost
		q.judge.Spent(cost)
		q.shared.took(cost)
	}
}
