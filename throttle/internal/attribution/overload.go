package attribution

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	shareKept = 15.0 / 16 // what each answer leaves of Overload.share

	manyAnswers = 1000 // more are not counted

	// Some limiters refuse with a 503 that says no more (nginx's limit_req does by
	// default). So a host is not taken to be down by such answers as long as it has
	// served somebody briefly before, and not more than some requests in a row have
	// asked in vain. On 900 servers of bench/sim's population (train), 33 of the 58 that
	// refuse so lose calls with it, 49 without. Six in a row would be 25, but a host that
	// is down would be asked more often than a hundredth of its calls.
	briefly = time.Second
	spared  = 2
)

// An Overload weighs why a host says that it is overloaded: it is, or it is down, or
// it fails at random, or it limits us and does not say so. The zero Overload has
// heard nothing.
type Overload struct {
	share   float64       // of the last answers that were busy
	streak  int32         // answers since served that were busy; at most manyAnswers
	vain    int32         // bare answers in a row, one for each burst; at most manyAnswers
	served  meter.Instant // the last good answer; zero: none
	burst   meter.Instant // the last bare answer that counts in vain
	suspect *suspect      // nil: never suspected
	run     *run          // nil: there was no bare answer
}

// A Reply is what an Overload wants to know of an answer. The zero Reply is a good one.
type Reply struct {
	Busy  bool // it said that the host is overloaded, and not when to come back
	Bare  bool // it was a 503 that said no more
	Load  Load // when the request was sent
	Probe bool // of a circuit: that asks as seldom as it likes
}

// A Verdict is what answers have come to prove.
type Verdict uint8

const (
	Open      Verdict = iota // nothing new
	Chance                   // the host fails at random, however many are under way
	NoLimiter                // it fails so, or as often at a lower rate, and has no limit
)

// Heard takes in the answer to a request sent at sent.
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
	if o.suspect != nil && !r.Probe {
		if v := o.suspect.tossed(now, sent, r); v != Open {
			return v
		}
	}
	switch {
	case o.suspect == nil:
	case o.suspect.judge(now, r.Busy):
		return NoLimiter
	}
	return Open
}

func (o *Overload) runOf() *run {
	if o.run == nil {
		o.run = new(run)
	}
	return o.run
}

// Served notes that the answer to a request sent at sent was good. It reports whether
// the host is back that was taken for a limiter, and may have been down.
func (o *Overload) Served(now, sent meter.Instant) (back bool) {
	o.served, o.streak, o.vain = now, 0, 0
	return o.run != nil && o.run.served(sent)
}

// ServedWithin reports whether there was a good answer in the last d.
func (o *Overload) ServedWithin(now meter.Instant, d time.Duration) bool {
	return o.served != 0 && time.Duration(now-o.served) < d
}

// Overloaded notes that the answer said that the host is overloaded. plain says that
// it said no more and was called a refusal by nobody: it reports whether that is known
// to be chance, and tells nothing of what may be sent.
func (o *Overload) Overloaded(now meter.Instant, plain bool) (chance bool) {
	o.share += 1 - shareKept
	o.streak = min(o.streak+1, manyAnswers)
	return plain && o.suspect.random(now)
}

// seldom is the share of the last answers that may be busy without fewer being sent: to
// repeat those serves them, and costs the host less than an eighth more.
const seldom = 1.0 / 8

// Seldom reports, after Overloaded, that the host serves nearly all it is sent.
func (o *Overload) Seldom() bool { return o.share < seldom }

// Limits reports, after Overloaded, whether the host rather limits us; then it is
// suspected from now on. few says that no more than two requests are allowed at a time,
// young that it has not served so many that one which refuses all must be down.
func (o *Overload) Limits(now meter.Instant, few, young bool) bool {
	switch {
	case o.suspect.suspected():
		return o.serves(now)
	case few && o.limiter(now) && (young || o.suspect.alternates()):
		o.suspect = o.suspect.begin(now)
		return true
	}
	return false
}

// Suspected reports whether the host is taken for a limiter, which is still to be
// proved.
func (o *Overload) Suspected() bool { return o.suspect.suspected() }

// Quiet reports whether the host never said that it is overloaded.
func (o *Overload) Quiet() bool { return o.suspect == nil }

// Limited reports whether a 503 that says no more, heard now, is a limiter's, by odds
// that leave hardly a doubt. It is asked before Heard.
func (o *Overload) Limited(now meter.Instant, p Past) bool {
	if o.served == 0 || o.suspect != nil && now < o.suspect.not {
		return false
	}
	return o.runOf().limits(now, p)
}

// Doubtful reports, after Limited, whether that host accepted nothing again since it
// first refused: it may be down after all.
func (o *Overload) Doubtful() bool { return o.run != nil && o.run.longest == 0 }

// Plausible reports whether such a 503 may well be chance.
func (o *Overload) Plausible() bool { return o.suspect != nil && o.suspect.coin.Plausible() }

// Spares reports whether a 503 that says no more may well be a limiter's.
func (o *Overload) Spares(now meter.Instant) bool {
	return o.ServedWithin(now, briefly) && o.vain < spared && (o.suspect == nil || now >= o.suspect.not)
}

// limiter reports whether a host that says it is overloaded rather limits us: it
// serves some, and refuses most however few are under way.
func (o *Overload) limiter(now meter.Instant) bool {
	return o.share >= 0.5 && o.serves(now) && (o.suspect == nil || now >= o.suspect.not)
}

// serves reports whether there was a good answer lately: no outage, then. A
// limiter that has served nothing for a second has not been asked often since.
func (o *Overload) serves(now meter.Instant) bool {
	return o.ServedWithin(now, time.Second) || o.ServedWithin(now, 5*time.Second) && o.streak < 5
}

// A suspect is a host that has said that it is overloaded. If that is likely chance, it
// says nothing of how many may be under way; if that is sure, it has no limit at all.
// Until then it is taken for a limiter, if it is so often overloaded however few are
// under way. If it says as many 503s at a lower rate, it is none either.
type suspect struct {
	coin    Coin
	since   meter.Instant // zero: not taken for a limiter
	answers int           // that count; negative: so many do not
	busy    int
	not     meter.Instant // until then it is known to be no limiter
	chance  meter.Instant // until then it is known to refuse by chance
}

// random reports whether busy answers are known to be chance.
func (s *suspect) random(now meter.Instant) bool { return s != nil && now < s.chance }

// alternates reports whether it was good again after it was busy.
func (s *suspect) alternates() bool { return s != nil && s.coin.all.good > 0 }

// tossed takes in an answer to a request sent at sent, and returns what it has shown.
// Later answers may show that busy ones are no chance.
func (s *suspect) tossed(now, sent meter.Instant, r Reply) Verdict {
	s.coin.Toss(sent, r.Load, r.Busy)
	switch {
	case s.random(now) && s.coin.Unlikely():
		s.chance, s.not = 0, 0
	case s.random(now) && now >= s.not && s.coin.Sure():
		s.not = now.Add(Remembered)
		return NoLimiter
	case !s.random(now) && s.coin.Likelier():
		s.chance = now.Add(Remembered)
		return Chance
	}
	return Open
}

func (s *suspect) suspected() bool { return s != nil && s.since != 0 }

// begin returns s, made if need be, suspected from now on.
func (s *suspect) begin(now meter.Instant) *suspect {
	if s == nil {
		s = new(suspect)
	}
	s.since, s.answers, s.busy = now, -16, 0 // first the rate has to be found
	return s
}

// judge counts an answer. It reports whether the host has proved to be none.
func (s *suspect) judge(now meter.Instant, busy bool) bool {
	if !s.suspected() {
		return false
	}
	if s.answers++; busy && s.answers > 0 {
		s.busy++
	}
	none := s.busy >= 4 // a limiter whose rate is known refuses a few in a hundred
	if s.answers < 16 && !none {
		return false
	}
	s.answers, s.busy = 0, 0
	if none {
		s.since, s.not = 0, now.Add(Remembered)
	}
	return none
}
