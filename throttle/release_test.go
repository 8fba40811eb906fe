package throttle

import (
	"testing"
	"time"
)

// These look inside: the gaps between those that are let go show at the surface only
// blurred by the slow start.

// let lets those go who wait for a host that is back, with so many more a second, and
// returns how many went in the busiest second and when nobody waited any more, zero: never.
func let(a *absence, waiting, rate float64, hold func(at time.Duration) bool) (most int, over time.Duration) {
	const step = time.Millisecond
	went := make([]int, 0, 60000)
	for at := time.Duration(0); at < time.Minute; at += step {
		waiting += rate * step.Seconds()
		now, n := hourIn.Add(at), 0
		for waiting >= 1 && a.at(now, now, int(waiting)) <= now && !hold(at) {
			a.sent(now)
			waiting--
			n++
		}
		went = append(went, n)
		if waiting < 1 && over == 0 {
			over = at
		}
	}
	sum := 0
	for i, n := range went {
		if sum += n; i >= 1000 {
			sum -= went[i-1000]
		}
		most = max(most, sum)
	}
	return most, over
}

func never1(time.Duration) bool { return false }

// Those who waited for a host that is back are let go a third faster than they came, with
// those who come meanwhile, and then nobody is held. What stands still meanwhile does not
// make the end of it a herd.
func TestThoseWhoWaitedGoOneAfterAnother(t *testing.T) {
	for _, test := range []struct {
		name    string
		waiting int
		span    time.Duration
		hold    func(at time.Duration) bool
		most    int
		over    time.Duration
	}{
		{"200/s for 3 s", 600, 3 * sec, never1, 269, 9200 * time.Millisecond},
		{"500/s for 10 s", 5000, 10 * sec, never1, 669, 31 * sec},
		{"held up for a second", 600, 3 * sec, func(at time.Duration) bool { return at > 2*sec && at < 3*sec }, 269, 13300 * time.Millisecond},
		{"few", 10, 10 * sec, never1, 12, 1200 * time.Millisecond},
	} {
		a := returned(hourIn, crowd{test.waiting, test.span})
		most, over := let(a, float64(test.waiting), float64(test.waiting)/test.span.Seconds(), test.hold)
		if most > test.most || over == 0 || over > test.over {
			t.Errorf("%s: %d in a second, nobody waits after %v; want %d, %v", test.name, most, over, test.most, test.over)
		}
	}
}

// One for whom nobody waits is not held, nor anybody once those who waited may have gone.
func TestAReturnEnds(t *testing.T) {
	a := returned(hourIn, crowd{600, 3 * time.Second})
	a.sent(hourIn)
	if now := hourIn; a.at(now, now, 0) != now || a.at(now, now, 5) == now {
		t.Errorf("one goes at %v, one of five at %v", a.at(now, now, 0), a.at(now, now, 5))
	}
	if now := hourIn.Add(9*sec + 1); a.at(now, now, 5) != now {
		t.Error("it does not end")
	}
	var none *absence
	if now := hourIn; none.at(now, now.Add(sec), 5) != now.Add(sec) {
		t.Error("none holds somebody, or lets somebody go")
	}
}

// While a host may be down, one for each hundred that come asks, whatever limit is
// believed in.
func TestOneOfAHundredAsks(t *testing.T) {
	for _, test := range []struct {
		waiting int
		span    time.Duration
		want    time.Duration
	}{{200, sec, sec / 2}, {2000, sec, askGap}, {20, sec, 5 * sec}, {0, 0, askGap}} {
		a := newAbsence(hourIn, hourIn.Add(-test.span), crowd{max(1, test.waiting), test.span})
		if got := a.at(hourIn, hourIn.Add(time.Hour), test.waiting+1).Sub(hourIn); got != test.want {
			t.Errorf("%d in %v: one asks after %v, want %v", test.waiting, test.span, got, test.want)
		}
	}
}
