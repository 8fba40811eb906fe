package stated

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

// What an answer says of a bucket is rounded down: what was reckoned is kept
// while the two agree.
func TestQuotaOfABucket(t *testing.T) {
	for _, test := range []struct {
		name           string
		left           float64
		newer, refused bool
		want           float64
	}{
		{"rounded down", 6.5, true, false, 5},
		{"a whole unit less", 6, true, false, 6},
		{"an older answer's, a whole unit less", 6, false, false, 6},
		{"more", 8, true, false, 8},
		{"an older answer's, more", 8, false, false, 5},
		{"refused with less", 6.5, false, true, 6.5},
		{"refused with more", 8, false, true, 5},
	} {
		q := heardQuota(5, 10, 0, 10*sec, func(q *Limit) { flowing(q); q.out, q.early = 2, 1 })
		q.flow(hourIn.Add(2*sec), test.left, test.newer, test.refused)
		if moved := q.basis == hourIn.Add(2*sec); q.left != test.want || moved != (test.want != 5) || !q.flows() {
			t.Errorf("%s: %v left, as of now: %t", test.name, q.left, moved)
		}
	}
}

// A request that asks tells whether the reset was too early.
func TestQuotaAsks(t *testing.T) {
	for _, test := range []struct {
		name           string
		left           float64
		refused, asked bool
		asking         bool
		slack          time.Duration
	}{
		{"half is there", 4, false, true, false, 0},
		{"less", 3, false, true, false, 0},
		{"refused", 3, true, true, true, 250 * time.Millisecond},
		{"another one's answer", 3, false, false, true, 0},
	} {
		q := heardQuota(10, 10, 0, 0, func(q *Limit) { q.fresh.Open(); q.rolled = hourIn })
		q.hear(hourIn.Add(sec), hourIn.Add(sec/2), &headers.Limit{Remaining: known(test.left), Reset: known(30 * sec)}, 1, test.refused, test.asked)
		if q.fresh.IsOpen() != test.asking || q.slack != test.slack {
			t.Errorf("%s: %+v", test.name, q)
		}
	}
	q := heardQuota(10, 10, 0, 0, func(q *Limit) { q.fresh.Open() })
	q.hear(hourIn.Add(sec), hourIn.Add(sec/2), &headers.Limit{Remaining: known(0.0)}, 1, true, true)
	if q.slack != 0 {
		t.Errorf("no reset was too early: %v", q.slack)
	}
}

// Of two readings of one window the lower one rules, an equal one is newer.
func TestQuotaLowers(t *testing.T) {
	for left, want := range map[float64]float64{4: 4, 5: 5, 6: 5} {
		q := heardQuota(5, 10, 0, 0, nil)
		q.lower(hourIn.Add(sec), left, hourIn.Add(9*sec), true)
		if q.left != want || (q.basis == hourIn.Add(sec)) != (left <= 5) || q.reset != known(hourIn.Add(9*sec)) {
			t.Errorf("%v: %+v", left, q)
		}
		if q.lower(hourIn.Add(sec), left, hourIn.Add(20*sec), true); q.reset != known(hourIn.Add(9*sec)) {
			t.Errorf("a later reset: %v", q.reset)
		}
	}
}

// Which windows are tested, and how their last units are spent.
func TestQuotaTests(t *testing.T) {
	tested := func(change func(q *Limit)) *Limit {
		return heardQuota(10, 20, 0, 2*sec, func(q *Limit) { q.windows, q.lastSent = 1, hourIn; change(q) })
	}
	for _, test := range []struct {
		name   string
		q      *Limit
		tested bool
		wait   time.Duration
	}{
		{"the second", tested(func(*Limit) {}), true, 0},
		{"the third", tested(func(q *Limit) { q.windows = 2 }), true, 0},
		{"the fourth", tested(func(q *Limit) { q.windows = 3 }), false, 0},
		{"the first", tested(func(q *Limit) { q.windows = 0 }), false, 0},
		{"shown to be one", tested(func(q *Limit) { q.judge.Lean(refill.Window) }), false, 0},
		{"said to be one", tested(func(q *Limit) { q.means = headers.Boundary }), false, 0},
		{"a long one", tested(func(q *Limit) { q.window = shortWindow + 1 }), false, 0},
		{"the longest", tested(func(q *Limit) { q.window = shortWindow }), true, 0},
		{"none", tested(func(q *Limit) { q.window = 0 }), false, 0},
		{"of three", tested(func(q *Limit) { q.size = known(3.0) }), false, 0},
		{"of four", tested(func(q *Limit) { q.size = known(4.0) }), true, 400 * time.Millisecond},
		{"of fifteen", tested(func(q *Limit) { q.size, q.window = known(15.0), 3*sec }), true, 160 * time.Millisecond},
		{"five left", tested(func(q *Limit) { q.left = 5 }), true, 0},
		{"four left", tested(func(q *Limit) { q.left = 4 }), true, 125 * time.Millisecond},
		{"four left of sixteen", tested(func(q *Limit) { q.left, q.size = 4, known(16.0) }), true, 156250 * time.Microsecond},
		{"four left of many", tested(func(q *Limit) { q.left, q.size = 4, known(1000.0) }), true, 31250 * time.Microsecond},
	} {
		if got := test.q.testing(); got != test.tested {
			t.Errorf("%s: tested %t", test.name, got)
		}
		if got := test.q.wait(hourIn, 1); got != test.wait {
			t.Errorf("%s: %v, want %v", test.name, got, test.wait)
		}
	}
}

// Small rules of quotas.
func TestQuotaRules(t *testing.T) {
	q := heardQuota(0, 10, 0, 10*sec, func(q *Limit) { q.refill = 0.5 })
	if q.rate() != 0.5 {
		t.Errorf("%v per second", q.rate())
	}
	q = heardQuota(0, 10, 0, 0, func(q *Limit) { flowing(q); q.refill, q.terms = 1.0/256, &Terms{MaxPause: 252 * sec} })
	if got := q.wait(hourIn.Add(4*sec), 1); got != 252*sec {
		t.Errorf("just as long as a pause may be: %v", got)
	}
	whole, half := known(2*sec), known(1500*time.Millisecond)
	for i, test := range []struct{ reset, after, want headers.Opt[time.Duration] }{
		{whole, half, half}, {headers.Opt[time.Duration]{}, known(sec / 2), headers.Opt[time.Duration]{}},
		{whole, headers.Opt[time.Duration]{Value: half.Value}, whole}, {half, known(1200 * time.Millisecond), half}, {whole, known(sec), whole},
		{known(4 * sec), half, known(4 * sec)}, {known(3 * sec), half, half}, {known(sec), half, half}, {known(0 * sec), half, known(0 * sec)},
	} {
		if got := Finer(test.reset, test.after); got != test.want {
			t.Errorf("%d: %v", i, got)
		}
	}
}

// Small rules of what is learned of stated limits.
func TestQuotasAtTheirBounds(t *testing.T) {
	q := heardQuota(0, 10, 30*sec, 20*sec, nil)
	if got := q.ETA(hourIn, 1, 1).Until(hourIn); got != 32*sec {
		t.Errorf("behind one: %v", got)
	}
	q = heardQuota(0, 10, sec, sec, func(q *Limit) { q.judge.Lean(refill.Log); q.trail = &trail{} })
	if q.roll(hourIn.Add(sec)); !q.fresh.IsOpen() {
		t.Error("nothing is left on the trail, and yet nobody may ask")
	}
	q = heardQuota(9, 10, sec, sec, nil)
	if q.trace(hourIn, hourIn, &headers.Limit{Remaining: known(9.0)}, 1, true, false); q.trail.shared != hourIn.Add(aloneAfter*sec) {
		t.Errorf("somebody spent one: shared until %v", q.trail.shared)
	}
	q = heardQuota(5, 10, 30*sec, 0, nil)
	if q.hear(hourIn.Add(sec), hourIn.Add(sec), &headers.Limit{Remaining: known(6.0)}, 1, false, false); q.left != 5 {
		t.Errorf("%v left: without a reset it is the same window", q.left)
	}
	if got := heardQuota(1, 1, 30*sec, 0, nil).wait(hourIn, 5); got != 0 {
		t.Errorf("a cost above a size of one: %v", got)
	}
	q = heardQuota(5, 10, 30*sec, 20*sec, func(q *Limit) { q.terms, q.lastSent = &Terms{MaxPause: 5 * time.Minute, Pace: true}, hourIn })
	if got := q.wait(hourIn, 1); got != 6*sec {
		t.Errorf("five in 30 s: %v apart", got)
	}
	q = heardQuota(0, 10, 0, 9*sec, func(q *Limit) { q.size.Known = false })
	if got := q.guess(); got != 9*sec {
		t.Errorf("a window of unknown size: %v", got)
	}
	q = heardQuota(0, 10, 0, 0, func(q *Limit) { flowing(q); q.refill = 0.5 })
	if q.ask(true); q.fresh.IsOpen() {
		t.Error("a bucket goes on by its rate")
	}
	q = heardQuota(0, 10, 0, 0, nil)
	if q.note(&headers.Limit{Reset: known(10 * sec), ResetMeans: headers.Full}); q.refill != 0 {
		t.Errorf("nothing was said of what is left: %v/s", q.refill)
	}
}
