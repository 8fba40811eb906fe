package throttle

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
)

// Whoever shares a short window is not seen in every one of them. Our own units
// say when it is over only where nobody else was seen for some of them.
func TestTrailKnowsOthersForSomeWindows(t *testing.T) {
	const per = time.Second
	q := &quota{counted: true, size: known(20.0), key: quotaKey{window: per}}
	now := at0(time.Minute)
	hear := func(left float64, refused bool) {
		sent := now.Add(-20 * time.Millisecond)
		q.trace(now, sent, headers.Limit{Remaining: known(left)}, 1, false, refused)
	}
	hear(19, false)
	if d := q.trail.wait(now, 20, 20, 0, per); d != per {
		t.Errorf("alone it is full again in %v, want %v", d, per)
	}
	for _, refused := range []bool{false, true} {
		hear(8, refused)
		if d := q.trail.wait(now.Add(3*per), 20, 1, 0, per); d != forever {
			t.Errorf("refused %t: it tells %v though others were seen three windows ago", refused, d)
		}
		if d := q.trail.wait(now.Add(4*per), 20, 1, 0, per); d != 0 {
			t.Errorf("refused %t: it tells %v when nobody was seen for four windows, want 0", refused, d)
		}
		now = now.Add(10 * per)
	}
}
