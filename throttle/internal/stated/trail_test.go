package stated

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

// Whoever shares a short window is not seen in every one of them. Our own units
// say when it is over only where nobody else was seen for some of them.
func TestTrailKnowsOthersForSomeWindows(t *testing.T) {
	const per = time.Second
	q := &Limit{counted: true, size: known(20.0), window: per}
	now := hourIn.Add(time.Minute)
	hear := func(left float64, refused bool) {
		sent := now.Add(-20 * time.Millisecond)
		q.trace(now, sent, &headers.Limit{Remaining: known(left)}, 1, false, refused)
	}
	hear(19, false)
	if d := q.trail.wait(now, 20, 20, 0, per); d != per {
		t.Errorf("alone it is full again in %v, want %v", d, per)
	}
	for _, refused := range []bool{false, true} {
		hear(8, refused)
		if d := q.trail.wait(now.Add(3*per), 20, 1, 0, per); d != meter.Unknown {
			t.Errorf("refused %t: it tells %v though others were seen three windows ago", refused, d)
		}
		if d := q.trail.wait(now.Add(4*per), 20, 1, 0, per); d != 0 {
			t.Errorf("refused %t: it tells %v when nobody was seen for four windows, want 0", refused, d)
		}
		now = now.Add(10 * per)
	}
}

// A trail is kept of short windows whose size is known.
func TestTrailsOfShortWindows(t *testing.T) {
	limit := headers.Limit{Remaining: known(8.0)}
	for name, test := range map[string]struct {
		q    *Limit
		kept bool
	}{
		"short":       {heardQuota(8, 10, 2*sec, 2*sec, nil), true},
		"the longest": {heardQuota(8, 10, shortWindow, shortWindow, nil), true},
		"longer":      {heardQuota(8, 10, shortWindow, shortWindow+1, nil), false},
		"no window":   {heardQuota(8, 10, sec, 0, nil), false},
		"no size":     {heardQuota(8, 10, sec, sec, func(q *Limit) { q.size.Known = false }), false},
		"not counted": {heardQuota(8, 10, sec, sec, func(q *Limit) { q.counted = false }), false},
		"of less":     {heardQuota(8, 0.5, sec, sec, nil), false},
		"of one":      {heardQuota(1, 1, sec, sec, nil), true},
	} {
		if test.q.trace(hourIn.Add(sec), hourIn, &limit, 1, true, false); (test.q.trail != nil) != test.kept {
			t.Errorf("%s: kept %t", name, !test.kept)
		}
	}
	q := heardQuota(8, 10, 2*sec, 2*sec, nil)
	if d := q.trail.wait(hourIn, 10, 1, 0, 2*sec); d != meter.Unknown {
		t.Errorf("none: %v", d)
	}
	for i := range 4 {
		q.trace(hourIn.Add(time.Duration(i)*sec/4), hourIn, &headers.Limit{Remaining: known(9 - float64(i))}, 1, false, false)
	}
	if n := q.trail.count(hourIn.Add(-1)); n != 4 {
		t.Errorf("%v units on the trail", n)
	}
	if n := q.trail.count(hourIn.Add(sec / 4)); n != 2 {
		t.Errorf("%v units after the second", n)
	}
	for _, test := range []struct {
		at   time.Duration
		cost float64
		want time.Duration
	}{{sec, 6, 0}, {sec, 7, sec}, {sec, 8, 5 * sec / 4}, {2 * sec, 7, 0}, {2 * sec, 8, sec / 4}, {sec, 11, meter.Unknown}} {
		if got := q.trail.wait(hourIn.Add(test.at), 10, test.cost, 0, 2*sec); got != test.want {
			t.Errorf("%v units at %v: %v, want %v", test.cost, test.at, got, test.want)
		}
	}
	if got := q.trail.wait(hourIn.Add(sec), 10, 5, 2, 2*sec); got != sec {
		t.Errorf("with two that it misses: %v", got)
	}
	q.trace(hourIn.Add(sec), hourIn, &headers.Limit{Remaining: known(2.0)}, 1, true, false) // others spend of it
	if got := q.trail.wait(hourIn.Add(sec), 10, 1, 0, 2*sec); got != meter.Unknown {
		t.Errorf("while others spend of it: %v", got)
	}
	if got := q.trail.wait(hourIn.Add(9*sec), 10, 1, 0, 2*sec); got != 0 {
		t.Errorf("four windows later: %v", got)
	}
	q.trace(hourIn.Add(4*sec), hourIn, &headers.Limit{}, 1, true, true)
	if q.trail.shared != hourIn.Add(12*sec) {
		t.Errorf("after a refusal it is not believed until %v", q.trail.shared.Sub(hourIn))
	}
}

// What was refused was not spent.
func TestWhatWasRefusedIsNoPartOfATrail(t *testing.T) {
	q := heardQuota(8, 10, 2*sec, 2*sec, nil)
	for i, refused := range []bool{false, true, false, true, false} {
		now := hourIn.Add(time.Duration(i) * sec / 10)
		m := q.Take(now, 1, true)
		l := stating(float64(7-i), 10, 2*sec, headers.Boundary)
		l.Window = known(2 * sec)
		q.Hear(now+1, &Answer{Sent: now, Limit: &l, Cost: 1, Drew: true, Refused: refused})
		q.Answered(now+1, 1, m, now)
	}
	if n := q.trail.count(hourIn); n != 3 {
		t.Errorf("%v of three units are on the trail", n)
	}
}

// Whatever the order in which answers come, what leaves a sliding log is used soon, and no
// more is let through than the log has room for.
func TestALogIsUsedAsItsUnitsComeBack(t *testing.T) {
	const size, per, end = 20, sec, 10 * sec
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 4))
		q := newQuota()
		q.judge.Lean(refill.Log)
		var accepted []meter.Instant // by the server, in the last window
		type flying struct {
			sent, arrives, answered meter.Instant
			says                    float64
			refused                 bool
			m                       meter.Token
		}
		var under []*flying
		served, refused := 0, 0
		for now := meter.Instant(1); now < meter.Instant(end); now += meter.Instant(time.Millisecond) {
			for len(under) < size && (q.heard != 0 || len(under) == 0) && q.At(now, 1) <= now {
				f := &flying{sent: now, arrives: now.Add(time.Duration(1+r.IntN(30)) * time.Millisecond), m: q.Take(now, 1, true)}
				f.answered = f.arrives.Add(time.Duration(1+r.IntN(30)) * time.Millisecond)
				under = append(under, f)
			}
			accepted = slices.DeleteFunc(accepted, func(at meter.Instant) bool { return at.Add(per) <= now })
			under = slices.DeleteFunc(under, func(f *flying) bool {
				if f.arrives == now {
					if f.refused = len(accepted) == size; f.refused {
						refused++
					} else {
						accepted, served = append(accepted, now), served+1
					}
					f.says = float64(size - len(accepted))
				}
				if f.answered != now {
					return false
				}
				l := stating(f.says, size, per, headers.Next)
				l.Window = known(per)
				q.Hear(now, &Answer{Sent: f.sent, Limit: &l, Cost: 1, Drew: true, Asked: f.m&Asks != 0, Refused: f.refused})
				q.Answered(now, 1, f.m, f.sent)
				return true
			})
		}
		if want := size * int(end/(per+61*time.Millisecond)); refused > 0 || served < want {
			t.Errorf("seed %d: %d were served, want at least %d, and %d refused", seed, served, want, refused)
		}
	}
}
