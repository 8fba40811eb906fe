package learn

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestHostsThatWorkForLongAreUsed: limiters refuse at once, and the host works for up to five seconds
// on what it accepts. Nearly all of what they bear is used. If the answers themselves were awaited, it
// would be four fifths: hardly anything for seconds after each refusal.
func TestHostsThatWorkForLongAreUsed(t *testing.T) {
	sum, games := 0.0, 0
	for _, work := range []Instant{second * 7 / 10, 2 * second, 5 * second} {
		for _, rate := range []float64{5, 20, 80} {
			for _, kept := range []shape{{family: bucket, per: Instant(float64(second) / rate)}, {family: slidingLog, per: second}} {
				for seed := range uint64(4) {
					g := newGame(rate, rate, 60*time.Millisecond, int(1.4*rate*float64(work)/1e9)+3)
					g.r, g.limit, g.work = rand.New(rand.NewPCG(seed, 78)), kept, work
					if seed%2 == 1 {
						g.hint = waits(time.Second)
					}
					until := zero + 20*second + 8*work
					g.play(until)
					used := float64(g.since(until-10*second)) / 10 / rate
					if sum, games = sum+used, games+1; used < .3 {
						t.Errorf("%v/s, %v, works for %v, seed %d: only %.2f of it is used: %v", rate, kept.family, time.Duration(work), seed, used, g.l.Words())
					}
				}
			}
		}
	}
	if t.Logf("%.3f is used", sum/float64(games)); sum < .94*float64(games) {
		t.Errorf("%.3f of what hosts bear is used, want .94", sum/float64(games))
	}
}

// accepting is a Learner that was refused once at zero, and has sent one each step since then without
// an answer, until now.
func accepting(n int, step Instant) (l *Learner, now Instant) {
	l = new(Learner)
	l.Sent(zero - second)
	l.Accepted(zero-second+trip, zero-second)
	l.Sent(zero)
	now = zero + trip
	l.Refused(now, zero, Refusal{})
	for range n {
		now += step
		l.Next(now, 1000)
		l.Sent(now)
	}
	return l, now
}

// TestWhatIsUnderWayIsRemembered: thousands of requests are under way. Those that would have been refused
// by now are remembered as accepted ones are, many together, so that none is forgotten.
func TestWhatIsUnderWayIsRemembered(t *testing.T) {
	l, now := accepting(3000, second/50)
	n := 0
	for _, x := range l.mind.bank.log {
		n += int(x.under) + int(x.taken)
	}
	if n < 3000 || l.mind.bank.cut {
		t.Errorf("%d of 3000 are remembered after %v", n, time.Duration(now-zero))
	}
	if l.busy != 3000 {
		t.Errorf("%d are under way, want 3000", l.busy)
	}
}

// TestALateRefusalCounts: a request that was taken for accepted is refused after all. It counts as
// refused then, once.
func TestALateRefusalCounts(t *testing.T) {
	l, now := accepting(300, second/50)
	sent := zero + trip + 100*second/50
	l.Refused(now, sent, Refusal{})
	taken, refused := 0, 0
	for _, x := range l.mind.bank.log {
		taken, refused = taken+int(x.under)+int(x.taken), refused+int(x.refused)
	}
	if taken != 300 || refused != 2 { // with the first two
		t.Errorf("%d accepted or under way and %d refused, want 300 and 2", taken, refused)
	}
}

// TestAHostThatHangsWasNotSeenToServe: who refuses for a reason that may be no limit, and does not answer
// any more, may be down. Nothing is taken for accepted until something was served.
func TestAHostThatHangsWasNotSeenToServe(t *testing.T) {
	for _, doubtful := range []bool{false, true} {
		l := new(Learner)
		l.Sent(zero)
		l.Refused(zero+trip, zero, Refusal{Doubtful: doubtful})
		l.Sent(zero + second)
		l.Next(zero+20*second, 10)
		if served := l.mind.taken > 0; served == doubtful {
			t.Errorf("doubtful %v: taken for served: %v", doubtful, served)
		}
	}
}
