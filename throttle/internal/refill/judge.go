package refill

import (
	"math"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A Kind is how a limit comes back.
type Kind uint8

const (
	Window Kind = iota
	Bucket
	Log

	kinds = 3
)

// How evidence is weighed, in natural logarithms of likelihood: a unit that a kind
// cannot explain makes it e times less likely.
const (
	before  = 1.4       // what a bucket or a log has to make good first: two single units that no window gives back; with 2 a bucket was refused while it was taken for a window
	most    = 3         // of one answer: one in twenty is odd, by others or the network
	vague   = most / 2. // the price of a rate that is not known and fits everything: as much as others' use costs a window at most, or they would make a bucket of it
	sure    = 3         // a lead after which no more is done to find out
	mostOff = 6         // behind the likeliest: two or three odd answers in a row are a change
	clear   = 0.5       // units by which kinds have to differ before two answers are compared: the server counts whole ones
)

// A Span is a number of units that is not known exactly.
type Span struct{ Least, Most float64 }

// off is how much speaks against s if it was x. Others may have spent what is missing.
func (s Span) off(x float64) float64 {
	switch {
	case x > s.Most:
		return min(x-s.Most, most)
	case x < s.Least:
		return min((s.Least-x)/2, most/2.)
	}
	return 0
}

// Rate is at how many units a second a bucket of that size fills of which left are there,
// if it is full after that time; zero: it is full, or nobody knows.
func Rate(size, left float64, full time.Duration) float64 {
	if full <= 0 {
		return 0
	}
	return max(0, size-left) / full.Seconds()
}

// An Answer is what one answer shows of a limit.
type Answer struct {
	Sent, Heard meter.Instant
	Left, Cost  float64 // Cost was taken before Left was counted, unless it was refused
	Refused     bool
	Open        float64       // units of other requests that are under way
	Size        float64       // zero: unknown
	Reset       meter.Instant // as stated with it; zero: none was
	Doubt       time.Duration // by which that may be wrong
	Rate        float64       // units a second that a bucket would get back; zero: unknown
	Log         Span          // what a log would have had left before it
	Logged      bool          // that is known
}

// A Judge says of what kind a limit is.
type Judge struct {
	behind [kinds]float64 // by evidence, how much less likely each is than the likeliest
	kind   Kind           // the likeliest; it is asked for far more often than it changes
	rate   float64        // at which units were seen to come back, per second

	// The answer with which later ones are compared:
	sent, heard meter.Instant // heard zero: there is none
	reset       meter.Instant
	doubt       time.Duration
	left, open  float64
	spent       float64  // by those that were answered after it
	until       [2]tally // of spent, the newer one last
}

// A tally is what was spent by those answered until then.
type tally struct {
	at    meter.Instant
	spent float64
}

// Kind is the likeliest.
func (j *Judge) Kind() Kind { return j.kind }

// choose finds the likeliest, as behind has changed.
func (j *Judge) choose() {
	j.kind = Window
	for i := Bucket; i < kinds; i++ {
		if j.score(i) > j.score(j.kind) {
			j.kind = i
		}
	}
}

// Sure reports that it leads by far.
func (j *Judge) Sure() bool {
	best := j.Kind()
	for i := range Kind(kinds) {
		if i != best && j.score(i) > j.score(best)-sure {
			return false
		}
	}
	return true
}

func (j *Judge) score(k Kind) float64 {
	if k == Window {
		return j.behind[k]
	}
	return j.behind[k] - before
}

// Lean takes the server's word for a kind, as long as no answer has shown one.
func (j *Judge) Lean(k Kind) {
	if j.behind != [kinds]float64{} {
		return
	}
	for i := range j.behind {
		if Kind(i) != k {
			j.behind[i] = -before - sure
		}
	}
	j.choose()
}

// Spent notes a request that was accepted without a word about the limit.
func (j *Judge) Spent(units float64) { j.spent += units }

// Heard takes in an answer.
func (j *Judge) Heard(a *Answer) {
	later := j.heard != 0 && a.Sent >= j.heard // it was surely given later
	past := j.reset != 0 && a.Sent > j.reset.Add(j.doubt)
	if j.heard == 0 || later && (j.compare(a) || past || a.Open <= j.open/2-1) {
		j.sent, j.heard, j.reset, j.doubt = a.Sent, a.Heard, a.Reset, a.Doubt
		j.left, j.open, j.spent = a.Left, a.Open, 0
		j.until = [2]tally{{at: a.Heard}, {at: a.Heard}}
		return
	}
	if !a.Refused {
		j.spent += a.Cost
	}
	if a.Sent >= j.until[1].at { // a round trip later
		j.until = [2]tally{j.until[1], {a.Heard, j.spent}}
	}
}

// by is what was spent for certain before a request that was sent then was served:
// of those answered later, some may have been served later, too.
func (j *Judge) by(sent meter.Instant) float64 {
	for i := 1; i >= 0; i-- {
		if j.until[i].at <= sent {
			return j.until[i].spent
		}
	}
	return 0
}

// compare holds an answer against the one before it. It reports false if the kinds
// agree about it.
func (j *Judge) compare(a *Answer) bool {
	there, size := a.Left, a.Size
	if !a.Refused {
		there += a.Cost
	}
	if size == 0 {
		size = math.Inf(1)
	}
	spent := Span{max(0, j.by(a.Sent)-j.open), j.spent + a.Open}
	stays := Span{j.left - spent.Most, j.left - spent.Least} // if nothing came back
	anew := Span{size - spent.Most, size}                    // if all did

	off := [kinds]float64{Window: stays.off(there)}
	if j.reset != 0 && a.Sent > j.reset.Add(j.doubt) {
		off[Window] = anew.off(there)
	} else if j.reset == 0 || a.Heard > j.reset.Add(-j.doubt) {
		off[Window] = min(off[Window], anew.off(there))
	}
	rate := a.Rate
	if rate == 0 {
		rate = j.rate
	}
	if rate <= 0 && off[Window] < clear {
		return false
	}
	shortest, longest := a.Sent.Sub(j.heard).Seconds(), a.Heard.Sub(j.sent).Seconds()
	if off[Bucket] = vague; rate > 0 {
		least := min(stays.Least+rate*shortest, anew.Least) - 1 // what is stated is rounded down
		off[Bucket] = Span{least, min(size, stays.Most+rate*longest)}.off(there)
	}
	off[Log] = max(off[Window], off[Bucket]) // who cannot tell gains nothing by it
	if a.Logged {
		off[Log] = a.Log.off(there)
	}
	if max(off[0], off[1], off[2])-min(off[0], off[1], off[2]) < clear {
		return false
	}
	if a.Rate == 0 && anew.off(there) > clear {
		j.gained((there-stays.Most)/longest, (there+1-stays.Least)/max(shortest, 1e-3))
	}
	j.Weigh(off)
	return true
}

// gained takes in between which rates units came back.
func (j *Judge) gained(slowest, fastest float64) {
	switch slowest = max(slowest, 0); {
	case fastest <= 0:
	case fastest < j.rate || j.rate == 0:
		j.rate = min(slowest, fastest)
	default:
		j.rate += max(0, slowest-j.rate) / 2
	}
}

// Weigh takes in by how many units each kind is wrong about one answer.
func (j *Judge) Weigh(off [kinds]float64) {
	best := math.Inf(-1)
	for i := range j.behind {
		j.behind[i] -= min(off[i], most)
		best = max(best, j.score(Kind(i)))
	}
	for i := range j.behind {
		j.behind[i] += max(-best, -mostOff-j.score(Kind(i)))
	}
	j.choose()
}
