package concurrency

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

const hourIn = meter.Instant(time.Hour)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

// How a limit on requests at a time grows with a good answer.
func TestSlowStartGrows(t *testing.T) {
	lost := func(ceiling float64) *losses {
		return &losses{cut: hourIn.Add(0), crowd: hourIn.Add(0), ceiling: ceiling}
	}
	for _, test := range []struct {
		name  string
		f     Limit
		at    time.Duration
		limit float64
		free  bool
	}{
		{"the first answer", Limit{}, time.Second, 4.2, false},
		{"a slow round trip", Limit{limit: 10, rtt: time.Second / 2}, time.Second, 10.5, false},
		{"a very slow one", Limit{limit: 10, rtt: 5 * time.Second}, time.Second, 11, false},
		{"up to the most", Limit{limit: 63.9}, time.Second, 64, false},
		{"the limits are stated", Limit{limit: 10, stated: true}, time.Second, 10.2, true},
		{"a thousand", Limit{limit: 64, good: 999}, time.Second, 64, true},
		{"one less", Limit{limit: 64, good: 998}, time.Second, 64, false},
		{"free already", Limit{limit: 3, good: 5, free: true}, time.Second, 3, true},
		{"after a loss, not full", Limit{limit: 10, underway: underway{ease: 10}, losses: lost(0)}, time.Second, 10, false},
		{"after a loss, full", Limit{limit: 10, underway: underway{ease: 10}, full: true, losses: lost(0)}, time.Second, 10.4, false},
		{"twice as many again, too soon", Limit{limit: 20, underway: underway{ease: 10}, good: 999, losses: lost(0)}, 10 * time.Second, 20, false},
		{"and late enough", Limit{limit: 20, underway: underway{ease: 10}, good: 999, losses: lost(0)}, 10*time.Second + 1, 20, true},
		{"not proved", Limit{limit: 20, underway: underway{ease: 10}, good: 998, losses: lost(0)}, 11 * time.Second, 20, false},
		{"not twice as many", Limit{limit: 19.9, underway: underway{ease: 10}, good: 999, losses: lost(0)}, 11 * time.Second, 19.9, false},
		{"far more", Limit{limit: 90, underway: underway{ease: 10}, losses: lost(0)}, 11 * time.Second, 64, false},
		{"below a ceiling", Limit{limit: 4, underway: underway{ease: 4}, losses: lost(8)}, time.Second, 4.25, false},
		{"at it", Limit{limit: 7.95, underway: underway{ease: 4}, losses: lost(8)}, time.Second, 8, false},
	} {
		f := test.f
		if f.Answered(hourIn.Add(test.at), 0); !near(f.limit, test.limit) || f.free != test.free {
			t.Errorf("%s: %v, free %t", test.name, f.limit, f.free)
		}
	}
}

// A ceiling is tried after sixteen answers at it, or four for each place, and
// forgotten after ten minutes.
func TestCeilingsAreTried(t *testing.T) {
	for _, test := range []struct {
		ceiling float64
		atIt    int
		full    bool
		at      time.Duration
		want    float64
		counted int
	}{
		{2, 14, true, time.Second, 2, 15}, {2, 15, true, time.Second, 3, 0}, {2, 15, false, time.Second, 2, 16}, {8, 30, true, time.Second, 8, 31}, {8, 31, true, time.Second, 9, 0},
		{2, 0, true, ceilingFor, 2, 1}, {2, 0, true, ceilingFor + 1, 0, 1},
	} {
		f := Limit{limit: 2, underway: underway{ease: 2}, full: test.full, losses: &losses{crowd: hourIn.Add(0), ceiling: test.ceiling, atIt: test.atIt}}
		if f.Answered(hourIn.Add(test.at), 0); f.ceiling != test.want || f.atIt != test.counted {
			t.Errorf("%+v: %v after %d answers", test, f.ceiling, f.atIt)
		}
	}
}

// Others are beside a request that started alone until as many were answered as were
// under way then.
func TestBesideOthers(t *testing.T) {
	for _, test := range []struct{ before, ended, later, others int }{
		{1, 0, 0, 1}, {1, 1, 0, 0}, {3, 2, 0, 1}, {3, 3, 5, 0}, {300, 254, 0, 1}, {300, 255, 0, 0},
	} {
		f := Limit{free: true}
		var gen uint32
		for range test.before {
			gen = f.Start(hourIn.Add(0))
		}
		later := hourIn.Add(time.Second / 10)
		f.Start(later)
		if !f.Alone(later, hourIn.Add(0)) {
			t.Fatal("not alone")
		}
		for range test.later {
			f.Start(later)
		}
		for range test.ended {
			f.End(gen)
		}
		if f.BesideOthers() != (test.others > 0) {
			t.Errorf("%+v: %t", test, f.BesideOthers())
		}
	}
	f := Limit{}
	f.Start(hourIn.Add(0))
	if f.Alone(hourIn.Add(0), hourIn.Add(-time.Hour)) || f.BesideOthers() {
		t.Error("alone beside nobody")
	}
}

// Room, the mean time of an answer, and when a slow start may be forgotten.
func TestSlowStartFigures(t *testing.T) {
	f := Limit{limit: 2.9, underway: underway{now: 1, since: meter.Never / 2}}
	if f.Opens(hourIn) != hourIn || f.full {
		t.Error("one of two")
	}
	if f.now = 2; f.Roomy(hourIn) || f.full {
		t.Error("two of two, but nobody is held up")
	}
	if f.Opens(hourIn) == hourIn || !f.full {
		t.Error("two of two")
	}
	if f.limit = 0.5; f.Allowed() != 1 {
		t.Errorf("%d at a time", f.Allowed())
	}
	if f.free = true; f.Opens(hourIn) != hourIn {
		t.Error("no limit")
	}
	f = Limit{}
	for i, rtt := range []time.Duration{0, 800, 1600, 0, -5, 100} {
		f.sample(rtt)
		want := []time.Duration{0, 800, 900, 900, 900, 800}[i]
		if f.rtt != want {
			t.Errorf("sample %d: %d", i, f.rtt)
		}
	}
	for name, test := range map[string]struct {
		f    Limit
		idle bool
	}{
		"fresh":             {Limit{}, true},
		"under way":         {Limit{underway: underway{now: 1}}, false},
		"just lost":         {Limit{underway: underway{ease: 3}, losses: &losses{cut: hourIn.Add(-time.Minute + 1)}}, false},
		"lost a minute ago": {Limit{underway: underway{ease: 3}, losses: &losses{cut: hourIn.Add(-time.Minute)}}, true},
		"got over it":       {Limit{losses: &losses{cut: hourIn.Add(-time.Minute + 1)}}, true},
		"under way still":   {Limit{underway: underway{now: 1}, losses: &losses{cut: hourIn.Add(-time.Hour)}}, false},
	} {
		if test.f.Idle(hourIn.Add(0)) != test.idle {
			t.Errorf("%s: idle %t", name, !test.idle)
		}
	}
}

// A limit begins with four, is gone after a thousand good answers, and is cut by losses.
func TestSlowStart(t *testing.T) {
	var f Limit
	if f.Allowed() != firstFlight {
		t.Fatalf("%d at a time to a fresh host", f.Allowed())
	}
	for range provenGood - 1 {
		f.Answered(hourIn, 20*time.Millisecond)
	}
	if f.Allowed() != fullFlight {
		t.Errorf("%d at a time after %d good answers, want %d", f.Allowed(), f.good, fullFlight)
	}
	f.Answered(hourIn, 20*time.Millisecond)
	if f.Allowed() != 0 {
		t.Error("still limited after a thousand good answers")
	}
	f.now = 100
	for range 40 {
		f.Lost(hourIn.Add(time.Second), 0)
		f.End(f.gen)
	}
	if f.Allowed() != 70 {
		t.Errorf("%d at a time after one burst of losses of 100, want 70", f.Allowed())
	}
	for i := range 40 {
		f.Lost(hourIn.Add(time.Duration(2+i)*time.Second), 0)
		f.End(f.gen)
	}
	for f.now > 0 {
		f.End(f.gen)
	}
	if f.Allowed() != 1 {
		t.Errorf("%d at a time after many losses, want 1", f.Allowed())
	}
	var slow Limit
	for range 4 {
		slow.Answered(hourIn, 2*time.Second)
	}
	if slow.Allowed() != 8 {
		t.Errorf("%d at a time after a slow round trip, want twice as many", slow.Allowed())
	}
}

// A host's slow start does not hold requests below the rate that is configured
// for them where answers are slow. What went wrong does.
func TestSlowStartKeepsTheConfiguredPace(t *testing.T) {
	slow := Limit{pace: time.Second / 10, rtt: freshPatience, begun: hourIn}
	for name, test := range map[string]struct {
		change func(f *Limit)
		want   meter.Instant
	}{
		"slow answers":          {func(f *Limit) {}, hourIn.Add(time.Second / 10)},
		"none for a long time":  {func(f *Limit) { f.rtt, f.old = 0, 1 }, hourIn.Add(time.Second / 10)},
		"no rate is configured": {func(f *Limit) { f.pace = 0 }, meter.Never},
		"quick answers":         {func(f *Limit) { f.rtt-- }, meter.Never},
		"no answer yet":         {func(f *Limit) { f.rtt = 0 }, meter.Never},
		"a loss":                {func(f *Limit) { f.ease = 1 }, meter.Never},
	} {
		f := slow
		if test.change(&f); f.paced() != test.want {
			t.Errorf("%s: the next may start at %v, want %v", name, f.paced(), test.want)
		}
	}
}

// A deadline is for the answer, too, as nine of ten are: what few take, however long,
// says nothing about the next.
func TestUsualTimeOfAnAnswer(t *testing.T) {
	const msec = time.Millisecond
	r := rand.New(rand.NewPCG(1, 17))
	even := func(from, to time.Duration) func() time.Duration {
		return func() time.Duration { return from + time.Duration(r.Int64N(int64(to-from)+1)) }
	}
	for _, test := range []struct {
		name     string
		takes    func() time.Duration
		from, to time.Duration // of the usual time, after the first answers
	}{
		{"the same", even(500*msec, 500*msec), 500 * msec, 650 * msec},
		{"evenly spread", even(200*msec, 1000*msec), 600 * msec, 1250 * msec},
		{"exponential", func() time.Duration { return time.Duration(r.ExpFloat64() * float64(300*msec)) }, 400 * msec, 3 * time.Second},
		{"one in 33 takes 20 s", func() time.Duration {
			if r.IntN(33) == 0 {
				return 20 * time.Second
			}
			return 50 * msec
		}, 50 * msec, 200 * msec},
		{"half take 20 s", func() time.Duration {
			if r.IntN(2) == 0 {
				return 20 * time.Second
			}
			return 50 * msec
		}, 10 * time.Second, 25 * time.Second},
	} {
		f := Host()
		if got := f.Usual(); got != 0 {
			t.Errorf("of a fresh host: %v", got)
		}
		f.Answered(0, 5*time.Second) // the first one takes as long as it likes
		for i := range 2000 {
			f.Answered(0, test.takes())
			if got := f.Usual(); i > 200 && (got < test.from || got > test.to) {
				t.Fatalf("%s: %v after %d answers, want %v to %v", test.name, got, i, test.from, test.to)
			}
		}
	}
}

// Where the server's word for its limits did not hold, the slow start goes on: all who
// waited for that word would go at once. Who has proved itself needs no start.
func TestASlowStartGoesOnWhereNothingHeld(t *testing.T) {
	for _, answers := range []int{10, provenGood} {
		f := Host()
		f.Stated()
		for range answers {
			f.End(f.Start(0))
			f.Answered(0, 0)
		}
		if !f.Free() {
			t.Errorf("after %d answers: at most %d at a time, though limits are stated", answers, f.Allowed())
		}
		f.Unstated()
		if proved := answers == provenGood; f.Free() != proved {
			t.Errorf("after %d answers, of which no limit was left: free %t, want %t", answers, f.Free(), proved)
		}
	}
}
