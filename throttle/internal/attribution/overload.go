package attribution

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	shareKept = 15.0 / 16 // how much of Overload.share each answer keeps: it is about that of the last 16

	manyAnswers = 1000 // the largest count: no rule here asks for more, and an int32 holds it

	// Some limiters refuse with a 503 that says no more (nginx's limit_req does by
	// default). So such answers are not taken to mean that the host is down if it served
	// a request within briefly, and if fewer than spared bursts of them came since. On 900
	// servers of bench/sim's population (train), 33 of the 58 that refuse so lose calls
	// with it, and 49 without it. With a spared of 6 it would be 25, but of the calls to a
	// host that is down more than a hundredth would be sent.
	// If the host leans to a limiter, it is leaning bursts.
	briefly = time.Second
	spared  = 2
	leaning = 6
)

// An Overload finds out why a host says that it is overloaded: it is, or it is down, or
// it fails at random, or it limits us and does not say so. An answer that says so is called
// busy; a 503 without Retry-After or limits is called bare. The zero Overload has heard
// nothing.
type Overload struct {
	share   float64       // the part of the last answers that were busy
	streak  int32         // busy answers since served; at most manyAnswers
	vain    int32         // bare answers since served, one for each burst; at most manyAnswers
	served  meter.Instant // the last good answer; zero: none
	burst   meter.Instant // when the last bare answer was heard that vain counts
	suspect *suspect      // nil: never suspected
	run     *run          // nil: there was no bare answer
}

// A Reply is what an Overload has to know of an answer. The zero Reply is a good one.
type Reply struct {
	Busy  bool // it said that the host is overloaded, and not when to come back
	Bare  bool // it was a 503 without Retry-After or limits
	Load  Load // how many were under way when the request was sent
	Good  int  // good answers so far; it matters for the first one that is busy
	Told  bool // it was a refusal that said why, or for how long: that speaks neither for chance nor against it
	Probe bool // the request was a circuit's probe: its time and load are no evidence
}

// A Verdict is what an answer has made certain.
type Verdict uint8

const (
	Open      Verdict = iota // nothing new
	Chance                   // the host fails at random, however many are under way
	NoLimiter                // the host has no limit, or not the one that it was suspected of
)

// Heard learns from the answer to a request sent at sent. Then Served or Overloaded is called
// for the same answer, if it was good or busy.
func (o *Overload) Heard(now, sent meter.Instant, r Reply) Verdict {
	if r.Bare {
		o.runOf().heard(sent)
		if sent > o.burst {
			o.vain, o.burst = min(o.vain+1, manyAnswers), now
		}
	}
	o.share *= shareKept
	if r.Busy && o.suspect == nil {
		o.suspect = new(suspect)
	}
	if o.suspect != nil && !r.Probe && !r.Told {
		return o.suspect.tossed(now, sent, r, o.run.proved(now))
	}
	return Open
}

func (o *Overload) runOf() *run {
	if o.run == nil {
		o.run = new(run)
	}
	return o.run
}

// Served notes that the answer to a request sent at sent was good. back says that it is the
// first one after Limited was true, so that the host proved to be a limiter, or was down and
// is back.
func (o *Overload) Served(now, sent meter.Instant) (back bool) {
	o.served, o.streak, o.vain = now, 0, 0
	return o.run != nil && o.run.served(sent)
}

// ServedWithin reports whether there was a good answer in the last d.
func (o *Overload) ServedWithin(now meter.Instant, d time.Duration) bool {
	return o.served != 0 && time.Duration(now-o.served) < d
}

// Overloaded notes that the answer was busy. plain says that it said no more than that, and
// that the user's function did not call it a refusal. Overloaded reports whether it is known
// to be chance, and so says nothing about how much may be sent.
func (o *Overload) Overloaded(now meter.Instant, plain bool) (chance bool) {
	o.share += 1 - shareKept
	o.streak = min(o.streak+1, manyAnswers)
	return plain && o.suspect.random(now)
}

// seldom is below which part of the last answers busy ones do not lower what is sent. To
// repeat their requests serves these, and costs the host less than an eighth more.
const seldom = 1.0 / 8

// Seldom reports, after Overloaded, that the host serves nearly all requests.
func (o *Overload) Seldom() bool { return o.share < seldom }

// Limits reports whether the host probably limits us, and busy answers are not an outage.
func (o *Overload) Limits(now meter.Instant) bool { return o.suspect.suspected() && o.serves(now) }

// Suspected reports whether the host is taken for a limiter, but not proved to be one.
func (o *Overload) Suspected() bool { return o.suspect.suspected() }

// Quiet reports whether the host never said that it is overloaded.
func (o *Overload) Quiet() bool { return o.suspect == nil }

// Limited reports whether a bare answer that is heard now almost certainly is a limiter's. It
// is called before Heard.
func (o *Overload) Limited(now meter.Instant, p Past) bool {
	if o.served == 0 || o.suspect != nil && now < o.suspect.not {
		return false
	}
	return o.runOf().limits(now, p)
}

// Doubtful reports, after Limited, whether the host has accepted nothing since it first
// refused: it may be down after all.
func (o *Overload) Doubtful() bool { return o.run != nil && o.run.longest == 0 }

// Refusing is when the first request was sent that Doubtful speaks of. It is called only if
// that is true.
func (o *Overload) Refusing() meter.Instant { return o.run.first }

// Plausible reports whether a bare answer may be chance, as in [Coin.Plausible].
func (o *Overload) Plausible() bool { return o.suspect != nil && o.suspect.coin.Plausible() }

// Spares reports whether a bare answer may be a limiter's, by the rule of briefly and spared, or
// because the host limits us, probably or as likely as not.
func (o *Overload) Spares(now meter.Instant) bool {
	return o.Limits(now) || o.ServedWithin(now, briefly) && (o.vain < spared || o.vain < leaning && o.suspect.leans()) && (o.suspect == nil || now >= o.suspect.not)
}

// serves reports whether there was a good answer lately, so that this is no outage: within a
// second, or within five if since then fewer than five answers were busy, because few requests
// were sent.
func (o *Overload) serves(now meter.Instant) bool {
	return o.ServedWithin(now, time.Second) || o.ServedWithin(now, 5*time.Second) && o.streak < 5
}

// A suspect is a host that has said that it is overloaded. If its busy answers are likely
// chance, they do not show how many requests may be under way; if that is sure, the host has no
// limit at all. It is taken for a limiter from when that explains its answers far better than
// anything else does until chance or outages explain them better.
type suspect struct {
	coin   Coin
	limits bool          // it is taken for a limiter
	not    meter.Instant // until then it is known to be no limiter
	chance meter.Instant // until then it is known to refuse by chance
}

// random reports whether busy answers are known to be chance.
func (s *suspect) random(now meter.Instant) bool { return s != nil && now < s.chance }

// leans reports whether the host serves again after it refused, and a limit explains that best.
func (s *suspect) leans() bool { return s != nil && s.coin.all.good > 0 && s.coin.Leans() }

func (s *suspect) suspected() bool { return s != nil && s.limits }

// tossed learns from an answer to a request sent at sent, and returns what that has made
// certain. Later answers may still show that busy ones are not chance. proved says that its
// refusals in a row were put down to a limit. Then it has one, though perhaps no bucket.
func (s *suspect) tossed(now, sent meter.Instant, r Reply, proved bool) Verdict {
	s.coin.Toss(Tossed{r.Busy, sent, now.Sub(sent), r.Load, r.Good})
	was := s.limits
	s.limits = s.coin.Timed() || was && !s.coin.Untimed()
	switch {
	case s.random(now) && s.coin.Unlikely():
		s.chance, s.not = 0, 0
	case s.random(now) && now >= s.not && s.coin.Sure():
		s.not = now.Add(Remembered)
		return NoLimiter
	case !s.random(now) && s.coin.Likelier():
		s.chance = now.Add(Remembered)
		return Chance
	case was && !s.limits && !proved:
		return NoLimiter
	}
	return Open
}
