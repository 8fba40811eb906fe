package refill

import (
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A Kind is how the units of a limit come back.
type Kind uint8

const (
	Window  Kind = iota // all at the reset
	Bucket              // at a steady rate
	Log                 // each a window after it was spent
	Counter             // those of one window evenly during the next one

	kinds = 4 // how many there are
)

// How evidence is weighed, in natural logarithms of likelihood: each unit that a kind
// cannot explain makes it e times less likely.
const (
	// before is how much less likely a bucket or a log is taken to be at first: to outweigh
	// it takes two single units that no window gives back. With 2, requests were refused
	// while a bucket was taken for a window.
	before = 1.4
	// most is the most that one answer counts: about one in twenty (e to the power of -3) is
	// odd, because of other programs or the network.
	most = 3
	// vague is what counts against a bucket whose rate is not known, as such a bucket would
	// fit every answer. It is as much as the use of others counts against a window at most:
	// with less, that use would make a bucket of a window.
	vague = most / 2.
	// sure is the lead of the likeliest kind at which its owner stops finding out.
	sure = 3
	// mostOff is how far a kind may fall behind the likeliest: two or three answers in a row
	// of the greatest weight change the verdict.
	mostOff = 6
	// clear is by how many units the kinds have to differ about two answers, so that these
	// are compared: servers state whole units.
	clear = 0.5
)

// A Span is a number of units that is not known exactly: it is between Least and Most.
type Span struct{ Least, Most float64 }

// off is how much the number x speaks against a prediction of s. Too few speak half as much,
// as others may have spent the rest.
func (s Span) off(x float64) float64 {
	switch {
	case x > s.Most:
		return min(x-s.Most, most)
	case x < s.Least:
		return min((s.Least-x)/2, most/2.)
	}
	return 0
}

// Rate is the rate of a bucket, in units per second, of which left units of size are there
// and which will be full after that time; zero: it is full, or full is not known.
func Rate(size, left float64, full time.Duration) float64 {
	if full <= 0 {
		return 0
	}
	return max(0, size-left) / full.Seconds()
}

// An Answer is what one answer shows of a limit.
type Answer struct {
	Sent, Heard meter.Instant // when the request was sent, and when its answer came
	Left, Cost  float64       // units that the server says are left, without the Cost of the request unless that was refused
	Refused     bool          // the request was refused, and took nothing
	Open        float64       // units of other requests that are under way
	Size        float64       // units of the whole limit; zero: unknown
	Reset       meter.Instant // the reset that the answer states; zero: none
	Doubt       time.Duration // by how much Reset may be wrong
	Per         time.Duration // how long windows are; zero: unknown
	Rate        float64       // units a second that a bucket would get back; zero: unknown
	Log         Span          // how much would have been left before the request if the limit were a Log
	Logged      bool          // Log is known
}

// A Judge says of what kind a limit is. The zero Judge has heard nothing.
type Judge struct {
	behind [kinds]float64 // the evidence: how much less likely each kind is than the likeliest
	kind   Kind           // the likeliest, which is asked for far more often than it changes
	rate   float64        // at which units were seen to come back, per second; zero: unknown

	counter counter

	// The answer with which later ones are compared:
	sent, heard meter.Instant // heard zero: there is none
	reset       meter.Instant
	doubt       time.Duration
	left, open  float64
	spent       float64  // units of requests that were answered after it
	until       [3]tally // earlier values of spent, the newest one last
}

// A tally is how many units were spent by requests that were answered until at.
type tally struct {
	at    meter.Instant
	spent float64
}

// Kind is the likeliest kind.
func (j *Judge) Kind() Kind { return j.kind }

// choose sets kind after behind has changed.
func (j *Judge) choose() {
	j.kind = Window
	for i := Bucket; i < kinds; i++ {
		if j.score(i) > j.score(j.kind) {
			j.kind = i
		}
	}
}

// Sure reports whether every other kind is less likely than Kind by sure or more.
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

// Weighed reports whether anything has counted for or against a kind.
func (j *Judge) Weighed() bool { return j.behind != [kinds]float64{} }

// Lean makes k the likeliest kind, because the server's headers say so. It does nothing once
// an answer has counted for or against a kind.
func (j *Judge) Lean(k Kind) {
	if j.Weighed() {
		return
	}
	for i := range j.behind {
		if Kind(i) != k {
			j.behind[i] = -before - sure
		}
	}
	j.choose()
}

// Spent notes the cost of a request that was accepted, whose answer, heard now, did not state
// the limit.
func (j *Judge) Spent(now meter.Instant, units float64) {
	j.spent += units
	j.tally(now, now.Sub(j.until[1].at) >= j.heard.Sub(j.sent))
	j.counter.heard(now, j.counter.window(now), 0, units)
}

// tally keeps what was spent until now; later says that a round trip has passed since the
// last tally that stays.
func (j *Judge) tally(now meter.Instant, later bool) {
	all := tally{now, j.spent}
	if later {
		j.until[0], j.until[1] = j.until[1], all
	}
	j.until[2] = all
}

// Heard learns from an answer that states the limit.
func (j *Judge) Heard(a *Answer) {
	if !j.foresaw(a) {
		j.weighed(a)
	}
}

// weighed is Heard for any answer.
func (j *Judge) weighed(a *Answer) {
	later := j.heard != 0 && a.Sent >= j.heard // the server certainly served it later
	past := j.over(a.Sent)
	if j.heard == 0 || later && (j.compare(a) || past || a.Open <= j.open/2-1) {
		j.sent, j.heard, j.reset, j.doubt = a.Sent, a.Heard, a.Reset, a.Doubt
		j.left, j.open, j.spent = a.Left, a.Open, 0
		j.until = [3]tally{{at: a.Heard}, {at: a.Heard}, {at: a.Heard}}
	} else {
		if !a.Refused {
			j.spent += a.Cost
		}
		j.tally(a.Heard, a.Sent >= j.until[1].at)
	}
	j.count(a)
}

// over reports that the reset was past when a request was sent at sent.
func (j *Judge) over(sent meter.Instant) bool { return j.reset != 0 && sent > j.reset.Add(j.doubt) }

// foresaw is weighed, if all kinds predict as much as an answer says, or if all of them are wrong
// by so much that more does not count. Nearly all answers are such: the latter are those of a
// server that others use, too. They weigh nothing, which compare takes longer to find out. Of any
// other answer foresaw reports false and learns nothing.
func (j *Judge) foresaw(a *Answer) bool {
	if j.heard == 0 || a.Refused || a.Logged || a.Open <= j.open/2-1 || j.over(a.Sent) || j.counter.next(a.Heard, a.Reset) ||
		a.Sent >= j.heard && !j.alike(a) { // of one that was sent before, nothing is compared
		return false
	}
	j.spent += a.Cost
	j.tally(a.Heard, a.Sent >= j.until[1].at)
	j.count(a)
	return true
}

// alike reports that by an answer no kind is likelier than another, as foresaw says.
func (j *Judge) alike(a *Answer) bool {
	rate, there, spent := a.Rate, a.Left+a.Cost, j.spent+a.Open
	if rate == 0 {
		rate = j.rate
	}
	least, highest := j.left-spent, j.left-j.spent
	if there > highest { // else it does not matter what exactly was spent before
		highest = j.left - max(0, j.by(a.Sent)-j.open)
	}
	switch {
	case there >= least && there <= highest && rate <= 0:
		return !j.counter.steady || a.Heard.Sub(j.sent).Seconds() < j.counter.shows()
	case there >= least && there <= highest:
		return (least+rate*a.Sent.Sub(j.heard).Seconds()-1-there)/2 < clear && (there <= a.Size || a.Size == 0) &&
			(!j.counter.steady || (least+j.counter.gain(j.heard, a.Sent)-1-there)/2 < clear)
	case j.counter.steady, a.Size == 0, j.reset == 0, a.Heard > j.reset.Add(-j.doubt): // all may have come back
		return false
	case there <= highest:
		return (least-there)/2 >= most/2. && (rate <= 0 || (min(least+rate*a.Sent.Sub(j.heard).Seconds(), a.Size-spent)-1-there)/2 >= most/2.)
	}
	return rate > 0 && there-highest >= most && there-min(a.Size, highest+rate*a.Heard.Sub(j.sent).Seconds()) >= most
}
