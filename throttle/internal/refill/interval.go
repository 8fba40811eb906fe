package refill

import "math"

// An interval is what is known of the time between two answers.
type interval struct {
	shortest, longest float64 // in seconds, between the instants when the two requests were served
	lacked            float64 // units for which the later request was refused; zero: it was not
	there, size       float64 // units before the later request; of the whole limit, infinite if unknown
	stays             Span    // units before the later request if none came back
	anew              Span    // the same if all came back
}

// interval is the one between the answer that later ones are compared with, and a.
func (j *Judge) interval(a *Answer) interval {
	v := interval{shortest: a.Sent.Sub(j.heard).Seconds(), longest: a.Heard.Sub(j.sent).Seconds(), there: a.Left, size: a.Size}
	if a.Refused {
		v.lacked = a.Cost
	} else {
		v.there += a.Cost
	}
	if v.size == 0 {
		v.size = math.Inf(1)
	}
	spent := Span{max(0, j.by(a.Sent)-j.open), j.spent + a.Open}
	v.stays = Span{j.left - spent.Most, j.left - spent.Least}
	v.anew = Span{v.size - spent.Most, v.size}
	if n, ok := j.counter.in(a.Heard, a.Reset); ok {
		v.anew.Least = max(v.anew.Least, v.size-n-a.Open)
	}
	return v
}

// low is how many units there are at least, if so many came back.
func (v *interval) low(gained float64) float64 { return min(v.stays.Least+gained, v.anew.Least) }

// gained is how much speaks against it that so many units came back.
func (v *interval) gained(least, most float64) float64 {
	return Span{
		Least: v.low(least) - 1, // what is stated is rounded down
		Most:  min(v.stays.Most+most, v.size),
	}.off(v.there)
}

// steadily is how much speaks against it that units came back at rate, in units a second. Up to one more
// may have been there, as what is stated is rounded down, so a refusal is unlikely if most of a unit
// has come back. It speaks half as much against the rate as it is unlikely, as others may have spent the rest.
func (v *interval) steadily(rate float64) float64 {
	off := v.gained(rate*v.shortest, rate*v.longest)
	if v.lacked == 0 {
		return off
	}
	likely := max(0, min(1, v.lacked-v.low(rate*v.shortest)))
	return max(off, min(most, -math.Log(likely))/2)
}
