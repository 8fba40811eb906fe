package stated

import (
	"testing"
	"time"

	"github.com/weirhttp/weir/headers"
	"github.com/weirhttp/weir/throttle/internal/fleet"
)

// Which of two resets belong to one window, and which of them is right.
func TestQuotaResets(t *testing.T) {
	for _, test := range []struct {
		name  string
		q     *Limit
		reset time.Duration
		later bool
	}{
		{"the same", heardQuota(5, 10, 30*sec, 0, nil), 30 * sec, false},
		{"rounded up", heardQuota(5, 10, 30*sec, 0, nil), 31500 * time.Millisecond, false},
		{"more than that", heardQuota(5, 10, 30*sec, 0, nil), 31501 * time.Millisecond, true},
		{"earlier", heardQuota(5, 10, 30*sec, 0, nil), 10 * sec, false},
		{"of a window that may roll", heardQuota(5, 10, 30*sec, 20*sec, nil), 50 * sec, false},
		{"more than that, too", heardQuota(5, 10, 30*sec, 20*sec, nil), 50*sec + 1, true},
		{"of a window that does not", heardQuota(5, 10, 30*sec, 20*sec, func(q *Limit) { q.means = headers.Boundary }), 31501 * time.Millisecond, true},
		{"a twentieth of a long one", heardQuota(5, 10, time.Minute, time.Minute, func(q *Limit) { q.means = headers.Boundary }), 63500 * time.Millisecond, false},
		{"more than a twentieth", heardQuota(5, 10, time.Minute, time.Minute, func(q *Limit) { q.means = headers.Boundary }), 63501 * time.Millisecond, true},
		{"a bucket has no windows", heardQuota(5, 10, 30*sec, 0, func(q *Limit) { flowing(q); q.refill = 1 }), time.Hour, false},
		{"where none was known", heardQuota(5, 10, 0, 0, nil), time.Hour, true},
		{"where one asks", heardQuota(5, 10, 0, 0, func(q *Limit) { q.fresh.Open() }), time.Hour, false},
		{"of a bucket without", heardQuota(5, 10, 0, 0, func(q *Limit) { flowing(q); q.refill = 1 }), time.Hour, false},
	} {
		if got := test.q.isLater(hourIn.Add(2*sec), hourIn.Add(test.reset)); got != test.later {
			t.Errorf("%s: later %t", test.name, got)
		}
	}
	if heardQuota(5, 10, 0, 0, nil).isLater(hourIn.Add(Coarse), hourIn.Add(time.Hour)) {
		t.Error("a reset that is first heard of just after what is left is no later window's")
	}
	for _, test := range []struct {
		name  string
		q     *Limit
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
		{"a twentieth of a boundary's window neither", heardQuota(5, 10, time.Hour, time.Hour, func(q *Limit) { q.means = headers.Boundary }), 57 * time.Minute, true, 57 * time.Minute, 1},
		{"which moves on", heardQuota(5, 10, 30*sec, time.Minute, func(q *Limit) { q.means = headers.Next }), 31 * sec, true, 31 * sec, 1},
		{"but not in a short window", heardQuota(5, 10, 30*sec, shortWindow, func(q *Limit) { q.means = headers.Next }), 31 * sec, true, 30 * sec, 1},
		{"nor by an older answer", heardQuota(5, 10, 30*sec, time.Minute, func(q *Limit) { q.means = headers.Next }), 31 * sec, false, 30 * sec, 0},
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

// How long a window lasts is corrected by an answer after the Store barred requests, but what
// passed since a window that ended long ago is no window: all processes believe the longest that
// one of them tells, so none would ask until that was over.
func TestWindowsThatPassedBarredAreNotOne(t *testing.T) {
	for _, test := range []struct {
		name               string
		span, rolled, left time.Duration // as it was known; the last window ended so long ago, and this one ends after that
		want               time.Duration
	}{
		{"it is as long as was known", 3 * sec, sec, 2 * sec, 3 * sec},
		{"it is shorter", 10 * sec, sec, 2 * sec, 3 * sec},
		{"four passed without an answer", 3 * sec, 13 * sec, 2 * sec, 3 * sec},
		{"it is longer", 3 * sec, 13 * sec, 5 * sec, 5 * sec},
	} {
		q := heardQuota(0, 29, test.left, 0, func(q *Limit) {
			q.terms = &Terms{MaxPause: time.Minute, Fleet: true, Members: 16}
			q.rolled = hourIn.Add(-test.rolled)
			q.shared.span, q.shared.barred = test.span, true
		})
		if q.share(hourIn, hourIn, &headers.Limit{}, 1, nil, 0); q.shared.span != test.want {
			t.Errorf("%s: it lasts %v, want %v", test.name, q.shared.span, test.want)
		}
	}
}

// A process that takes a limit for one that is not obeyed, and then obeys it again, is as far ahead
// of the others as before: if it began anew, it would take all that there is.
func TestALimitThatIsObeyedAgainKeepsTheLead(t *testing.T) {
	q := heardQuota(9, 9, 3*sec, 0, func(q *Limit) {
		q.terms = &Terms{MaxPause: time.Minute, Fleet: true, Members: 3}
		q.counted = true
	})
	create := func(name string) *fleet.Tally { return fleet.NewTally(name, "requests") }
	before := q.Tally(hourIn, create)
	q.shared.lead.Drew(5)
	q.shared.lead.Lacks(hourIn, false)
	q.ignored = true
	for range 2 {
		if q.tallied() != nil {
			t.Fatal("a limit that is not obeyed is counted in the store")
		}
	}
	q.ignored = false
	if after := q.Tally(hourIn, create); after != before || q.shared.based {
		t.Errorf("another tally, or what was known of it: based %v", q.shared.based)
	}
	if got := q.shared.lead.Ahead(0, 0, 3, 9); got != 5 || q.shared.lead.Short() != hourIn {
		t.Errorf("%v ahead, short at %v; want 5, at %v", got, q.shared.lead.Short(), hourIn)
	}
	q.size = known(12.0)
	if q.Tally(hourIn, create) == before {
		t.Error("a limit of another size has the same tally")
	}
}
