package meter

import (
	"math"
	"time"
)

// transit is how long after its grant a unit may reach the server, at most. A unit whose
// answer takes longer is dated at the end of the transit. So even if answers are slow, the
// rate is no less than Limit in Per and transit. A tenth of Per allows for variations of
// the network, and costs a tenth of the rate if all answers take longer.
func (s *Rate) transit() Instant { return Instant(s.Per / 10) }

// Grain is the time within which units of a window share a date. It is zero if a Log has
// room for an entry for each unit.
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
	sent   Log         // units by that moment
	out    *unanswered // units that have none yet: granted within the transit, not answered; nil: there never were any
	looked Instant     // when look was last called
}

// look gives a date to units that were granted longer than the transit ago, and forgets
// units that have left the window.
func (w *window) look(now Instant, s *Rate) {
	if now == w.looked { // often: Take follows At at the same instant
		return
	}
	w.looked = now
	for w.out.units() > 0 {
		t, ok := w.out.next(now - s.transit())
		if !ok {
			break
		}
		w.sent.Add(t.At+s.transit(), t.N, s.grain)
	}
	if e := w.sent.Entries; len(e) > 0 && e[0].At > now-Instant(s.Per) {
		return // as mostly: there is nothing to forget, nor to free
	}
	if w.sent.Forget(now - Instant(s.Per)); len(w.sent.Entries) == 0 {
		w.out.shrink() // an idle key is small
	}
}

// used is how many units are in the window, at the time of the last look.
func (w *window) used() int64 { return w.sent.Sum + w.out.units() }

// at is the earliest instant at which n units fit, where n <= s.Limit. For units whose
// answers have not come it assumes that they come now.
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

// answersIn is about how long answers take, if units are spent as fast as in the last per:
// a unit counts for so much longer than per. By Little's law it is the number of units
// under way, divided by the rate.
func (w *window) answersIn(per time.Duration) time.Duration {
	if w.sent.Sum <= 0 {
		return 0
	}
	return time.Duration(float64(per) * min(1, float64(w.out.units())/float64(w.sent.Sum)))
}

// take charges n units: held by a request that awaits its answer, or dated now.
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

// inherit puts what is in o, whose Per may differ, into the empty w.
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

// under returns w.out, and makes it if there is none. The keys of a Limiter need none.
func (w *window) under() *unanswered {
	if w.out == nil {
		w.out = new(unanswered)
	}
	return w.out
}

// answered gives the date now to n units that were granted at granted.
func (w *window) answered(now Instant, s *Rate, n int64, granted Instant) {
	w.look(now, s)
	if n = w.out.remove(granted, n); n > 0 {
		w.sent.Add(now, n, s.grain)
	}
}

// back takes out n units of a grant.
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

// state puts what is in the window into s.
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
