package throttle

import (
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

const (
	askStep  = 10 * time.Millisecond // see solo.at: longer than timers are late, and no time to who waits for a pause
	askSteps = 10                    // at most: a tenth of a second is not felt, and by then others have asked
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
	attribution.Request
	endpoint *endpoint
	cooldown cooldown.Cooldown // its own
	alone    bool              // its last refusal was its own
	order    uint64            // its rank among those that wait, once it has refusals of its own; zero: that of its arrival
	account  queue.Account
	unit     string // what the server said that it needs; "": it did not
	needs    int64  // how many of them
}

func newSolo(k *endpoint) *solo {
	o := &solo{endpoint: k}
	o.account = queue.Account{Meter: o, Label: k.learner.terms.words.alone}
	return o
}

// again learns from one more refusal. It reports whether that is the request's
// own.
func (o *solo) again(now instant, g *ticket, s headers.Signal) (own bool) {
	k, l := g.endpoint, g.endpoint.learner
	w := l.evidenceOf(k)
	own, untaught := w.fates.Refused(now, &o.Request, w.blank(), s.Kind == headers.Concurrency)
	o.endpoint, o.alone = k, own
	if !own {
		return false
	}
	if untaught {
		l.restart(k)
	}
	said, _, _ := l.hintOf(now, k, s)
	most := l.terms.MaxPause
	guess := cooldown.Guess(cooldown.FirstGuess, most, o.cooldown.InVain(g.sent))
	o.cooldown.Refused(now, cooldown.Refusal{Sent: g.sent, Hint: said, Guess: guess, Most: most, Spread: l.terms.jitter()})
	until := o.cooldown.Until()
	m := l.home()
	m.alone = max(m.alone, until)
	o.account.Rest(until, o.cooldown.Sure(), pauseWords(now, l.terms.zero, o.cooldown.State())+", for this request alone: others are served")
	return true
}

// lift ends o's pause if it began before Resume was called.
func (o *solo) lift(now instant) {
	if o != nil && o.cooldown.State().Since != 0 && o.cooldown.State().Since <= o.endpoint.learner.home().resumed {
		o.cooldown.Lift()
		o.account.Rest(now, now, "")
	}
}

// lift ends every pause that was learned of requests of s for all, and sees to it that
// those of one request end: there may be as many as wait, so Redraw asks them. Then
// those that wait are to be planned anew.
func (s *scope) lift(e *queue.Domain, now instant) {
	s.learned.lift(e, now)
	if m := s.learned; m != nil && m.alone > now {
		m.resumed, m.alone = now, 0
		e.Redraw(now, &s.Group)
	}
}

// at is when the request may go as far as it alone is concerned: when a pause for
// all is over, those that were refused less often may ask first.
func (o *solo) At(now instant, _ int64) instant {
	t := now
	for _, c := range [...]*cooldown.Cooldown{o.endpoint.learner.cooldown, o.endpoint.cooldown} {
		if opens := c.Opens(); opens != 0 {
			t = max(t, opens.Add(time.Duration(min(o.Refusals(), askSteps))*askStep))
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
