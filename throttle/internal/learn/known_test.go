package learn

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// taught is a Learner that has played against a server with such a limiter for that
// long, and the instant at which it ends.
func taught(seed uint64, limit shape, size float64, during Instant) (*Learner, Instant) {
	g := &game{r: rand.New(rand.NewPCG(seed, 5)), limit: limit, size: size, trip: trip, callers: 20}
	g.play(zero + during)
	return &g.l, zero + during
}

// TestWhatIsKnownOfALimit: nothing at first; after some windows there is a limit in
// figures, which explains the refusals and holds requests up; forgotten, there is none.
func TestWhatIsKnownOfALimit(t *testing.T) {
	var fresh Learner
	if _, ok := fresh.Leader(); ok || fresh.Believes() || fresh.Explains() || fresh.Unsure() || fresh.Shuts() || fresh.Words() != "" || fresh.Since() != 0 {
		t.Error("who was told nothing knows something")
	}
	unsure := 0
	var l *Learner
	for seed := range uint64(10) {
		var now Instant
		l, now = taught(seed, shape{family: slidingLog, per: 2 * second}, 20, 60*second)
		if x, ok := l.Leader(); !ok || math.Abs(x.Units-20) > 1 || x.Per != 2*time.Second || x.Burst != 0 {
			t.Errorf("knows %+v, want 20 per 2 s", x)
		}
		if !l.Believes() || l.Words() == "" || l.Since() == 0 || l.Since() > now {
			t.Errorf("believes %t, %q, since %v", l.Believes(), l.Words(), l.Since())
		}
		if !l.Explains() || l.Unsure() {
			unsure++
		}
	}
	if unsure > 4 { // a window from the first request may explain as much
		t.Errorf("%d of 10 are unsure", unsure)
	}
	if l.Forget(); l.Believes() || l.Since() != 0 {
		t.Error("it is not forgotten")
	}
}

// TestOutlookCountsThoseAhead: of a window of 20 per 2 s the 20 that wait next go with
// it, those behind them a period later each; a bucket lets one go after another.
func TestOutlookCountsThoseAhead(t *testing.T) {
	var fresh Learner
	if at := fresh.Outlook(zero, 1000); at != zero {
		t.Errorf("who knows nothing holds up until %v", at)
	}
	l, now := taught(5, shape{family: slidingLog, per: 2 * second}, 20, 60*second)
	first := l.Outlook(now, 0)
	if first < now || first > now+5*second/2 {
		t.Errorf("the first goes in %v, want within a window", first.Sub(now).Seconds())
	}
	for ahead, want := range map[int64]Instant{39: 4 * second, 100: 10 * second, 1000: 100 * second} {
		if at := l.Outlook(now, ahead); at < now+want-5*second/2 || at > now+want+5*second/2 {
			t.Errorf("with %d ahead in %.1f s, want about %.1f", ahead, at.Sub(now).Seconds(), float64(want)/1e9)
		}
	}
	l, now = taught(5, shape{family: bucket, per: second / 10}, 5, 60*second)
	for _, ahead := range []int64{50, 200} {
		if at := l.Outlook(now, ahead).Sub(now).Seconds(); math.Abs(at-float64(ahead)/10) > 2 {
			t.Errorf("with %d ahead in %.1f s, want %.1f", ahead, at, float64(ahead)/10)
		}
	}
}

// TestRecallBeginsWithWhatWasFound: a server whose limit is recalled refuses hardly
// anything, where a stranger has to be refused to find it. It gives way to what is known
// already, and takes nothing that is no limit.
func TestRecallBeginsWithWhatWasFound(t *testing.T) {
	for name, test := range map[string]struct {
		limit shape
		size  float64
		found Limit
	}{
		"a window": {shape{family: slidingLog, per: 2 * second}, 20, Limit{Units: 20, Per: 2 * time.Second}},
		"a bucket": {shape{family: bucket, per: second / 10}, 5, Limit{Units: 10, Per: time.Second, Burst: 5}},
	} {
		refused := map[bool]int{}
		for _, recalls := range []bool{false, true} {
			g := &game{r: rand.New(rand.NewPCG(5, 5)), limit: test.limit, size: test.size, trip: trip, callers: 20}
			if recalls {
				if g.l.Recall(zero, test.found); !g.l.Believes() {
					t.Fatalf("%s: nothing is believed", name)
				}
			}
			g.play(zero + 10*second)
			refused[recalls] = g.refused
			if n := g.since(zero); n < 75 {
				t.Errorf("%s, recalled %t: %d served in 10 s, want 100 or so", name, recalls, n)
			}
		}
		if refused[true] > refused[false]/2 {
			t.Errorf("%s: %d refused, and %d of a stranger's", name, refused[true], refused[false])
		}
	}
	for _, x := range []Limit{{}, {Units: 5}, {Per: time.Second}, {Units: -1, Per: time.Second}, {Units: math.NaN(), Per: time.Second}, {Units: 1e300, Per: time.Second}} {
		var l Learner
		if l.Recall(zero, x); l.Believes() {
			t.Errorf("%+v is believed", x)
		}
	}
	l, now := taught(5, shape{family: slidingLog, per: 2 * second}, 20, 60*second)
	if l.Recall(now, Limit{Units: 1, Per: time.Hour}); l.Outlook(now, 0) > now+3*second {
		t.Error("what is remembered is believed against what is known")
	}
}

// TestReopenedRemembersBansAlone: a host that refused for a while, and for no limit, is as
// good as new.
func TestReopenedRemembersBansAlone(t *testing.T) {
	var fresh Learner
	if fresh.Reopened(zero, zero); fresh.Believes() {
		t.Error("who knew nothing believes something")
	}
	var l Learner
	now := zero
	for range 12 {
		l.Sent(now)
		now += trip
		l.Refused(now, now-trip, Refusal{})
		now += second
	}
	if !l.Believes() {
		t.Fatal("refusals teach nothing")
	}
	if l.Reopened(now, now); l.Believes() || l.Outlook(now, 0) != now {
		t.Error("it still holds requests up")
	}
}

// TestLiftLetsOneGo: whatever pause was asked for.
func TestLiftLetsOneGo(t *testing.T) {
	var l Learner
	l.Sent(zero)
	l.Refused(zero+trip, zero, waits(time.Minute))
	now := zero + 2*trip
	if l.Next(now, 3).At <= now {
		t.Fatal("the pause holds nobody")
	}
	if l.Lift(); l.Next(now, 3).At != now {
		t.Error("one may not go")
	}
	l.Sent(now)
	if l.Next(now, 2).At == now {
		t.Error("a second one may")
	}
}

// TestWhatIsUnderWayIsCounted: as it is sent, ends, is lost or was not sent after all, and
// never below zero.
func TestWhatIsUnderWayIsCounted(t *testing.T) {
	var l Learner
	for range 4 {
		l.Sent(zero)
	}
	for i, end := range []func(){
		func() { l.Accepted(zero+trip, zero) },
		func() { l.Refused(zero+trip, zero, Refusal{}) },
		func() { l.Lost(zero) },
		func() { l.Unsent(zero) },
	} {
		if end(); l.UnderWay() != 3-i {
			t.Errorf("%d under way, want %d", l.UnderWay(), 3-i)
		}
	}
	l.Lost(zero)
	if l.UnderWay() != 0 {
		t.Errorf("%d under way", l.UnderWay())
	}
	if l.Under(7); l.UnderWay() != 7 {
		t.Errorf("%d under way, want what was said", l.UnderWay())
	}
}
