package attribution

import (
	"math"

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
	followed   = -.4                    // one in four of those that follow may pass, as a bucket fills
	inOrder    = .3                     // of answers do not overtake others, before it is known
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
	falls   float64 // times that what is left for them fell, and those by one
	steps   float64
}

// A wave is what was sent after a request that is refused, before that was heard.
type wave struct {
	first  meter.Instant // when the one was sent that was heard to be refused first
	end    meter.Instant // when that was heard
	passed meter.Instant // when the last that was accepted was sent
	bits   float64       // for one limit, so far
}

// A Level is what an answer to a stranger says is left, and what was known before of
// the limit that may be common, in units.
type Level struct {
	Left, Size float64
	Was        float64 // less what was sent since
	Gained     float64 // at most, since it was Was
	UnderWay   float64
	New        bool // sent after Was was known, and long before the limit is reset
}

// Begin starts from what is likely of anybody.
func (j *Strangers) Begin(now meter.Instant) { j.score, j.wave, j.at = jointPrior, wave{}, now }

// Stale reports whether the evidence is too old to be believed: then Begin is called.
func (j *Strangers) Stale(now meter.Instant) bool { return now-j.at > meter.Instant(Remembered) }

// Sure reports whether it is beyond doubt that they share one limit.
func (j *Strangers) Sure() bool { return j.bits() >= jointSure }

// Apart reports whether they rather have limits of their own.
func (j *Strangers) Apart() bool { return j.bits() < partAt }

// Answered weighs the answer to one that went while others had to wait until then. If
// they share one limit it is refused.
func (j *Strangers) Answered(now, sent, until meter.Instant, refused bool) {
	if refused { // however many are, half of those with limits of their own have something left
		j.add(now, max(1, min(j.surprise(), mostBits)))
	} else if sent < until {
		j.add(now, -until.Until(sent).Seconds())
	}
}

// Follows weighs the answer to one that was sent before the others were held up. Of
// one limit what follows the first that is refused is refused too; one that is not
// takes back what those before it have told. Which of two that were sent at the same
// instant came first is not known, so they tell nothing of one another.
func (j *Strangers) Follows(now, sent meter.Instant, refused bool) {
	w := &j.wave
	switch {
	case !refused:
		if sent > w.first && sent <= w.end {
			w.bits = 0
		}
		w.passed = max(w.passed, sent)
	case sent > w.end:
		j.score = j.bits()
		w.first, w.end, w.bits = sent, now, 0
	case sent > w.passed:
		w.bits, j.at = min(w.bits+j.surprise()+followed, mostBits), now
	}
}

// Compare weighs what is left for a stranger: if that goes on where it was for others,
// they are one. What is left of one limit falls.
func (j *Strangers) Compare(now meter.Instant, l Level) {
	fall := l.Was - l.Left
	switch {
	case fall > 0 && fall <= l.UnderWay+1 && l.Left < l.Size-1:
		near := math.Log2(l.Size / (2*l.UnderWay + 3)) // one of so many falls no farther
		j.add(now, max(0, near)+j.order(fall == 1, min(l.Was, l.UnderWay+1)))
	case l.New && l.Left > l.Was+l.Gained+l.UnderWay+1:
		j.add(now, -mostBits)
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
func (j *Strangers) bits() float64 { return min(j.score+j.wave.bits, mostJoint) }

// surprise is what a refusal tells if limits of their own are spent as often as
// strangers were refused.
func (j *Strangers) surprise() float64 { return math.Log2((j.first + 2) / (j.refused + 1)) }

// add adds evidence.
func (j *Strangers) add(now meter.Instant, bits float64) {
	j.score, j.at = max(-jointSure, min(j.score+bits, mostJoint)), now
}

// order weighs a fall of what is left to one of as many values. Of one limit each
// answer has one less than the last, unless they overtake one another: how often they
// do not is counted.
func (j *Strangers) order(byOne bool, values float64) (bits float64) {
	part := (j.steps + inOrder) / (j.falls + 1)
	if j.falls++; !byOne {
		return 0
	}
	j.steps++
	return math.Log2(part*values + 1 - part)
}
