package attribution

import (
	"math"
	"math/bits"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Evidence is weighed in bits: the logarithm to base 2 of how many times likelier an answer
// is if credentials that are used once share one limit than if each has its own.
const (
	jointPrior = 2                      // before any answer: to most servers, a client whose tokens never recur is one client
	jointSure  = 8.5                    // odds of 360 to 1: beyond doubt
	partAt     = 1                      // below this they have limits of their own
	mostJoint  = jointSure + 4          // the most that is kept, so that a few answers can change the verdict
	mostBits   = jointSure - jointPrior // the most that one answer counts: enough to be sure
	mostOdds   = 1 << 13                // the most odds of waves or of a descent, for the same reason as mostJoint
	followed   = 1.5                    // before any answer in a wave is heard: of followers requests so many are taken
	followers  = 2.5                    // to be refused, as a bucket lets some of them pass
	tight      = .25                    // the part of shared limits that refuse most of a wave; a wave is no evidence for the others
	rounded    = time.Second            // by how much a server's wait may be too long: whole seconds, rounded up
	mostFirst  = 64                     // of how many first answers the part of refusals is known
)

// Strangers weighs whether credentials that are used once share one limit. Such is a token
// that is made for its request. The zero Strangers has no opinion: Begin gives it one.
type Strangers struct {
	score   float64       // evidence for one limit, in bits, without that of waves and descent
	at      meter.Instant // when the last evidence was heard
	first   float64       // first answers to strangers
	refused float64       // refusals among them
	wave    wave
	waves   float64 // odds that there is one limit which lets few pass after a refusal, less 1
	descent descent
}

// A wave is the requests that were sent after a request that was refused, or together with it,
// but before that refusal was heard.
type wave struct {
	first   meter.Instant // when the request was sent that was refused
	end     meter.Instant // when its refusal was heard
	count   float64       // requests of the wave that were answered
	refused float64       // refusals among these
}

// A Level is what an answer to a stranger says is left, and what was known before of the
// limit that strangers may share, in units.
type Level struct {
	Left     float64 // as the answer says
	Was      float64 // left of the shared limit before, less what was sent since
	Gained   float64 // what may have come back since Was, at most
	UnderWay float64 // units of requests under way
	New      bool    // the request was sent after Was was known, and long before the reset; never if Fresh
	Fresh    bool    // Was is not known: it is the first answer, or a reset has passed
}

// Begin sets the opinion to what is likely of any client. What is known of first answers
// stays.
func (j *Strangers) Begin(now meter.Instant) {
	*j = Strangers{score: jointPrior, at: now, first: j.first, refused: j.refused}
}

// Stale reports whether the evidence is too old to be believed: then Begin is called.
func (j *Strangers) Stale(now meter.Instant) bool { return now-j.at > meter.Instant(Remembered) }

// Last is when evidence was last heard.
func (j *Strangers) Last() meter.Instant { return j.at }

// Sure reports whether it is beyond doubt that strangers share one limit.
func (j *Strangers) Sure() bool { return j.bits() >= jointSure }

// Apart reports whether strangers probably have limits of their own.
func (j *Strangers) Apart() bool { return j.bits() < partAt }

// Patience says for how long strangers may have to wait before one of them asks at the risk
// of a refusal, as a multiple of that time when there is no evidence. Each bit of certain
// evidence doubles it. The evidence of a descent is certain, as numbers do not count down by
// chance. Of the rest two thirds count, because some of it is chance. With that, tenants are
// taken to share a limit by chance no more often than if one asked at once
// (throttle.TestTenantsAreNotJoinedByChance), and nearly no request with a token of its own
// is refused where it would not be with a token for all.
func (j *Strangers) Patience() float64 {
	if j.Sure() {
		return 1 // then it is seldom asked anyway
	}
	down := j.descent.bits()
	return math.Exp2((j.bits()-down-jointPrior)*2/3 + down)
}

// Answered weighs the answer to a request that was sent at sent while other strangers had to
// wait until until. If they share one limit it is refused.
func (j *Strangers) Answered(now, sent, until meter.Instant, refused bool) {
	if refused { // at least one bit: of limits of their own, at most half are taken to be spent
		j.add(now, max(1, min(j.surprise(), mostBits)))
	} else if sent < until {
		j.add(now, -max(0, (until.Until(sent)-rounded).Seconds()))
	}
}

// Follows weighs the answer to a request that was sent before the others had to wait. If they
// share one limit, most requests of a wave are refused, even if few requests are refused
// otherwise. How many pass depends on the load, so each wave begins with the same guess.
func (j *Strangers) Follows(now, sent meter.Instant, refused bool) {
	w := &j.wave
	if refused && sent > w.end {
		*w = wave{first: sent, end: now}
		return
	}
	if sent < w.first || sent > w.end {
		return
	}
	one, own := (w.refused+followed)/(w.count+followers), j.part()
	w.count++
	if refused {
		w.refused++
		j.at = now
	} else {
		one, own = 1-one, 1-own
	}
	j.waves = min((1+j.waves)*one/own, mostOdds) - 1
}

// Compare weighs what an answer says is left for a stranger. If that number continues those of
// other strangers, they share a limit; if it is far larger, they do not.
func (j *Strangers) Compare(now meter.Instant, l Level) {
	if l.New && l.Left > l.Was+l.Gained+l.UnderWay+1 {
		j.fold()
		j.add(now, -mostBits)
	}
	if j.descent.add(l) {
		j.at = now
	}
}

// Count counts the first answer to a stranger.
func (j *Strangers) Count(refused bool) {
	j.first++
	if refused {
		j.refused++
	}
	if j.first > mostFirst {
		j.first, j.refused = j.first/2, j.refused/2
	}
}

// Parted notes that the caller treats strangers as having limits of their own from now on.
func (j *Strangers) Parted() { j.wave = wave{} }

// bits is all the evidence for one limit, in bits.
func (j *Strangers) bits() float64 {
	return min(j.score+math.Log2(1+j.waves*tight)+j.descent.bits(), mostJoint)
}

// fold adds the evidence of waves and of the descent to the score, and begins both anew.
func (j *Strangers) fold() {
	j.score, j.waves, j.descent = j.bits(), 0, descent{}
}

// part is how likely the next stranger is refused if each has a limit of its own: the part of
// first answers that were refusals.
func (j *Strangers) part() float64 { return (j.refused + 1) / (j.first + 2) }

// surprise is how many bits a refusal counts for one limit that lets nothing pass.
func (j *Strangers) surprise() float64 { return -math.Log2(j.part()) }

// add adds evidence.
func (j *Strangers) add(now meter.Instant, bits float64) {
	j.score, j.at = max(-jointSure, min(j.score+bits, mostJoint)), now
}

// A descent follows how many whole units answers say are left of a limit. If there is one
// limit, each request takes one unit. So no number comes twice, and the next number fits those
// before: it is missing among them, or is just above or below them, by no more than there are
// requests under way. If each stranger has its own limit, any number may come.
//
// Answers overtake one another, so their order is no evidence. The zero descent has heard
// nothing.
type descent struct {
	top  int     // the largest of the last numbers
	seen uint64  // the last numbers: bit i stands for top-i; zero: there is none
	told float64 // how many numbers were evidence
	fit  float64 // how many of these fitted
	odds float64 // odds that there is one limit that counts down, less 1
}

// fitting is which part of the numbers is expected to fit if there is one limit, before any
// was heard and at most later: it skips one in ten, as units flow back.
const fitting = .9

// add adds one more number, and reports whether it is evidence for one limit. If units have
// come back, or the number is far above the others because a window may have ended, another
// descent begins.
func (d *descent) add(l Level) (told bool) {
	left, flying := int(l.Left), max(1, int(l.UnderWay))
	below := d.top - left
	if d.seen == 0 || l.Fresh || l.Gained >= 1 || -below > flying {
		d.top, d.seen = left, 1
		return false
	}
	low := 63 - bits.LeadingZeros64(d.seen)
	fits := below < 0 || below <= low+flying && (below > 63 || d.seen>>below&1 == 0)
	// What is under way takes the numbers that are missing, and else those below.
	missing := low + 1 - bits.OnesCount64(d.seen)
	values := max(missing, min(flying, missing+d.top-low))
	own := float64(values) / float64(d.top+1)
	if told = own < 1 && below >= 0; told {
		p := min((d.fit+fitting)/(d.told+1), fitting)
		d.told++
		if fits {
			d.fit++
		} else {
			p, own = min(1-p, 1-own), 1-own // what does not fit never speaks for one limit
		}
		d.odds = min((1+d.odds)*p/own, mostOdds) - 1
	}
	if !fits {
		d.top, d.seen = left, 1
		return false
	}
	if below < 0 {
		d.top, d.seen, below = left, d.seen<<-below, 0
	} else if over := below - 63; over > 0 {
		d.top, d.seen, below = d.top-over, d.seen>>over, 63
	}
	d.seen |= 1 << below
	return told
}

// bits is the evidence of all numbers for one limit. Half of the limits that are shared are
// taken to count down in another way; for them the numbers are no evidence.
func (d *descent) bits() float64 { return math.Log2(1 + d.odds/2) }
