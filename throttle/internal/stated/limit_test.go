package stated

import (
	"hash/maphash"
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/attribution"
	"github.com/weirhttp/weir/throttle/internal/cooldown"
	"github.com/weirhttp/weir/throttle/internal/meter"
	"github.com/weirhttp/weir/throttle/internal/refill"
)

// heardQuota is a quota that was heard of at hourIn and may be changed further.
func heardQuota(left, size float64, reset, window time.Duration, change func(*Limit)) *Limit {
	q := newQuota()
	q.window = window
	q.size = known(size)
	q.left, q.basis, q.heard = left, hourIn, hourIn
	if reset > 0 {
		q.reset = known(hourIn.Add(reset))
	}
	if change != nil {
		change(q)
	}
	return q
}

// flowing makes a bucket of q.
func flowing(q *Limit) { q.judge.Lean(refill.Bucket) }

// How long one unit, or several, have to wait for what a server stated.
func TestQuotaWaits(t *testing.T) {
	for _, test := range []struct {
		name string
		q    *Limit
		at   time.Duration
		cost float64
		want time.Duration
	}{
		{"some left", heardQuota(5, 10, 30*sec, 0, nil), 0, 5, 0},
		{"too few left", heardQuota(5, 10, 30*sec, 0, nil), 0, 6, 30 * sec},
		{"some under way", heardQuota(5, 10, 30*sec, 0, func(q *Limit) { q.out = 3 }), 0, 3, 30 * sec},
		{"some under way from before", heardQuota(5, 10, 30*sec, 0, func(q *Limit) { q.early = 3 }), 0, 3, 30 * sec},
		{"just enough beside those", heardQuota(5, 10, 30*sec, 0, func(q *Limit) { q.out, q.early = 1, 2 }), 0, 2, 0},
		{"a cost above the size counts as the size", heardQuota(10, 10, 30*sec, 0, nil), 0, 25, 0},
		{"later", heardQuota(0, 10, 30*sec, 0, nil), 20 * sec, 1, 10 * sec},
		{"at the reset one asks", heardQuota(0, 10, 30*sec, 0, nil), 30 * sec, 1, 0},
		{"and the others wait for it", heardQuota(0, 10, 30*sec, 0, func(q *Limit) { q.fresh.Open(); q.fresh.Ask(hourIn.Add(30*sec), sec); q.fresh.Close() }), 30 * sec, 1, sec},
		{"a far reset is waited for so long as a pause may be", heardQuota(0, 10, time.Hour, 0, nil), 0, 1, 5 * time.Minute},
		{"one that was said often to its end", heardQuota(0, 10, time.Hour, 0, func(q *Limit) { q.agree = 2 }), 0, 1, time.Hour},
		{"said once more only", heardQuota(0, 10, time.Hour, 0, func(q *Limit) { q.agree = 1 }), 0, 1, 5 * time.Minute},
		{"a unit that we do not count", heardQuota(1, 10, 30*sec, 0, func(q *Limit) { q.counted = false }), 0, 99, 0},
		{"and that is spent", heardQuota(0, 10, 30*sec, 0, func(q *Limit) { q.counted = false }), 0, 99, 30 * sec},
		{"and nobody knows until when", heardQuota(0, 10, 0, 0, func(q *Limit) { q.counted = false }), 0, 99, 0},
		{"a bucket that fills", heardQuota(0, 10, 0, 10*sec, flowing), 0, 1, sec},
		{"has filled for a while", heardQuota(0, 10, 0, 10*sec, flowing), sec / 2, 1, sec / 2},
		{"a stated refill goes before size and window", heardQuota(0, 10, 0, 10*sec, func(q *Limit) { flowing(q); q.refill = 4 }), 0, 1, sec / 4},
		{"a bucket that fills slowly", heardQuota(0, 10, 0, 100*time.Hour, flowing), 0, 1, 5 * time.Minute},
		{"what flowed in until the reset stays", heardQuota(0, 10, 3*sec, 10*sec, flowing), 3 * sec, 4, sec},
		{"with one under way", heardQuota(0, 10, 0, 100*time.Hour, func(q *Limit) { flowing(q); q.out, q.terms = 1, &Terms{MaxPause: 30 * sec, Fleet: true} }), 40 * sec, 1, meter.Unknown},
		{"with one that was just sent", heardQuota(0, 10, 0, 100*time.Hour, func(q *Limit) {
			flowing(q)
			q.out, q.lastSent, q.terms = 1, hourIn.Add(40*sec)-1, &Terms{MaxPause: 30 * sec}
		}), 40 * sec, 1, sec},
		{"no reset, one under way", heardQuota(0, 10, 0, 0, func(q *Limit) { q.early = 1 }), 0, 1, meter.Unknown},
		{"no reset, one under way that was sent early", heardQuota(0, 10, 0, 0, func(q *Limit) { q.Passed(hourIn, 1, 1) }), 0, 1, meter.Unknown},
		{"and a refusal takes a tenth of a second", heardQuota(0, 10, 0, 0, func(q *Limit) {
			q.Passed(hourIn, 1, 1)
			q.presumed.trip = sec / 10
		}), 0, 1, 1050 * time.Millisecond},
		{"no reset, one that was just sent", heardQuota(0, 10, 0, 0, func(q *Limit) { q.out, q.lastSent = 1, hourIn-1 }), 0, 1, sec},
		{"no reset: a second", heardQuota(0, 10, 0, 0, nil), 0, 1, sec},
		{"no reset, a window known: its part for a unit", heardQuota(0, 10, 0, 20*sec, nil), 0, 1, 2 * sec},
		{"and then one asks", heardQuota(0, 10, 0, 0, nil), sec, 1, 0},
		{"perhaps of another limit: until the reset at most", heardQuota(1, 10, 30*sec, 0, func(q *Limit) { q.out, q.Sharing = 1, unsure() }), 0, 1, 30 * sec},
		{"and without a reset until an answer", heardQuota(1, 10, 0, 0, func(q *Limit) { q.out, q.lastSent, q.Sharing = 1, hourIn-1, unsure() }), 0, 1, meter.Unknown},
		{"stale", heardQuota(0, 10, 0, 0, nil), attribution.StaleAfter + 1, 1, 0},
	} {
		if got := test.q.wait(hourIn.Add(test.at), test.cost); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// unsure is of a limit that was stated to requests to two paths.
func unsure() (s attribution.Sharing) {
	seed := maphash.MakeSeed()
	for _, path := range []string{"/a", "/b"} {
		s.Answered(attribution.WhereOf(seed, "GET", path), 5, 1, 0)
	}
	return s
}

// Once all requests are over that were under way when a limit began to bind, nothing is held
// back for them, also if the limit was not obeyed for a while and some of them had drawn on it.
func TestNothingIsHeldForRequestsThatAreOver(t *testing.T) {
	for drew := range 12 {
		q := heardQuota(1, 10, 30*sec, 0, nil)
		for range drew {
			q.Take(hourIn, 1, true)
		}
		q.Unbind()
		q.Passed(hourIn, 12, 1)
		if got := q.flying(); got != 12 {
			t.Errorf("%d of 12 drew: %v under way, want 12", drew, got)
		}
		for range drew {
			q.Answered(hourIn, 1, 0, hourIn)
		}
		for range 12 - drew {
			q.Came()
		}
		if got := q.flying(); got != 0 {
			t.Errorf("%d of 12 drew, and all are over: %v under way", drew, got)
		}
	}
}

// What may be spent: what is left, what has flowed in since, up to the size,
// without what is under way.
func TestQuotaLevels(t *testing.T) {
	for _, test := range []struct {
		name string
		q    *Limit
		want float64
	}{
		{"a window", heardQuota(5, 10, time.Minute, 10*sec, nil), 5},
		{"a bucket", heardQuota(5, 10, 0, 10*sec, flowing), 8},
		{"no more than fits", heardQuota(9, 10, 0, 10*sec, flowing), 10},
		{"but what the server said", heardQuota(12, 10, 0, 10*sec, flowing), 12},
		{"without a size", heardQuota(5, 10, 0, 0, func(q *Limit) { flowing(q); q.refill, q.size.Known = 100, false }), 305},
		{"under way", heardQuota(5, 10, time.Minute, 10*sec, func(q *Limit) { q.out, q.early = 2, 1 }), 2},
	} {
		if got := test.q.level(hourIn.Add(3 * sec)); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
	for _, test := range []struct {
		refill, size float64
		window       time.Duration
		want         float64
	}{{0, 0, 0, 0}, {3, 0, 0, 3}, {3, 10, sec, 3}, {0, 10, 5 * sec, 2}, {0, 10, 0, 0}, {0, 0, sec, 0}} {
		q := &Limit{refill: test.refill, size: headers.Opt[float64]{Value: test.size, Known: test.size > 0}}
		q.window = test.window
		if got := q.rate(); got != test.want {
			t.Errorf("%+v: rate %v", test, got)
		}
	}
}

// What a server says about a limit itself.
func TestQuotaNotes(t *testing.T) {
	full := headers.Full
	for _, test := range []struct {
		name   string
		q      *Limit
		l      headers.Limit
		size   float64
		window time.Duration
		refill float64
		flows  bool
	}{
		{"its size and window", newQuota(), headers.Limit{Quota: known(10.0), Window: known(time.Minute)}, 10, time.Minute, 0, false},
		{"no size, no window", newQuota(), headers.Limit{Quota: known(0.0), Window: known(time.Duration(0))}, 0, 0, 0, false},
		{"the longest window", newQuota(), headers.Limit{Window: known(MostWindow)}, 0, MostWindow, 0, false},
		{"a window that is none", newQuota(), headers.Limit{Window: known(MostWindow + 1)}, 0, 0, 0, false},
		{"its refill", newQuota(), headers.Limit{Refill: known(2.0)}, 0, 0, 2, true},
		{"no refill", newQuota(), headers.Limit{Refill: known(0.0)}, 0, 0, 0, false},
		{"full in a while", newQuota(), headers.Limit{Quota: known(10.0), Remaining: known(4.0), Reset: known(3 * sec), ResetMeans: full}, 10, 0, 2, true},
		{"a reset that is no filling", newQuota(), headers.Limit{Quota: known(10.0), Remaining: known(4.0), Reset: known(3 * sec)}, 10, 0, 0, false},
		{"full at once", newQuota(), headers.Limit{Quota: known(10.0), Remaining: known(4.0), Reset: known(time.Duration(0)), ResetMeans: full}, 10, 0, 0, false},
		{"full already", newQuota(), headers.Limit{Quota: known(10.0), Remaining: known(10.0), Reset: known(3 * sec), ResetMeans: full}, 10, 0, 0, false},
		{"full, of a window", newQuota(), headers.Limit{Quota: known(10.0), Remaining: known(4.0), Reset: known(3 * sec), ResetMeans: full, Window: known(sec)}, 10, sec, 0, false},
		{"full, of unknown size", newQuota(), headers.Limit{Remaining: known(4.0), Reset: known(3 * sec), ResetMeans: full}, 0, 0, 0, false},
		{"known to be rigid", heardQuota(4, 10, 0, 0, func(q *Limit) { q.judge.Lean(refill.Window) }), headers.Limit{Remaining: known(4.0), Reset: known(3 * sec), ResetMeans: full}, 10, 0, 0, false},
		{"slower than was seen", heardQuota(4, 10, 0, 0, func(q *Limit) { flowing(q); q.refill = 3 }), headers.Limit{Remaining: known(4.0), Reset: known(3 * sec), ResetMeans: full}, 10, 0, 3, true},
		{"faster than was seen", heardQuota(4, 10, 0, 0, func(q *Limit) { flowing(q); q.refill = 1 }), headers.Limit{Remaining: known(4.0), Reset: known(3 * sec), ResetMeans: full}, 10, 0, 2, true},
	} {
		q := test.q
		q.note(&test.l)
		if q.size.Value != test.size || q.window != test.window || q.refill != test.refill || q.flows() != test.flows {
			t.Errorf("%s: size %v, window %v, refill %v, flows %t", test.name, q.size, q.window, q.refill, q.flows())
		}
	}
	q := newQuota()
	q.slack = sec
	for stated, want := range map[time.Duration]time.Duration{0: sec, sec: 2 * sec, 9999 * 24 * time.Hour: 400*24*time.Hour + sec} {
		if at, ok := q.resetAt(hourIn, hourIn, &headers.Limit{Reset: known(stated)}); !ok || at != hourIn.Add(want) {
			t.Errorf("a reset in %v: %v, %t", stated, at, ok)
		}
	}
	if _, ok := q.resetAt(hourIn, hourIn, &headers.Limit{}); ok {
		t.Error("a reset that nobody stated")
	}
}

// A pace is what is left over what is left of the window.
func TestQuotaPaces(t *testing.T) {
	paced := func(q *Limit) *Limit {
		q.terms = &Terms{MaxPause: 5 * time.Minute, Pace: true}
		q.lastSent = hourIn
		return q
	}
	for _, test := range []struct {
		name string
		q    *Limit
		at   time.Duration
		cost float64
		want time.Duration
	}{
		{"five in 30 s", paced(heardQuota(5, 10, 30*sec, 0, nil)), 0, 1, 6 * sec},
		{"two at once", paced(heardQuota(5, 10, 30*sec, 0, nil)), 0, 2, 12 * sec},
		{"a while later", paced(heardQuota(5, 10, 30*sec, 0, nil)), 5 * sec, 1, 0},
		{"a bucket by its rate", paced(heardQuota(5, 10, 30*sec, 20*sec, flowing)), 0, 1, 2 * sec},
		{"without a reset by size and window", paced(heardQuota(5, 10, 0, 20*sec, nil)), 0, 1, 2 * sec},
		{"nothing known", paced(heardQuota(5, 10, 0, 0, nil)), 0, 1, 0},
		{"five in a month, said once", paced(heardQuota(5, 10, 720*time.Hour, 0, nil)), 0, 1, 5 * time.Minute},
		{"five in a day, said often", paced(heardQuota(5, 10, 24*time.Hour, 0, func(q *Limit) { q.agree = 2 })), 0, 1, 24 * time.Hour / 5},
		{"five in a month, said often", paced(heardQuota(5, 10, 720*time.Hour, 0, func(q *Limit) { q.agree = 2 })), 0, 1, cooldown.MostBelieved},
		{"hardly any rate", paced(heardQuota(5, 10, 0, 0, func(q *Limit) { flowing(q); q.refill = 1e-15 })), 0, 1, 5 * time.Minute},
		{"the first", func() *Limit { q := paced(heardQuota(5, 10, 30*sec, 0, nil)); q.lastSent = 0; return q }(), 0, 1, 0},
	} {
		if got := test.q.wait(hourIn.Add(test.at), test.cost); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

// What a quota shows as a meter.
func TestQuotaAsAMeter(t *testing.T) {
	now := meter.Instant(0).Add(time.Hour)
	q := heardQuota(5, 10, 30*sec, 20*sec, nil)
	if got := q.ETA(now, 3, 1); got != now {
		t.Errorf("there is room, and yet a wait until %v", got)
	}
	m := q.Take(now, 5, true)
	if left := q.level(now); left != 0 || m != 0 {
		t.Errorf("%v left", left)
	}
	if got, want := q.ETA(now, 4, 1), now.Add(38*sec); got != want {
		t.Errorf("four others go first: %v, want %v", got, want)
	}
	if got, want := q.ETA(now, 0, 1), now.Add(30*sec); got != want {
		t.Errorf("alone: %v, want %v", got, want)
	}
	q.Return(now, 5, m, now, now) // after the answer the server counted it otherwise
	if q.out != 5 {
		t.Errorf("%v under way", q.out)
	}
	q.Return(now, 5, m, now, 0)
	if q.out != 0 || q.level(now) != 5 {
		t.Errorf("%v under way", q.out)
	}
	q.Take(now, 2, false) // a settlement
	if q.level(now) != 3 {
		t.Errorf("%v left", q.level(now))
	}
	q.Unmentioned(now, false, true, 1)
	q.Unmentioned(now, false, false, 1) // refused: not counted
	if q.level(now) != 2 {
		t.Errorf("%v left", q.level(now))
	}
	q.quiet, q.trail = quiet{}, nil // as after an answer that states it
	later := now.Add(30 * sec)
	m = q.Take(later, 1, true)
	if m&Asks == 0 || q.Take(later, 1, true)&Asks != 0 {
		t.Error("one asks, and only one")
	}
	q.Unmentioned(now, true, false, 1)
	if !q.fresh.IsOpen() {
		t.Error("a refusal is no answer to who asks")
	}
	q.Unmentioned(later, true, true, 1)
	if q.fresh.IsOpen() {
		t.Error("an answer without a word ends the question")
	}
	if q.left != 2 {
		t.Errorf("%v may go after one was served, want 2: what was spent before may count", q.left)
	}
	uncounted := heardQuota(5, 10, 30*sec, 0, func(q *Limit) { q.counted = false })
	uncounted.Take(now, 7, true)
	uncounted.Unmentioned(now, false, true, 1)
	if uncounted.flying() != 0 || uncounted.left != 5 {
		t.Errorf("a unit that is not counted: %v under way, %v left", uncounted.flying(), uncounted.left)
	}
}
