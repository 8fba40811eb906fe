package stated

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

// After a reset of a limit that only refusals state, as many units are sent as were served after
// the reset before, then one more, and then twice as many as were served: never more than the
// limit. Where no reset was known, nothing tells how many there are.
func TestWhatOnlyRefusalsStateIsFilledStepByStep(t *testing.T) {
	const size = 20.0
	q, now := newQuota(), hourIn
	q.size = known(size)
	refused := func() {
		q.Hear(now, &Answer{Sent: now, Limit: &headers.Limit{Quota: known(size), Remaining: known(0.0), Reset: known(time.Second)}, Cost: 1, Refused: true})
	}
	// fill serves whatever may be sent, a round trip after the other, until there are so many.
	// It returns how many were sent in each.
	fill := func(until float64) (trips []float64) {
		asked := q.fresh.IsOpen()
		for n := 1.0; until > 0; n = q.level(now) {
			now = now.Add(time.Millisecond)
			trips = append(trips, n)
			for ; n > 0 && until > 0; n-- {
				q.Unmentioned(now, asked, true, 1)
				asked, until = false, until-1
			}
		}
		return trips
	}
	for _, test := range []struct {
		what  string
		until float64 // so many are served, and the next is refused
		reset bool    // the refusal says when the limit resets, and that has passed
		want  []float64
	}{
		{"the first reset", 7, true, []float64{1, 2, 4}},
		{"seven were served", 12, true, []float64{1, 6, 1, 9}},
		{"twelve were served", 20, true, []float64{1, 11, 1, 7}},
		{"no reset", 7, false, []float64{1, 2, 4}},
	} {
		if test.reset {
			refused()
		}
		now = now.Add(2 * time.Second)
		if d := q.wait(now, 1); d != 0 || !q.fresh.IsOpen() {
			t.Fatalf("%s: nobody asks, and the wait is %v", test.what, d)
		}
		if got := fill(test.until); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v were sent in a round trip each, want %v", test.what, got, test.want)
		}
	}
}

// If only refusals state a limit and its window, all but what was sent within the last window may be
// sent, whatever kind of limit those refusals look like.
func TestWhatOnlyRefusalsStateIsCountedByWhatWasSent(t *testing.T) {
	for kind := refill.Window; kind <= refill.Counter; kind++ {
		q := heardQuota(0, 10, 0, 10*sec, func(q *Limit) { q.judge.Lean(kind) })
		now := hourIn
		for range 4 {
			q.Unmentioned(now, false, true, 1)
			q.trail.add(now, 1)
			now = now.Add(sec)
		}
		now = now.Add(7 * sec) // two of the four are older than a window
		if got := q.level(now); got != 8 {
			t.Errorf("it looks like kind %d: %v may be sent, want 8", kind, got)
		}
	}
}

// A limit that good answers stated is gone when eight more that came after its end do not. It is
// not if only a refusal stated it, or if the answers are from before its end.
func TestALimitIsGoneWhenItIsStatedNoMore(t *testing.T) {
	for _, test := range []struct {
		name    string
		refused bool          // the last answer to state it
		reset   time.Duration // zero: not stated
		sent    time.Duration // those that do not, after it
		want    int           // so many of them; zero: it stays
	}{
		{"after the reset", false, 10 * time.Second, 11 * time.Second, goneAfter},
		{"before the reset", false, 10 * time.Second, 9 * time.Second, 0},
		{"no reset", false, 0, attribution.StaleAfter + time.Second, goneAfter},
		{"no reset, a short while ago", false, 0, attribution.StaleAfter, 0},
		{"stated by a refusal", true, 10 * time.Second, 11 * time.Second, 0},
	} {
		q, now := newQuota(), hourIn
		l := headers.Limit{Quota: known(100.0), Remaining: known(50.0), Reset: headers.Opt[time.Duration]{Value: test.reset, Known: test.reset > 0}}
		for range 2 {
			q.Hear(now, &Answer{Sent: now, Limit: &l, Cost: 1, Refused: test.refused})
		}
		now = now.Add(test.sent)
		n := 0
		for gone := false; n < 3*goneAfter && !gone; n++ {
			q.Unmentioned(now, false, true, 1)
			gone = q.Silent(now, 1)
		}
		if want := cmp.Or(test.want, 3*goneAfter); n != want {
			t.Errorf("%s: gone after %d answers, want %d", test.name, n, want)
		}
	}
}
