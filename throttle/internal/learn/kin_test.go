package learn

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
)

// banning is a server of five requests a second that shuts out for half a minute who asks for more,
// and anew if that asks meanwhile.
type banning struct {
	taken []Instant
	until Instant
}

func (s *banning) serves(at Instant) bool {
	for len(s.taken) > 0 && s.taken[0] <= at.Add(-time.Second) {
		s.taken = s.taken[1:]
	}
	if at < s.until || len(s.taken) == 5 {
		s.until = at.Add(30 * time.Second)
		return false
	}
	s.taken = append(s.taken, at)
	return true
}

// ask sends n requests to s, one after the other, each when l says so, and returns how many were
// refused.
func (s *banning) ask(l *Learner, now Instant, n int) (refused int, end Instant) {
	dice := rand.New(rand.NewPCG(1, 95))
	for range n {
		if at := l.Next(now, 20).At; at > now && at != never {
			now = at
		}
		l.Sent(now)
		sent := now
		now = now.Add(time.Duration(20+dice.IntN(5)) * time.Millisecond)
		if s.serves(sent.Add(10 * time.Millisecond)) {
			l.Accepted(now, sent)
			continue
		}
		refused++
		l.Refused(now, sent, Refusal{Hint: cooldown.Hint{}})
	}
	return refused, now
}

// What kin have found of a ban is obeyed before the first refusal, and what they have found of a
// limit without one is not: a refusal tells more than it costs.
func TestKinAreHeardBeforeTheFirstRefusalIfItIsDear(t *testing.T) {
	var old, young Learner
	alone, now := new(banning).ask(&old, Instant(time.Hour), 600)
	var kin Kin
	if kin.Add(&old); !kin.fears() {
		t.Fatalf("after %d refusals kin believe in %q, want a ban", alone, old.Words())
	}
	young.Resemble(now, kin)
	if refused, _ := new(banning).ask(&young, now, 600); !young.Believes() || 2*refused > alone {
		t.Errorf("%d were refused, and %d for the first: want at most half as many", refused, alone)
	}
	var free Learner
	free.Resemble(now, Kin{of: []lent{{shape{family: slidingLog, per: Instant(time.Second)}, 5, 1}}})
	if free.Believes() {
		t.Errorf("%q is believed without a refusal", free.Words())
	}
}

// What kin lent to a Learner does not come back to them as its own.
func TestKinDoNotConvinceOneAnother(t *testing.T) {
	var old, young Learner
	_, now := new(banning).ask(&old, Instant(time.Hour), 600)
	var kin, back Kin
	kin.Add(&old)
	young.Resemble(now, kin)
	if back.Add(&young); len(back.of) > 0 {
		t.Errorf("a Learner that was never refused lends %v", back.of)
	}
}
