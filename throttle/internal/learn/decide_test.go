package learn

import (
	"testing"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
)

// TestNobodyIsHeldForLong: no wait is longer than 1.25 times that until the candidates have
// room by half of their weights, however dear a refusal is and whatever the others say.
func TestNobodyIsHeldForLong(t *testing.T) {
	const now = zero
	log := func(per Instant, weight float64) candidate {
		return candidate{shape: shape{family: slidingLog, per: per}, state: state{level: 1}, size: 1, weight: weight}
	}
	for _, c := range []struct {
		likely    float64 // weighs the candidate that has room after 10 s; the other has it after 1000 s
		at, until Instant
	}{
		{.6, now + 10*second, now + 13*second},
		{.4, now + 1000*second, now + 1251*second},
	} {
		m := &mind{sentAt: now, taken: now}
		m.bank.of = []candidate{log(10*second, c.likely), log(1000*second, 1-c.likely)}
		m.bank.log = []entry{{at: now, last: now, taken: 1}}
		m.bank.live, m.bank.flow, m.bank.paused = 2, 1, 9000*second // is what a refusal costs
		if p := m.decide(now, 1); p.At < c.at || p.At > c.until {
			t.Errorf("weight %v: waits for %v s, want %v to %v", c.likely, (p.At-now)/second, (c.at-now)/second, (c.until-now)/second)
		}
	}
}

// TestAnswersAreAwaitedForAWhile: for a second, or sixteen times as long as usual. Where
// nobody knows what is usual, for as long as if answers took half a second.
func TestAnswersAreAwaitedForAWhile(t *testing.T) {
	const heard = zero
	for _, c := range []struct{ usual, now, want Instant }{
		{0, heard, heard + 8*second},
		{second / 100, heard, heard + second},
		{second, heard, heard + 16*second},
		{second, heard + 20*second, heard + 20*second}, // no longer
	} {
		m := &mind{}
		m.bank.mean, m.bank.event = c.usual, heard
		if got := m.answers(c.now); got != c.want {
			t.Errorf("usual are %v, %v after the last event: until %v after it, want %v", span(c.usual), span(c.now-heard), span(got-heard), span(c.want-heard))
		}
	}
}

// TestWhatIsNotRefusedEarnsTrust: refusals come at once, and answers after ten seconds. As
// many are sent meanwhile as two fifths of what a limiter of 20 a second allows, though nobody is
// answered.
func TestWhatIsNotRefusedEarnsTrust(t *testing.T) {
	const size, rate, way = 20, 20, second / 50
	var l Learner
	level, last, accepted, refused := 0.0, zero, 0, 0
	var heard []Instant // when refusals will be
	for now := zero; now < zero+9*second; now += second / 200 {
		for len(heard) > 0 && heard[0] <= now {
			l.Refused(now, heard[0]-2*way, Refusal{})
			heard = heard[1:]
			refused++
		}
		if l.Next(now, 50).At > now {
			continue
		}
		l.Sent(now)
		level = max(0, level-rate*float64(now-last)/float64(second))
		if last = now; level+1 <= size {
			level++
			accepted++
		} else {
			heard = append(heard, now+2*way)
		}
	}
	if most := size + 9*rate; accepted < most*2/5 || refused > accepted/5 {
		t.Errorf("%d of %d were accepted, %d refused", accepted, most, refused)
	}
}

// TestLimitsThatAgreeAreTrustedTogether: a window and a log that are as fast share the weight. Others may
// be right as well, so who wait for them ask when a guessed pause would be over.
func TestLimitsThatAgreeAreTrustedTogether(t *testing.T) {
	const per, now = 180 * second, zero + second
	for _, c := range []struct {
		second float64 // how many times as fast as the first
		sure   bool
	}{{1, true}, {2, false}} {
		m := mind{refused: zero, refusing: true, streak: zero, allow: 10}
		for i, f := range [...]family{windowFirst, slidingLog, bucket} {
			x := candidate{shape: shape{family: f, per: per}, size: 1, weight: .4}
			if x.level, x.start, x.open = 1, zero, true; i > 0 {
				x.per, x.weight = Instant(float64(per)/c.second), .3
			}
			m.bank.of = append(m.bank.of, x)
		}
		l := m.bank.sent(zero, 1, 0, 0)
		l.under, l.taken = 0, 1
		m.bank.live, m.bank.epochs = 3, []epoch{{id: 1, streak: 1, heard: zero}}
		if at, most := m.decide(now, 1).At, zero.Add(cooldown.LongestGuess(0)); (at > most) != c.sure {
			t.Errorf("two of %v times the rate: sent after %v s", c.second, (at-zero)/second)
		}
	}
}
