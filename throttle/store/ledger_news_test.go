package store

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// A quota stated again is that of the same window if it ends within a twentieth
// of the reset, a second at least: then the lower count holds. A later window
// replaces it, and an earlier one is old news.
func TestLedgerJoinsStated(t *testing.T) {
	const at, s = 1_000_000_000, 1_000_000
	for _, test := range []struct {
		ends  int64 // of what is known, µs from now
		reset time.Duration
		left  int64 // stated; 5 are known
		want  float64
	}{
		{38 * s, 40 * time.Second, 9, 5}, {38*s - 1, 40 * time.Second, 9, 9}, // a twentieth later, or more
		{38 * s, 40 * time.Second, 3, 3}, {42 * s, 40 * time.Second, 3, 3}, {42*s + 1, 40 * time.Second, 3, 5}, // or earlier
		{9 * s, 10 * time.Second, 9, 5}, {9*s - 1, 10 * time.Second, 9, 9}, // a second at least
		{0, time.Second, 9, 9}, {1, time.Second, 9, 5}, // it has ended
	} {
		known := []LedgerStated{{ID: "q", Unit: "v", Remaining: 5, Ends: at + test.ends}, {ID: "q", Unit: "u", Remaining: 5, Ends: at + test.ends}}
		got := withStated(known, Stated{ID: "q", Unit: "u", Remaining: test.left, Reset: test.reset}, at)
		if len(got) != 2 || got[0].Remaining != 5 || got[1].Remaining != test.want {
			t.Errorf("%+v: %+v", test, got)
		}
	}
	for reset, want := range map[time.Duration]string{9 * time.Second: "a", 10 * time.Second: "a", 11 * time.Second: "new"} {
		full := slices.Repeat([]LedgerStated{{ID: "b", Ends: at + 20*s}}, MaxStated)
		full[3] = LedgerStated{ID: "a", Ends: at + 10*s}
		if got := withStated(full, Stated{ID: "new", Reset: reset}, at); len(got) != MaxStated || got[3].ID != want {
			t.Errorf("full, with one that ends in %v: %+v", reset, got)
		}
	}
}

// News of a quota neither end a pause nor change the ledger they are given.
func TestNewsOfAQuotaLeaveThePause(t *testing.T) {
	l := Ledger{}.AfterNews(ledgerNow, News{Pause: time.Minute})
	l = l.AfterNews(ledgerNow, News{Stated: []Stated{{ID: "a", Unit: "u", Remaining: 5, Reset: time.Minute}}})
	before := l.Stated[0]
	next := l.AfterNews(ledgerNow, News{Stated: []Stated{{ID: "a", Unit: "u", Remaining: 3, Reset: time.Minute}}})
	if l.Stated[0] != before || next.Stated[0].Remaining != 3 {
		t.Errorf("the ledger that was given says %+v, the new one %+v", l.Stated, next.Stated)
	}
	if _, r := bookOn(next, ledgerNow, 0, 1); r.Outcome != Refused || r.Wait != time.Minute {
		t.Errorf("during the pause: %+v", r)
	}
	next = next.AfterNews(ledgerNow, News{Resume: true})
	if _, r := bookOn(next, ledgerNow, 0, 1); r.Outcome == Refused {
		t.Errorf("after the pause was ended: %+v", r)
	}
}

// Of the quotas a key was told of, those that end last are kept.
func TestAKeyKeepsTheQuotasThatEndLast(t *testing.T) {
	var l Ledger
	for i := range 2 * MaxStated { // the later half, from the inside out
		minutes := []int{7, 8, 6, 9, 5, 10, 4, 11, 3, 12, 2, 13, 1, 14, 0, 15}[i] + 1
		l = l.AfterNews(ledgerNow, News{Stated: []Stated{{ID: fmt.Sprint(minutes), Unit: "u", Reset: time.Duration(minutes) * time.Minute}}})
	}
	var ids []string
	for _, s := range l.Stated {
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	if got, want := fmt.Sprint(ids), "[10 11 12 13 14 15 16 9]"; got != want {
		t.Errorf("kept %s, want %s", got, want)
	}
}
