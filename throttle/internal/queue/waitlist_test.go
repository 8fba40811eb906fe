package queue

import (
	"slices"
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// ranked is a waiter of q that is in no group.
func ranked(q *Request) *Waiter { return &Waiter{Request: q, priority: q.Priority, seq: q.Seq} }

// Of two waiters the one of the higher class goes first, and of one class the
// older one.
func TestHigherClassThenOlderGoesFirst(t *testing.T) {
	for _, test := range []struct {
		p, q   int
		s, t   uint64
		before bool
	}{{0, 0, 1, 2, true}, {0, 0, 2, 1, false}, {1, 0, 2, 1, true}, {0, 1, 1, 2, false}, {-1, 0, 1, 2, false}} {
		w, v := ranked(&Request{Priority: test.p, Seq: test.s}), ranked(&Request{Priority: test.q, Seq: test.t})
		if w.before(v) != test.before {
			t.Errorf("%+v: %t", test, !test.before)
		}
	}
}

// fill makes a waitlist of waiters: priority, lane and units of each, by arrival.
func fill(places ...Request) (*waitlist, []*Waiter) {
	l := &waitlist{account: &Account{}}
	var all []*Waiter
	for i, q := range places {
		q.Seq = uint64(i + 1)
		w := ranked(&q)
		l.add(w, q.UpTo)
		all = append(all, w)
	}
	return l, all
}

// What goes before a newcomer: all of higher classes, its own lane, and as many
// turns of each other lane as it has to await itself.
func TestWhatGoesBeforeANewcomer(t *testing.T) {
	l, _ := fill(Request{Lane: "a", UpTo: 1}, Request{Lane: "a", UpTo: 2}, Request{Lane: "b", UpTo: 10}, Request{Lane: "b", UpTo: 10},
		Request{Lane: "b", UpTo: 10}, Request{Priority: 1, UpTo: 100}, Request{Priority: -1, UpTo: 1000})
	for _, test := range []struct {
		priority int
		lane     string
		want     int64
	}{
		{2, "a", 0}, {1, "a", 100 / 1}, {1, "", 100}, {-1, "", 1000 + 33 + 100}, {-2, "", 1133},
		{0, "a", 100 + 3 + 30}, // third in its lane: three turns of the other
		{0, "b", 100 + 30 + 3}, // fourth: all of the other
		{0, "c", 100 + 33*2/5}, // first: one turn of each
	} {
		if got := l.ahead(&Request{Priority: test.priority, Lane: test.lane}); got != test.want {
			t.Errorf("priority %d, lane %q: %d units, want %d", test.priority, test.lane, got, test.want)
		}
	}
	l, _ = fill(Request{Lane: "a", UpTo: 10}, Request{Lane: "a", UpTo: 10})
	for lane, want := range map[string]int64{"a": 20, "b": 10} {
		if got := l.ahead(&Request{Lane: lane}); got != want {
			t.Errorf("lane %q: %d units, want %d", lane, got, want)
		}
	}
}

// What goes before a request of a lower class that is older than some that wait: of the
// lower classes those that are older, and seven of the highest class before each of these
// and before the request itself.
func TestWhatGoesBeforeAnOlderRequestOfALowerClass(t *testing.T) {
	places := []Request{{UpTo: 5}}
	for range 20 {
		places = append(places, Request{Priority: 1, UpTo: 1})
	}
	l, _ := fill(places...)
	for seq, want := range map[uint64]int64{1: 7, 2: 5 + 14, 10: 5 + 14, 22: 5 + 14} {
		if got := l.ahead(&Request{Seq: seq}); got != want {
			t.Errorf("number %d: %d units, want %d", seq, got, want)
		}
	}
}

// Of eight grants made while lower classes wait, one goes to the oldest of
// them; the count begins anew when they come.
func TestShareOfLowerClasses(t *testing.T) {
	var places []Request
	for range 20 {
		places = append(places, Request{Priority: 1})
	}
	l, _ := fill(places...)
	grant := func() *Waiter {
		w := l.head()
		l.remove(w.places[0], true)
		w.places = nil
		return w
	}
	for range 3 {
		grant() // while nobody of a lower class waits
	}
	var low []*Waiter
	for i, p := range []int{-1, 0, 0} {
		w := ranked(&Request{Priority: p, Seq: uint64(100 + i)})
		l.add(w, 1)
		low = append(low, w)
	}
	for round, want := range low[:2] {
		for i := range share - 1 {
			if w := grant(); w.Priority != 1 {
				t.Fatalf("round %d: grant %d to class %d", round, i, w.Priority)
			}
		}
		if w := grant(); w != want {
			t.Fatalf("round %d: the share went to %d, want %d", round, w.Seq, want.Seq)
		}
	}
	if l.len() != 4 || l.oldest() != l.head() {
		t.Errorf("%d are left", l.len())
	}
}

// A lower class counts from when it begins to wait, not what went before.
func TestShareBeginsWithTheWait(t *testing.T) {
	l := &waitlist{account: &Account{}}
	l.add(ranked(&Request{Priority: 1, Seq: 1}), 1)
	l.passed = 5
	l.add(ranked(&Request{Priority: 0, Seq: 2}), 1)
	if l.passed != 0 {
		t.Errorf("passed over %d times when it came", l.passed)
	}
	l.passed = 5
	l.add(ranked(&Request{Priority: -1, Seq: 3}), 1)
	if l.passed != 5 {
		t.Errorf("passed over %d times, want 5: another one waits already", l.passed)
	}
}

// Whatever comes and goes, of however many priorities, the turn is that of the
// highest, and every eighth time that of the oldest of all others.
func TestTurnsOfManyPriorities(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &waitlist{account: &Account{}}
		var all []*Waiter
		passed, seq := 0, uint64(0)
		classes := func() map[int]int {
			n := make(map[int]int)
			for _, w := range all {
				n[w.Priority]++
			}
			return n
		}
		best := func(less func(w, v *Waiter) bool) *Waiter {
			return slices.MinFunc(all, func(w, v *Waiter) int {
				if less(w, v) {
					return -1
				}
				return 1
			})
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			was := classes()
			if len(all) == 0 || rapid.IntRange(0, 2).Draw(t, "what") == 0 {
				seq++
				w := ranked(&Request{Priority: rapid.IntRange(-4, 4).Draw(t, "priority"), Seq: seq})
				if all = append(all, w); len(was) == 1 && was[w.Priority] == 0 && best((*Waiter).before) != w {
					passed = 0
				}
				l.add(w, 1)
				continue
			}
			top := best((*Waiter).before)
			want := top
			if len(was) > 1 && passed >= share-1 {
				want = best(func(w, v *Waiter) bool {
					if a, b := w.Priority == top.Priority, v.Priority == top.Priority; a != b {
						return b
					}
					return w.Seq < v.Seq
				})
			}
			if got := l.head(); got != want || l.oldest() != top {
				t.Fatalf("it is the turn of %d, priority %d, want %d, priority %d", got.Seq, got.Priority, want.Seq, want.Priority)
			}
			gone, granted := want, rapid.Bool().Draw(t, "granted")
			if !granted {
				gone = rapid.SampledFrom(all).Draw(t, "gone")
			} else if passed++; len(was) == 1 || want.Priority != top.Priority {
				passed = 0
			}
			l.remove(gone.places[0], granted)
			all = slices.DeleteFunc(all, func(w *Waiter) bool { return w == gone })
			if len(all) != l.len() || len(classes()) != len(l.old.a) || len(l.old.a) != len(l.classes) {
				t.Fatalf("%d wait, of %d priorities; the list has %d of %d", len(all), len(classes()), l.len(), len(l.classes))
			}
		}
	})
}

// Ten thousand may wait for one host: each costs memory of a size the runtime has, with
// its first place in it.
func TestAWaiterTakesNoLargerSizeOfMemory(t *testing.T) {
	if n := unsafe.Sizeof(Waiter{}); n > 352 {
		t.Errorf("%d bytes", n)
	}
}
