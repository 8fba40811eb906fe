package throttle

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhttp/weir/headers"
)

// Which of two resets belong to one window, and which of them is right.
func TestQuotaResets(t *testing.T) {
	for _, test := range []struct {
		name  string
		q     *quota
		reset time.Duration
		later bool
	}{
		{"the same", heardQuota(5, 10, 30*sec, 0, nil), 30 * sec, false},
		{"rounded up", heardQuota(5, 10, 30*sec, 0, nil), 31500 * time.Millisecond, false},
		{"more than that", heardQuota(5, 10, 30*sec, 0, nil), 31501 * time.Millisecond, true},
		{"earlier", heardQuota(5, 10, 30*sec, 0, nil), 10 * sec, false},
		{"of a window that may roll", heardQuota(5, 10, 30*sec, 20*sec, nil), 50 * sec, false},
		{"more than that, too", heardQuota(5, 10, 30*sec, 20*sec, nil), 50*sec + 1, true},
		{"of a window that does not", heardQuota(5, 10, 30*sec, 20*sec, func(q *quota) { q.means = headers.Boundary }), 31501 * time.Millisecond, true},
		{"a twentieth of a long one", heardQuota(5, 10, time.Minute, time.Minute, func(q *quota) { q.means = headers.Boundary }), 63500 * time.Millisecond, false},
		{"more than a twentieth", heardQuota(5, 10, time.Minute, time.Minute, func(q *quota) { q.means = headers.Boundary }), 63501 * time.Millisecond, true},
		{"a bucket has no windows", heardQuota(5, 10, 30*sec, 0, func(q *quota) { flowing(q); q.refill = 1 }), time.Hour, false},
		{"where none was known", heardQuota(5, 10, 0, 0, nil), time.Hour, true},
		{"where one asks", heardQuota(5, 10, 0, 0, func(q *quota) { q.asking = true }), time.Hour, false},
		{"of a bucket without", heardQuota(5, 10, 0, 0, func(q *quota) { flowing(q); q.refill = 1 }), time.Hour, false},
	} {
		if got := test.q.isLater(hourIn.Add(2*sec), hourIn.Add(test.reset)); got != test.later {
			t.Errorf("%s: later %t", test.name, got)
		}
	}
	if heardQuota(5, 10, 0, 0, nil).isLater(hourIn.Add(coarse), hourIn.Add(time.Hour)) {
		t.Error("a reset that is first heard of just after what is left is no later window's")
	}
	for _, test := range []struct {
		name  string
		q     *quota
		reset time.Duration
		newer bool
		want  time.Duration
		agree int
	}{
		{"none was known", heardQuota(5, 10, 0, 0, nil), 30 * sec, false, 30 * sec, 0},
		{"the same", heardQuota(5, 10, 30*sec, 0, nil), 30 * sec, false, 30 * sec, 0},
		{"a little earlier", heardQuota(5, 10, 30*sec, 0, nil), 29 * sec, false, 29 * sec, 0},
		{"a little later", heardQuota(5, 10, 30*sec, 0, nil), 31 * sec, false, 30 * sec, 0},
		{"an older answer's, much earlier", heardQuota(5, 10, 30*sec, 0, nil), 20 * sec, false, 30 * sec, 0},
		{"an older answer's, much later", heardQuota(5, 10, 30*sec, 0, nil), 40 * sec, false, 30 * sec, 0},
		{"a newer answer's, the same", heardQuota(5, 10, 30*sec, 0, nil), 30 * sec, true, 30 * sec, 1},
		{"a newer answer's, a little earlier", heardQuota(5, 10, 30*sec, 0, nil), 29 * sec, true, 29 * sec, 1},
		{"a newer answer's, much earlier", heardQuota(5, 10, 30*sec, 0, nil), 20 * sec, true, 20 * sec, 0},
		{"a newer answer's, much later", heardQuota(5, 10, 30*sec, 0, nil), 40 * sec, true, 40 * sec, 0},
		{"a second is not much", heardQuota(5, 10, 30*sec, 0, nil), 31 * sec, true, 30 * sec, 1},
		{"a twentieth of a boundary's window neither", heardQuota(5, 10, time.Hour, time.Hour, func(q *quota) { q.means = headers.Boundary }), 57 * time.Minute, true, 57 * time.Minute, 1},
		{"which moves on", heardQuota(5, 10, 30*sec, time.Minute, func(q *quota) { q.means = headers.Next }), 31 * sec, true, 31 * sec, 1},
		{"but not in a short window", heardQuota(5, 10, 30*sec, shortWindow, func(q *quota) { q.means = headers.Next }), 31 * sec, true, 30 * sec, 1},
		{"nor by an older answer", heardQuota(5, 10, 30*sec, time.Minute, func(q *quota) { q.means = headers.Next }), 31 * sec, false, 30 * sec, 0},
	} {
		test.q.keepReset(hourIn.Add(test.reset), test.newer)
		if !test.q.reset.Known || test.q.reset.Value != hourIn.Add(test.want) || test.q.agree != test.agree {
			t.Errorf("%s: %v, said %d times", test.name, test.q.reset.Value.Sub(hourIn), test.q.agree)
		}
	}
}

// Within a window the smaller remaining rules, unless a newer answer shows that
// it is another one.
func TestQuotaWithinAWindow(t *testing.T) {
	says := func(left float64, reset time.Duration) headers.Limit {
		return stating(left, 10, reset, headers.Boundary)
	}
	for _, test := range []struct {
		name           string
		sent           time.Duration // before the second answer, which comes after 2 s
		left, want     float64
		cost           float64
		refused, asked bool
	}{
		{"less left", sec, 3, 3, 1, false, false},
		{"an older answer with less", 3 * sec, 3, 3, 1, false, false},
		{"an older answer with more", 3 * sec, 7, 5, 1, false, false},
		{"as much: one has come back", sec, 5, 5, 1, false, false},
		{"far more: another window", sec, 9, 9, 1, false, false},
		{"a refusal with more", sec, 7, 5, 1, true, false},
		{"its own cost explains it", sec, 4, 4, 1, false, false},
	} {
		q := newQuota()
		q.hear(hourIn, hourIn.Add(-sec), ref(says(5, time.Minute)), 1, false, false)
		q.hear(hourIn.Add(2*sec), hourIn.Add(2*sec-test.sent), ref(says(test.left, 58*sec)), test.cost, test.refused, test.asked)
		if q.left != test.want {
			t.Errorf("%s: %v left, want %v", test.name, q.left, test.want)
		}
	}
	q := newQuota()
	q.hear(hourIn, hourIn.Add(-sec), ref(says(5, 30*sec)), 1, false, false)
	q.hear(hourIn.Add(2*sec), hourIn.Add(sec), ref(says(8, 60*sec)), 1, false, false) // the next window
	if q.left != 8 || q.reset.Value != hourIn.Add(62*sec) {
		t.Errorf("%v left until %v", q.left, q.reset.Value)
	}
	q.hear(hourIn.Add(3*sec), hourIn.Add(2500*time.Millisecond), &headers.Limit{Reset: known(10 * sec), Source: "x"}, 1, false, false)
	if q.left != 8 || q.reset.Value != hourIn.Add(13*sec) {
		t.Errorf("after a reset alone %v left until %v", q.left, q.reset.Value)
	}
}

// Without a reset the newest answer rules, and an older one does not.
func TestQuotaWithoutResets(t *testing.T) {
	q := newQuota()
	only := func(left float64) headers.Limit { return headers.Limit{Remaining: known(left), Source: "x"} }
	q.hear(hourIn, hourIn.Add(-sec), ref(only(5)), 1, false, false)
	q.hear(hourIn.Add(2*sec), hourIn.Add(sec), ref(only(9)), 1, false, false)
	if q.left != 9 {
		t.Errorf("%v left, want the 9 that a newer answer says", q.left)
	}
	q.hear(hourIn.Add(3*sec), hourIn.Add(sec), ref(only(7)), 1, false, false)
	if q.left != 7 {
		t.Errorf("%v left, want the 7 that an older answer says: it is less", q.left)
	}
	q.hear(hourIn.Add(4*sec), hourIn.Add(sec), ref(only(8)), 1, false, false)
	if q.left != 7 {
		t.Errorf("%v left, want 7 still", q.left)
	}
}

// Limits beyond the bound are not kept, unless one that does not bind can go:
// the one that was not heard of for the longest time.
func TestQuotasAreBounded(t *testing.T) {
	l := learning1()
	k := l.kindOf(kindKey{"GET", "x"}, hourIn)
	for i := range maxQuotas {
		q := l.quotaOf(hourIn, &headers.Limit{Name: fmt.Sprint(i)}, k, nil)
		q.heard, q.left, q.reset = hourIn.Add(time.Duration(i)*sec), 0, known(hourIn.Add(time.Hour))
		l.bind(q, k, 1)
	}
	if l.quotaOf(hourIn, &headers.Limit{Name: "more"}, k, nil) != nil || l.quotaOf(hourIn, &headers.Limit{Name: "7"}, k, nil) != l.quotas[7] {
		t.Error("one more than there is room for")
	}
	free, gone := l.quotas[9], l.quotas[4]
	free.left, gone.reset.Known = 1, false
	l.binds = false
	if q := l.quotaOf(hourIn, &headers.Limit{Name: "more"}, k, nil); q == nil || q.key.name != "more" || len(l.quotas) != maxQuotas || !l.binds || l.changes {
		t.Fatalf("%v of %d", q, len(l.quotas))
	}
	for _, q := range append(l.quotas, k.quotas...) {
		if q == gone {
			t.Error("what was dropped is still there")
		}
	}
	if len(k.quotas) != maxQuotas-1 {
		t.Errorf("the kind has %d", len(k.quotas))
	}
	l.drop(free)
	l.binds = false
	l.bind(k.quotas[0], k, 1)
	if l.binds {
		t.Error("bound twice")
	}
	for range 4 {
		k.slow.Start(hourIn)
	}
	q := l.quotaOf(hourIn, &headers.Limit{Name: "new"}, k, nil)
	l.bind(q, k, 2)
	if q.early != 6 || len(q.kinds) != 1 {
		t.Errorf("%v units are missing of three others under way", q.early)
	}
	q.unbind(k)
	if len(q.kinds) != 0 {
		t.Error("still bound")
	}
}

// A limit that is not mentioned any more is forgotten after ten minutes, or two
// of its windows.
func TestQuotasAreForgotten(t *testing.T) {
	for _, test := range []struct {
		window, after time.Duration
		kept          bool
	}{{0, forgetAt, true}, {0, forgetAt + 1, false}, {time.Hour, 2 * time.Hour, true}, {time.Hour, 2*time.Hour + 1, false}, {sec, forgetAt, true}} {
		l := learning1()
		k := l.kindOf(kindKey{"GET", "x"}, hourIn)
		q := l.quotaOf(hourIn, &headers.Limit{Name: "a"}, k, nil)
		q.heard, q.key.window = hourIn, test.window
		l.bind(q, k, 1)
		l.forget(hourIn.Add(test.after), k)
		if kept := len(k.quotas) == 1 && len(l.quotas) == 1; kept != test.kept {
			t.Errorf("%+v: kept %t", test, kept)
		}
	}
}

// A quota restricts if it is not plentiful, and makes room for another if a unit
// is left of it.
func TestQuotasThatBindStay(t *testing.T) {
	l := learning1()
	l.quotas = []*quota{heardQuota(plentiful, 10, 0, 0, nil), heardQuota(1, 10, 30*sec, 0, nil)}
	n := 0
	l.restrictions(hourIn, func(c cause, _ time.Duration) {
		if c.what == causeQuota {
			n++
		}
	})
	if n != 1 {
		t.Errorf("%d quotas restrict, want the one that does", n)
	}
	l.quotas = l.quotas[1:]
	if !l.dropQuota(hourIn) || len(l.quotas) != 0 {
		t.Error("one with a unit left does not bind")
	}
	l.quotas = []*quota{heardQuota(0.9, 10, 30*sec, 0, nil)}
	if l.dropQuota(hourIn) {
		t.Error("one that binds is dropped")
	}
}

// TestABucketWhoseRateChangesStaysABucket: a refusal or two, by jitter or because the
// rate was changed, do not make a window of what was seen to flow. As a window it would
// be spent in bursts, of which half are refused.
func TestABucketWhoseRateChangesStaysABucket(t *testing.T) {
	for range 10 {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			s := &server{trip: 40 * time.Millisecond, jitter: .25, answer: statedAsOf(func(now time.Time) (rate, burst float64) {
				rate = []float64{50, 25, 100}[min(2, int(now.Sub(start)/(20*time.Second)))]
				return rate, rate
			})}
			tr := newTransport(t, s, Config{MaxWait: time.Hour})
			together(64, 50*20+25*20+100*30, func(int) bool {
				for mustGet(t, tr, "http://h/").StatusCode != 200 {
				}
				return true
			})
			if took := time.Since(start); s.refused > 60 || took > 75*time.Second {
				t.Errorf("%d refused in %v, want at most 60 and 75s", s.refused, took)
			}
		})
	}
}
