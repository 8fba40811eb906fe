package refill

import (
	"cmp"
	"math"
	"slices"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// count counts what the request of an answer took, in the window that the answer states.
func (j *Judge) count(a *Answer) {
	units, end := a.Cost, a.Reset
	switch {
	case j.counter.end == 0:
		units = max(0, a.Size-a.Left) // all that was spent before
	case a.Refused:
		units = 0
	}
	if end == 0 {
		end = j.counter.window(a.Heard)
	}
	was := j.counter.steady
	if j.counter.heard(a.Heard, end, a.Per, units); was && !j.counter.steady {
		j.behind[Counter] = -mostOff
		j.choose()
	}
}

// by is how many units were certainly spent before a request that was sent at sent was
// served: those of requests that were answered before it was sent.
func (j *Judge) by(sent meter.Instant) float64 {
	for i := len(j.until) - 1; i >= 0; i-- {
		if j.until[i].at <= sent {
			return j.until[i].spent
		}
	}
	return 0
}

// compare weighs the kinds by an answer and the one before it. It reports false, and changes
// nothing, if the kinds predict the same.
func (j *Judge) compare(a *Answer) bool {
	v := j.interval(a)
	next := j.counter.next(a.Heard, a.Reset)
	ends := next || j.counter.steady // it is known when windows end
	rate := cmp.Or(a.Rate, j.rate)

	off := [kinds]float64{Window: v.stays.off(v.there)}
	if j.over(a.Sent) || next {
		off[Window] = v.anew.off(v.there)
	} else if j.reset == 0 || a.Heard > j.reset.Add(-j.doubt) {
		off[Window] = min(off[Window], v.anew.off(v.there))
	}
	if rate <= 0 && off[Window] < clear && !next && (!ends || v.longest < j.counter.shows()) {
		return false // a little later it can be seen better
	}
	if off[Bucket] = vague; rate > 0 {
		off[Bucket] = v.steadily(rate)
	}
	off[Log] = max(off[Window], off[Bucket]) // without a prediction of its own a kind must not become the likeliest
	off[Counter] = off[Log]
	if a.Logged {
		off[Log] = a.Log.off(v.there)
	}
	if ends {
		doubt := j.counter.doubt()
		off[Counter] = v.gained(j.counter.gain(j.heard, a.Sent)-doubt, j.counter.gain(j.sent, a.Heard)+doubt)
	}
	if slices.Max(off[:])-slices.Min(off[:]) < clear {
		return false
	}
	if a.Rate == 0 && v.longest > 0 && v.anew.off(v.there) > clear { // in no time, nothing comes back at any rate
		j.gained((v.there-v.stays.Most)/v.longest, (v.there+1-v.stays.Least)/max(v.shortest, 1e-3))
	}
	j.Weigh(off)
	return true
}

// gained learns that units came back at a rate between these two, per second.
func (j *Judge) gained(slowest, fastest float64) {
	switch slowest = max(slowest, 0); {
	case fastest <= 0:
	case fastest < j.rate || j.rate == 0:
		j.rate = min(slowest, fastest)
	default:
		j.rate += max(0, slowest-j.rate) / 2
	}
}

// Weigh learns by how many units the prediction of each kind is wrong about one answer. Each
// counts up to most.
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
