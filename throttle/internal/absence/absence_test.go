package absence_test

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/absence"
	"github.com/weirhttp/weir/throttle/internal/meter"
)

const (
	sec    = time.Second
	hourIn = meter.Instant(time.Hour)
)

// let lets those go who wait for a host that is back, with so many more a second, and
// returns how many went in the busiest second and when nobody waited any more, zero: never.
func let(a *absence.Absence, waiting, rate float64, hold func(at time.Duration) bool) (most int, over time.Duration) {
	const step = time.Millisecond
	went := make([]int, 0, 60000)
	for at := time.Duration(0); at < time.Minute; at += step {
		waiting += rate * step.Seconds()
		now, n := hourIn.Add(at), 0
		for waiting >= 1 && a.At(now, now, int(waiting)) <= now && !hold(at) {
			a.Sent(now)
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
		a := absence.Back(hourIn, absence.Crowd{N: test.waiting, Within: test.span})
		most, over := let(a, float64(test.waiting), float64(test.waiting)/test.span.Seconds(), test.hold)
		if most > test.most || over == 0 || over > test.over {
			t.Errorf("%s: %d in a second, nobody waits after %v; want %d, %v", test.name, most, over, test.most, test.over)
		}
	}
}

// One for whom nobody waits is not held, nor anybody once those who waited may have gone.
func TestAReturnEnds(t *testing.T) {
	a := absence.Back(hourIn, absence.Crowd{N: 600, Within: 3 * time.Second})
	a.Sent(hourIn)
	if now := hourIn; a.At(now, now, 0) != now || a.At(now, now, 5) == now {
		t.Errorf("one goes at %v, one of five at %v", a.At(now, now, 0), a.At(now, now, 5))
	}
	if now := hourIn.Add(9*sec + 1); a.At(now, now, 5) != now {
		t.Error("it does not end")
	}
	var none *absence.Absence
	if now := hourIn; none.At(now, now.Add(sec), 5) != now.Add(sec) {
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
	}{{200, sec, sec / 2}, {2000, sec, sec / 4}, {20, sec, 5 * sec}, {0, 0, sec / 4}} {
		a := absence.New(hourIn, hourIn.Add(-test.span), absence.Crowd{N: max(1, test.waiting), Within: test.span})
		if got := a.At(hourIn, hourIn.Add(time.Hour), test.waiting+1).Sub(hourIn); got != test.want {
			t.Errorf("%d in %v: one asks after %v, want %v", test.waiting, test.span, got, test.want)
		}
	}
}
