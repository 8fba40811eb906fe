package throttle

import (
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/queue"
)

const (
	askStep  = 10 * time.Millisecond // see solo.at: longer than timers are late, and no time to who waits for a pause
	askSteps = 10                    // at most: a tenth of a second is not felt, and by then others have asked
)

const othersAsk = "others may ask first whether the pause is over"

// A solo is what is known of one request that was refused, from its first
// refusal to its end, or of all requests to one URL. It is the meter of an account on
// which only those draw.
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
	pauser // of refusals of its own
	attribution.Request
	endpoint *endpoint
	alone    bool   // its last refusal was its own
	order    uint64 // its rank among those that wait, once it has refusals of its own; zero: that of its arrival
	unit     string // what the server said that it needs; "": it did not
	needs    int64  // how many of them
}

func newSolo(k *endpoint, label *queue.Label) *solo {
	o := &solo{endpoint: k}
	o.cooldown = new(cooldown.Cooldown)
	o.account = queue.Account{Meter: o, Label: label}
	return o
}

// refused learns from a refusal. It reports whether that is the request's own, or that of all
// requests to its URL.
func (g *ticket) refused(now instant, s *headers.Signal) (own bool) {
	if g.solo == nil {
		return false
	}
	k, l := g.endpoint, g.endpoint.learner
	g.solo.endpoint = k
	if g.object != nil {
		g.object.endpoint = k
	}
	said, _, _ := l.hintOf(now, k, s)
	o := g.follows(now, s)
	switch {
	case o != nil && o == g.object && !k.paths.several: // its URL is all of its kind
		if o = nil; k.group == nil {
			l.blame.part(l, now, []*endpoint{k})
		}
	case o != nil && o == g.object && !o.alone:
		l.changes = true // it binds those that wait
	}
	if o != nil {
		o.rest(now, g, said)
	}
	g.solo.alone = o != nil || g.blamed(now, s, said)
	return g.solo.alone
}

// follows is what a refusal follows, and not the rate: the URL, or else the request; nil: neither.
func (g *ticket) follows(now instant, s *headers.Signal) *solo {
	k, l := g.endpoint, g.endpoint.learner
	w := l.evidenceOf(k)
	r := attribution.Refused{Request: &g.solo.Request, Fresh: w.blank(), Others: s.Kind == headers.Concurrency}
	if g.object != nil && (k.paths.several || l.blame.isOn(k)) {
		r.Object = &g.object.Request
	}
	own, untaught := w.fates.Refused(now, r)
	if untaught {
		l.restart(k)
	}
	switch own {
	case nil:
		return nil
	case r.Object:
		return g.object
	}
	return g.solo
}

// blamed takes in a refusal that follows nobody. It reports whether it is taken for one of its URL
// alone.
func (g *ticket) blamed(now instant, s *headers.Signal, said cooldown.Hint) bool {
	k, l, o := g.endpoint, g.endpoint.learner, g.object
	alone, asks := k.paths.blames(now, g, s, said)
	if !alone {
		return false
	}
	l.evidenceOf(k).suspects(now, g.sent, said, l.terms.MaxPause, false, !o.cooldown.Ended())
	o.rest(now, g, said)
	if asks {
		k.paused().Doubt(now)
	}
	l.changes = true
	return true
}

// rest pauses o alone, for a refusal of its own.
func (o *solo) rest(now instant, g *ticket, said cooldown.Hint) {
	l := o.endpoint.learner
	o.alone = true
	most := l.terms.MaxPause
	guess := cooldown.Guess(cooldown.FirstGuess, most, o.cooldown.InVain(g.sent))
	o.cooldown.Refused(now, cooldown.Refusal{Sent: g.sent, Hint: said, Guess: guess, Most: most, Spread: l.terms.jitter()})
	o.pause(now)
}

// pause lets o rest as its cooldown says.
func (o *solo) pause(now instant) {
	l, until := o.endpoint.learner, o.cooldown.Until()
	m := l.home()
	m.alone = max(m.alone, until)
	o.account.Rest(until, o.cooldown.Sure(), o.cooldown.State().Words(now, l.terms.zero)+o.only())
}

// only says for whom o is, in words.
func (o *solo) only() string {
	if o.account.Label == o.endpoint.learner.terms.words.object {
		return ", for this URL only"
	}
	return ", for this request alone: others are served"
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
	t := o.pauser.At(now, 1)
	if b := o.endpoint.learner.blame; b != nil && !b.objects.several {
		return t // nobody else is there who could ask
	}
	o.endpoint.pauses(func(p *pauser) {
		if opens := p.cooldown.Opens(); opens != 0 {
			t = max(t, opens.Add(time.Duration(min(o.Refusals(), askSteps))*askStep))
		}
	})
	return t
}

func (o *solo) Words(now instant) string {
	if o.account.Paused > now {
		return o.account.Why()
	}
	return othersAsk
}

func (o *solo) ETA(now instant, _, _ int64) instant { return o.At(now, 1) }
