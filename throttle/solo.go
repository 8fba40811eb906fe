package throttle

import (
	"math"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

const (
	// chance is how likely refusals in a row may be by chance, from how often others
	// are refused, to be taken for the request's own. A larger one takes some of a
	// server that refuses a tenth at random for such, and starts others earlier than
	// that asked for; a smaller one holds up everybody once more for a few requests
	// that are refused together.
	chance = 1.0 / 5000
	memory = 512 // answers of which that is known

	askStep  = 10 * time.Millisecond // see solo.at: longer than timers are late, and no time to who waits for a pause
	askSteps = 10                    // at most
)

// A solo is what is known of one request that was refused, from its first
// refusal to its end. It is the meter of an account on which only that request
// draws.
//
// A refusal follows the request and not the rate when it is refused again though
// others of its account were served since: one for a locked object, or one that is
// too large. Such a refusal teaches nothing about others. The request alone waits
// as long as it was told, or a growing time, and repeats. What its first refusal
// taught is taken back if nothing else has taught the same.
//
// Those that were not refused ask first whether a pause is over. So if they are
// served, it is known when this one goes.
type solo struct {
	meter.Open
	kind    *kind
	refused int       // times in a row
	counted int       // of these, in the learner's fates
	heard   time.Time // the last of these
	taught  *teaching // that it had a part in; nil: none
	hold    hold      // its own
	alone   bool      // its last refusal was its own
	order   uint64    // its rank among those that wait, once it has refusals of its own; zero: that of its arrival
	account queue.Account
}

func newSolo(k *kind) *solo {
	o := &solo{kind: k}
	o.account = queue.Account{Meter: o, Label: k.learner.terms.words.alone}
	return o
}

// again learns from one more refusal. It reports whether that is the request's
// own.
func (o *solo) again(now time.Time, g *ticket, s headers.Signal) (own bool) {
	k, l := g.kind, g.kind.learner
	w := l.evidenceOf(k)
	f := &w.fates
	own = o.refused > 0 && f.sent.Time().After(o.heard) && s.Kind != headers.Concurrency &&
		math.Pow(f.share(o.counted), float64(o.refused+1)) < chance
	o.kind, o.heard, o.alone = k, now, own
	o.refused++
	if !own {
		f.refused++
		o.counted++
		f.teach(o, w)
		return false
	}
	if f.recant(o) {
		l.restart(k)
	}
	said, _, _ := l.hintOf(now, k, s)
	o.hold.refuse(now, g.sent, said, firstGuess, l.terms.maxPause, false, l.terms.jitter())
	at := instantOf(now)
	o.account.Rest(at.Add(o.hold.until.Sub(now)), at.Add(o.hold.sure.Sub(now)), o.hold.words(now, l.terms.zero)+", for this request alone: others are served")
	return true
}

// fates are how the last answers of an account came out, but for refusals of a
// request's own.
type fates struct {
	served, refused float64
	sent            instant   // when the latest request was sent that was served
	teaching        *teaching // nil: none
}

// A teaching is all refusals that evidence has known since it knew nothing. When
// all requests that had a part in it prove to have refusals of their own, it was
// none.
type teaching struct{ requests int }

// well notes that a request was served that was sent at sent.
func (f *fates) well(sent instant) {
	f.sent = max(f.sent, sent)
	if f.served++; f.served+f.refused > memory {
		f.served, f.refused = f.served/2, f.refused/2
	}
}

// share is that of refusals, but for those of one request, which had so many. It
// is zero where no other was refused, however few were served: a prior would hold up
// the others for a second pause, and for a third, beside a request that is refused
// among the first of all.
func (f *fates) share(its int) float64 {
	refused := max(0, f.refused-float64(its))
	return refused / max(1, f.served+refused)
}

// teach notes that o has a part in what w is about to learn.
func (f *fates) teach(o *solo, w *evidence) {
	if w.blank() {
		f.teaching = new(teaching)
	}
	if f.teaching != nil && o.taught != f.teaching {
		o.taught = f.teaching
		f.teaching.requests++
	}
}

// recant takes back o's part in what was learned. It reports whether nothing is
// left of that.
func (f *fates) recant(o *solo) bool {
	if o.taught == nil || o.taught != f.teaching {
		return false
	}
	o.taught = nil
	f.teaching.requests--
	return f.teaching.requests == 0
}

// lift ends o's pause.
func (o *solo) lift(now instant) {
	if o != nil {
		o.hold.lift()
		o.account.Rest(now, now, "")
	}
}

// lift ends every pause that was learned of requests of s, for all or for one.
// Then those that wait are to be planned anew.
func (s *scope) lift(e *queue.Domain, now instant) {
	s.learned.lift(e, now)
	s.asks(func(q *ask) { q.solo.lift(now) })
}

// at is when the request may go as far as it alone is concerned: when a pause for
// all is over, those that were refused less often may ask first.
func (o *solo) At(now instant, _ int64) instant {
	t := now
	for _, h := range [...]*hold{o.kind.learner.hold, o.kind.hold} {
		if h != nil && h.asking && !h.asked {
			t = max(t, instantOf(h.until).Add(time.Duration(min(o.refused, askSteps))*askStep))
		}
	}
	return t
}

func (o *solo) Words(now instant) string {
	if o.account.Paused > now {
		return o.account.Why()
	}
	return "others may ask first whether the pause is over"
}

func (o *solo) ETA(now instant, _, _ int64) instant { return o.At(now, 1) }
