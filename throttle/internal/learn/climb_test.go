package learn

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
)

// A server refused some requests at random and asked for five minutes, so the next refusal is
// feared. Now it serves all, and many wait. They do not wait for ever because some limit that is
// hardly likely has no room: the likeliest one has, and it is found that it is right.
func TestHardlyLikelyLimitsHoldNobodyUpForEver(t *testing.T) {
	const trip, sound, judged = Instant(40 * time.Millisecond), Instant(20 * time.Minute), Instant(35 * time.Minute)
	for _, tt := range []struct {
		seed  uint64
		share float64 // of requests that are refused at first
	}{{19, .05}, {39, .02}, {45, .02}} {
		dice, l := rand.New(rand.NewPCG(tt.seed, 2)), new(Learner)
		served := 0
		var flying []Instant
		for now, next := zero, zero; now < zero+judged+Instant(time.Minute); {
			waiting := 750
			if now < zero+sound {
				waiting = 1 + dice.IntN(20)
			}
			for ; len(flying) > 0 && flying[0]+trip <= now; flying = flying[1:] {
				if now >= zero+sound || dice.Float64() >= tt.share {
					l.Accepted(now, flying[0])
					continue
				}
				wait := 5 * time.Minute
				if dice.IntN(3) == 0 {
					wait = time.Second
				}
				l.Refused(now, flying[0], Refusal{Hint: cooldown.Hint{Known: true, Wait: wait}, MaxPause: 5 * time.Minute})
			}
			step := now + Instant(100*time.Millisecond)
			if len(flying) > 0 {
				step = min(step, flying[0]+trip)
			}
			switch p := l.Next(now, waiting); {
			case p.At > now:
				step = min(step, p.At)
			case next > now:
				step = min(step, next)
			default:
				l.Sent(now)
				if flying, step = append(flying, now), now+Instant(time.Millisecond); now < zero+sound {
					next = now + Instant(time.Duration(20+dice.IntN(200))*time.Millisecond)
				}
				if now >= zero+judged {
					served++
				}
			}
			now = max(now+1000, step)
		}
		if rate := served / 60; rate < 10 {
			t.Errorf("seed %d: %d a second are sent after a quarter of an hour, want at least 10; %s", tt.seed, rate, l.Words())
		}
	}
}

// TestAClimbBeginsHardlyFasterThanItsLeader: a unit may be about to leave a window in no time. A climb
// that begins then has no gap like that: hundreds of requests would go before the first is refused.
func TestAClimbBeginsHardlyFasterThanItsLeader(t *testing.T) {
	for _, f := range []family{bucket, slidingLog, windowFirst, counter} {
		per := second
		if f == bucket {
			per /= 24
		}
		now := zero + second
		m := mind{taken: now, sentAt: now, refused: now - second/2}
		m.bank.of = []candidate{{shape: shape{family: f, per: per}, size: 24, weight: 1}}
		p := m.climb.upward(now+1, Plan{At: now + second/1000, Reason: Believed}, &m, 1e6)
		if p.Reason != Found || p.At > now+second/1000 {
			t.Fatalf("family %d: nothing is tried: %+v", f, p)
		}
		if least := second / 24 * 4 / 5; m.climb.first < least {
			t.Errorf("family %d: at first requests go %v apart, want %v at least", f, time.Duration(m.climb.first), time.Duration(least))
		}
	}
}

// TestAClimbGoesOnNoFasterThanItWasTried: something else may let a request go only now and then. That these
// are accepted does not show that more would be.
func TestAClimbGoesOnNoFasterThanItWasTried(t *testing.T) {
	const apart, trip = second / 10, second
	var c climb
	c.first = second / 5
	c.sent(zero, &Plan{Reason: Found})
	for now := zero + apart; now < zero+20*second; now += apart {
		c.sent(now, &Plan{Reason: Believed})
		c.accepted(now, now-trip)
	}
	if c.gap > apart || c.gap < apart/3 {
		t.Errorf("requests went %v apart, and are to go %v apart", time.Duration(apart), time.Duration(c.gap))
	}
}
