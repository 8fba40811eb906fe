package meter

import (
	"math"
	"time"
)

// transit is how long after its grant a unit may reach the server, at most. What
// is on its way for longer is taken to have been seen then, so that answers may
// take as long as they like: the rate is no less than Limit in Per and transit.
// A tenth is as much as a network may vary, and costs a tenth of the rate where
// no answer comes sooner.
func (s *Rate) transit() Instant { return Instant(s.Per / 10) }

// Grain is within what time units of a window share a date. As many as a Log may
// have entries need not.
func (s Spec) Grain() Instant {
	if s.Limit <= 2*Exact {
		return 0
	}
	return Instant(s.Per / Exact)
}

// window counts the units of the last Per, by the latest moment at which the
// server may have seen them: when their answer came, or the transit after they
// were granted if that is sooner. The zero value is empty.
type window struct {
	sent   Log         // by that moment
	out    *unanswered // granted, not answered, younger than the transit; nil: none were ever
	looked Instant     // when it was last brought up to date
}

// look dates what is under way for longer than the transit, and forgets what has
// left the window.
func (w *window) look(now Instant, s *Rate) {
	if now == w.looked { // as when a grant follows the question: what came since is younger
		return
	}
	w.looked = now
	for w.out != nil {
		t, ok := w.out.next(now - s.transit())
		if !ok {
			break
		}
		w.sent.Add(t.At+s.transit(), t.N, s.grain)
	}
	if w.sent.Forget(now - Instant(s.Per)); len(w.sent.Entries) == 0 {
		w.out.shrink() // an idle key is small
	}
}

// used is the units in the window, as of the last look.
func (w *window) used() int64 { return w.sent.Sum + w.out.units() }

// at is the earliest instant at which n units fit, n <= s.Limit. For what is
// under way it assumes that the answers come now.
func (w *window) at(now Instant, s *Rate, n int64) Instant {
	w.look(now, s)
	need := w.used() + n - int64(s.Limit)
	if need <= 0 {
		return now
	}
	for _, t := range w.sent.Entries {
		if need -= t.N; need <= 0 {
			return t.At.Add(s.Per)
		}
	}
	return now.Add(s.Per)
}

// answersIn is about how long units are under way, if as many are spent all the
// time as in the last Per: for so long, each counts beyond Per.
func (w *window) answersIn(per time.Duration) time.Duration {
	if w.sent.Sum <= 0 {
		return 0
	}
	return time.Duration(float64(per) * min(1, float64(w.out.units())/float64(w.sent.Sum)))
}

// take charges n units: of a request that awaits its answer, or sent now.
func (w *window) take(now Instant, s *Rate, n int64, held bool) {
	if n <= 0 {
		return
	}
	w.look(now, s)
	n = min(n, math.MaxInt64-w.used()) // a settlement may be of any size
	if held {
		w.under().add(now, n)
	} else {
		w.sent.Add(now, n, s.grain)
	}
}

// inherit begins w with what o, whose Per may be another, has in it.
func (w *window) inherit(now Instant, s *Rate, o *window) {
	w.sent = Log{Sum: o.sent.Sum, first: longAgo, Entries: append([]Entry(nil), o.sent.Entries...)}
	if o.out != nil {
		for _, t := range o.out.log[o.out.head:] {
			if t.At+s.transit() > now {
				w.under().add(t.At, t.N)
			} else {
				w.sent.Add(now, t.N, 0)
			}
		}
	}
	w.look(now, s)
}

// under is w.out, made if need be: a Limiter's keys do without.
func (w *window) under() *unanswered {
	if w.out == nil {
		w.out = new(unanswered)
	}
	return w.out
}

// answered dates n units that were granted at granted.
func (w *window) answered(now Instant, s *Rate, n int64, granted Instant) {
	w.look(now, s)
	if n = w.out.remove(granted, n); n > 0 {
		w.sent.Add(now, n, s.grain)
	}
}

// back takes n units of a grant out.
func (w *window) back(now Instant, s *Rate, n int64, granted, answered Instant) {
	w.look(now, s)
	date := granted + s.transit()
	if answered == 0 {
		n -= w.out.remove(granted, n)
	} else {
		date = min(date, answered)
	}
	if date.Add(s.Per) > now {
		w.sent.remove(date, n)
	}
}

// state tells s what is in the window.
func (w *window) state(now Instant, r *Rate, s *State) {
	w.look(now, r)
	used := w.used()
	s.Left, s.Idle = float64(int64(r.Limit)-used), used == 0
	if w.out.units() > 0 {
		s.Full = now.Add(r.Per)
	} else if last := len(w.sent.Entries) - 1; last >= 0 {
		s.Full = w.sent.Entries[last].At.Add(r.Per)
	}
}
