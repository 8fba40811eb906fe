package throttle

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/learn"
)

// believing is evidence of one limit, as of hourIn; without a burst it may be one of
// windows. It was found ten seconds ago.
func believing(units float64, per time.Duration, burst float64) *evidence {
	e := new(evidence)
	e.last = hourIn
	e.Recall(hourIn-instant(10*time.Second), learn.Limit{Units: units, Per: per, Burst: burst})
	return e
}

// TestWhatEndsUntoldIsNoEvidence: a request that another rule explains, or that was never
// sent, takes nothing of the limit that was found.
func TestWhatEndsUntoldIsNoEvidence(t *testing.T) {
	for _, told := range []bool{false, true} {
		e := believing(1, sec, 3)
		for range 3 {
			e.sent(hourIn)
			if told {
				e.accepted(hourIn, hourIn)
			}
			e.over(hourIn, hourIn)
		}
		if waits := e.at(hourIn, 1) > hourIn; waits != told {
			t.Errorf("three were told: %t; a fourth waits: %t", told, waits)
		}
	}
}

// TestTheTimeBeforeEvidence: the first request counts, though evidence is made by the
// second.
func TestTheTimeBeforeEvidence(t *testing.T) {
	l := learning1()
	if l.sent(hourIn); l.evidence != nil {
		t.Error("one request has made evidence")
	}
	l.sent(hourIn)
	for range 2 {
		l.evidence.refused(hourIn.Add(sec), hourIn, cooldown.Hint{}, time.Minute, false)
	}
	if !l.evidence.believes() {
		t.Error("two requests at an instant were refused, and no limit explains it")
	}
}
