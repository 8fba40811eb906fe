package concurrency

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// jointOf is a limit that was agreed on at now, and shown by the host or not.
func jointOf(now meter.Instant, most int, shown bool) *Joint {
	j := new(Joint)
	j.Take(now, most, shown)
	return j
}

// A refusal shows how many all processes had under way, once those are counted that were sent
// before all of them took places; until then it halves the limit at most. Of those that were
// under way at the last cut the host serves one less for each that is refused.
func TestJointCrowded(t *testing.T) {
	now := meter.Instant(time.Minute)
	for _, test := range []struct {
		name      string
		shown     bool
		before    bool // the last cut
		n         int
		want      int
		wantShown bool
	}{
		{"counted", true, false, 8, 8, true},
		{"all that may be", true, false, 10, 9, true},
		{"more than are agreed on", true, false, 15, 9, true},
		{"alone", true, false, 1, 1, true},
		{"not all counted", false, false, 2, 5, false},
		{"nearly all counted", false, false, 8, 8, false},
		{"sent before", true, true, 3, 9, true},
		{"sent before, not all counted", false, true, 3, 10, false},
	} {
		j, sent := jointOf(now, 10, test.shown), now.Add(1)
		if test.before {
			sent = now.Add(-1)
		}
		j.Crowded(now.Add(time.Second), sent, test.n)
		if most, shown := j.Most(); most != test.want || shown != test.wantShown {
			t.Errorf("%s: %d, shown %v, want %d, %v", test.name, most, shown, test.want, test.wantShown)
		}
	}
}

// All are counted once a request was answered that was sent after the first limit was heard
// of, and twice the time has passed that answers take.
func TestJointKnows(t *testing.T) {
	now, trip := meter.Instant(time.Minute), time.Second
	for _, test := range []struct {
		sent, after time.Duration
		want        bool
	}{{1, 2 * trip, true}, {-1, 2 * trip, false}, {1, 2*trip - 1, false}} {
		j := jointOf(now, 10, false)
		j.Answered(now.Add(test.after), now.Add(test.sent), trip, 1, 4, false)
		j.Crowded(now.Add(3*trip), now.Add(2*trip), 5)
		if _, shown := j.Most(); shown != test.want {
			t.Errorf("%+v: shown %v", test, shown)
		}
	}
}

// An answer to a request that was sent before the last cut does not show that the host serves
// more than it was cut to.
func TestJointHoldsAfterACut(t *testing.T) {
	now := meter.Instant(time.Minute)
	j := jointOf(now, 10, false)
	j.Answered(now.Add(time.Second), now-1, time.Second, 1, 2, true)
	if most, _ := j.Most(); most != 10 {
		t.Errorf("%d, want 10", most)
	}
}

// As long as processes send requests that the others do not count, a refusal takes nothing
// back of what the host showed.
func TestJointAlone(t *testing.T) {
	now, trip := meter.Instant(time.Minute), time.Second
	j := jointOf(now, 10, true)
	j.Alone(now.Add(trip))
	j.Take(now.Add(trip/2), 11, true)
	j.Answered(now.Add(3*trip-1), now.Add(trip+1), trip, 1, 4, false)
	if j.Crowded(now.Add(3*trip), now.Add(2*trip), 2); int(j.most) != 11 {
		t.Errorf("%v, want 11", j.most)
	}
	j.Answered(now.Add(3*trip), now.Add(trip+1), trip, 1, 4, false)
	if j.Crowded(now.Add(3*trip), now.Add(2*trip), 2); int(j.most) != 2 {
		t.Errorf("%v, want 2 when all are counted again", j.most)
	}
}

// A limit that was shown is tried again after as many answers to all processes as with one
// process: a process takes its own for its part of them. One that was not doubles in a round
// trip. Neither grows unless as many are under way.
func TestJointGrows(t *testing.T) {
	now := meter.Instant(time.Minute)
	for _, test := range []struct {
		name     string
		shown    bool
		own, all int
		full     bool
		answers  int
		want     int
	}{
		{"shown", true, 10, 10, true, 39, 10},
		{"shown, with all answers", true, 10, 10, true, 40, 11},
		{"shown, with a fifth of them", true, 2, 10, true, 8, 11},
		{"shown, but not full", true, 10, 10, false, 100, 10},
		{"not shown", false, 1, 10, true, 1, 12},
		{"not shown, as many answers as are under way", false, 10, 10, true, 10, 20},
		{"not shown, not full", false, 1, 10, false, 9, 10},
	} {
		j := jointOf(now, 10, test.shown)
		for range test.answers {
			j.Answered(now, now, time.Second, test.own, test.all, test.full)
		}
		if most, _ := j.Most(); most != test.want {
			t.Errorf("%s: %d, want %d", test.name, most, test.want)
		}
	}
}

// What was shown is believed for ceilingFor. A limit of which nothing was refused for as long,
// though four times as many were under way, is none.
func TestJointEnds(t *testing.T) {
	now := meter.Instant(time.Minute)
	j := jointOf(now, 10, true)
	now = now.Add(ceilingFor)
	j.Answered(now, now, time.Second, 10, 10, true)
	if _, shown := j.Most(); shown || !j.Shares() {
		t.Errorf("shown %v, shares %v after %v", shown, j.Shares(), ceilingFor)
	}
	for range 40 {
		j.Answered(now.Add(1), now, time.Second, 10, 10, true)
	}
	if j.Shares() {
		most, _ := j.Most()
		t.Errorf("still %d", most)
	}
}

// A process's own limit is the one that was agreed on, and none once that has ended.
func TestAgree(t *testing.T) {
	now := meter.Instant(time.Minute)
	f := &Limit{limit: 2}
	if f.Agree(now, 7); f.Allowed() != 7 || !f.Crowds() || !f.Cut() {
		t.Errorf("allows %d, crowds %v, cut %v", f.Allowed(), f.Crowds(), f.Cut())
	}
	if f.Agree(now, 0); f.Crowds() || f.Cut() {
		t.Errorf("crowds %v, cut %v", f.Crowds(), f.Cut())
	}
}
