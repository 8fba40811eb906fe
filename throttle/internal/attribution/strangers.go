package attribution

import (
	"math"
	"math/bits"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// Whether credentials that are used once share one limit is weighed in bits: by how
// many times likelier that makes an answer than limits of their own do, as a
// logarithm to base 2.
const (
	jointPrior = 2                      // most clients whose tokens never recur are one to the server
	jointSure  = 8.5                    // one in 360: beyond doubt
	partAt     = 1                      // below, they are apart
	mostJoint  = jointSure + 4          // so that evidence against it counts within a few answers
	mostBits   = jointSure - jointPrior // of one answer
	mostOdds   = 1 << 13                // of a wave or a descent, so that what comes next counts
	followed   = 1.5                    // refused of two and a half that follow a refusal, before
	followers  = 2.5                    // any of them is heard: a bucket lets some pass
	tight      = .25                    // of shared limits let few pass; of the others a wave tells nothing
	rounded    = time.Second            // of what a server says to wait: whole seconds, rounded up
	mostFirst  = 64                     // first answers of which the part that was refused is known
)

// Strangers weighs whether credentials that are used once, as a token is that is made
// for its request, share one limit. The zero Strangers has no opinion: Begin gives it one.
type Strangers struct {
	score   float64
	at      meter.Instant // of the last evidence
	first   float64       // first answers, and refusals among them
	refused float64
	wave    wave
	waves   float64 // odds for one limit that lets few pass after a refusal, less 1
	descent descent
}

// A wave is what was sent with or after a request that is refused, before that was
// heard.
type wave struct {
	first   meter.Instant // when the one was sent that was heard to be refused first
	end     meter.Instant // when that was heard
	count   float64       // of those that were heard after it
	refused float64       // of these
}

// A Level is what an answer to a stranger says is left, and what was known before of
// the limit that may be common, in units.
type Level struct {
	Left     float64
	Was      float64 // less what was sent since
	Gained   float64 // at most, since it was Was
	UnderWay float64
	New      bool // sent after Was was known, and long before the limit is reset; never if Fresh
	Fresh    bool // nothing was known before: it is the first answer, or a reset has passed
}

// Begin starts from what is likely of anybody.
func (j *Strangers) Begin(now meter.Instant) {
	*j = Strangers{score: jointPrior, at: now, first: j.first, refused: j.refused}
}

// Stale reports whether the evidence is too old to be believed: then Begin is called.
func (j *Strangers) Stale(now meter.Instant) bool { return now-j.at > meter.Instant(Remembered) }

// Last is when answers last told anything.
func (j *Strangers) Last() meter.Instant { return j.at }

// Sure reports whether it is beyond doubt that they share one limit.
func (j *Strangers) Sure() bool { return j.bits() >= jointSure }

// Apart reports whether they rather have limits of their own.
func (j *Strangers) Apart() bool { return j.bits() < partAt }

// Patience is how many times as long as at first the others may have to wait before it is
// worth a refusal to ask. If the evidence were certain it would be twice as long for each
// bit, and so it is for what is left, which counts down for nobody by chance. Part of the
// rest is chance: with two thirds of that, tenants are joined by chance no more often than
// if one asked at once (throttle.TestTenantsAreNotJoinedByChance), and nearly no token per
// request is refused where one token is not.
func (j *Strangers) Patience() float64 {
	if j.Sure() {
		return 1 // who is sure asks seldom
	}
	down := j.descent.bits()
	return math.Exp2((j.bits()-down-jointPrior)*2/3 + down)
}

// Answered weighs the answer to one that went while others had to wait until then. If
// they share one limit it is refused.
func (j *Strangers) Answered(now, sent, until meter.Instant, refused bool) {
	if refused { // however many are, half of those with limits of their own have something left
		j.add(now, max(1, min(j.surprise(), mostBits)))
	} else if sent < until {
		j.add(now, -max(0, (until.Until(sent)-rounded).Seconds()))
	}
}

// Follows weighs the answer to one that was sent before the others were held up. Of
// one limit most of what follows the first that is refused is refused too, whatever
// the part of all that is. How many pass depends on the load, so each wave begins with
// the same guess.
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

// Compare weighs what is left for a stranger. If that goes on where it was for others,
// they are one; if there is far more of it, they are not.
func (j *Strangers) Compare(now meter.Instant, l Level) {
	if l.New && l.Left > l.Was+l.Gained+l.UnderWay+1 {
		j.fold()
		j.add(now, -mostBits)
	}
	if j.descent.add(l) {
		j.at = now
	}
}

// Count counts a first answer.
func (j *Strangers) Count(refused bool) {
	j.first++
	if refused {
		j.refused++
	}
	if j.first > mostFirst {
		j.first, j.refused = j.first/2, j.refused/2
	}
}

// Parted notes that they are given limits of their own.
func (j *Strangers) Parted() { j.wave = wave{} }

// bits is all the evidence for one limit.
func (j *Strangers) bits() float64 {
	return min(j.score+math.Log2(1+j.waves*tight)+j.descent.bits(), mostJoint)
}

// fold makes what waves and what is left have told a part of the score: what comes next
// may outweigh it.
func (j *Strangers) fold() {
	j.score, j.waves, j.descent = j.bits(), 0, descent{}
}

// part is how likely the next stranger is refused if each has a limit of its own: as
// often as those before it were.
func (j *Strangers) part() float64 { return (j.refused + 1) / (j.first + 2) }

// surprise is what a refusal tells if nothing of one limit passes.
func (j *Strangers) surprise() float64 { return -math.Log2(j.part()) }

// add adds evidence.
func (j *Strangers) add(now meter.Instant, bits float64) {
	j.score, j.at = max(-jointSure, min(j.score+bits, mostJoint)), now
}

// A descent follows what answers say is left of a limit, in whole units. Of one limit
// each of them takes one: no number comes twice, and the next is one that is still
// missing among those that came, or lies just above or below them, by no more than what
// is under way. What is left of limits of their own may be any number.
//
// Answers overtake one another, so their order tells nothing. The zero descent has heard
// nothing.
type descent struct {
	top  int    // the largest of the last numbers
	seen uint64 // of these: bit i is top-i; zero: there is none
	told float64
	fit  float64 // of those told
	odds float64 // for one limit that counts down so, less 1
}

// fitting is how many numbers of a limit that counts down are expected to fit before any
// was heard, and at most later: it skips one in ten as units flow back.
const fitting = .9

// add takes in one more number, and reports whether it spoke for one limit. What flows back
// ends the descent, and a number far above begins another: a window may have ended.
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

// bits is how much all of them tell for one limit: half of the limits that are shared
// count down otherwise, and of those they tell nothing.
func (d *descent) bits() float64 { return math.Log2(1 + d.odds/2) }
