package table

import (
	"strings"
	"testing"
	"time"
)

// lookups are the ways to find an entry that is there.
var lookups = []struct {
	name string
	find func(t *Table[int], key string) *Entry[int] // nil: there is none
}{
	{"Seen", func(t *Table[int], key string) *Entry[int] {
		e := t.Seen(key)
		if e != nil {
			e.Release()
		}
		return e
	}},
	{"Glance", (*Table[int]).Glance},
}

// Whichever key was looked for first, each finds its own entry, also one as long as others.
func TestKeysOfOneLengthAreToldApart(t *testing.T) {
	for _, by := range lookups {
		tab := New[int](100, nil, func(*int, time.Time) bool { return true })
		keys := []string{"", "a", "b", "c", "aa", "ab", strings.Repeat("a", 9), strings.Repeat("b", 17)}
		for round := range 3 {
			for _, key := range keys {
				if e := by.find(tab, key); (e != nil) != (round > 0) || e != nil && e.Key != key {
					t.Errorf("%s(%q) in round %d: %+v", by.name, key, round, e)
				}
				tab.Acquire(key, time.Time{}).Release()
			}
		}
	}
}

// An entry that was dropped is found no more, however often it was found before, and the next
// one of its key is found as soon. To find either of them allocates nothing after the first time.
func TestWhatWasDroppedIsNotFound(t *testing.T) {
	for _, by := range lookups {
		tab := New[int](1, nil, func(*int, time.Time) bool { return true })
		var last *Entry[int]
		for round := range 5 {
			for tab.Glance("a") == nil { // until b makes room
				tab.Acquire("a", time.Time{}).Release()
			}
			e := by.find(tab, "a")
			if e == nil || e == last {
				t.Fatalf("%s, round %d: %p is found after %p", by.name, round, e, last)
			}
			last = e
			if n := testing.AllocsPerRun(100, func() { by.find(tab, "a") }); n != 0 {
				t.Errorf("%s, round %d: %v allocations", by.name, round, n)
			}
			for tab.Glance("b") == nil {
				tab.Acquire("b", time.Time{}).Release()
			}
			if e := by.find(tab, "a"); e != nil {
				t.Errorf("%s, round %d: %p is found, which was dropped", by.name, round, e)
			}
		}
	}
}
