package meter

import (
	"slices"
	"sort"
)

// longAgo is before every date, and so far from the smallest int64 that no difference
// overflows.
const longAgo = Instant(-1 << 62)

// An Entry is units that share one date.
type Entry struct {
	At Instant // the date of the last of them
	N  int64   // how many units; may be 0
}

// A Log is units by date, oldest first. Its length is bounded: units whose dates are less
// than a grain apart share an entry, which has the date of the last one. The zero
// value is empty.
type Log struct {
	Entries []Entry // some may have no units left
	Sum     int64   // of their units
	first   Instant // the date of the first unit in the last entry
}

// Add appends n units of date at, which is no earlier than any before.
func (l *Log) Add(at Instant, n int64, grain Instant) {
	l.Sum += n
	if last := len(l.Entries) - 1; last >= 0 {
		if t := &l.Entries[last]; t.At == at || at-l.first < grain {
			t.At, t.N = at, t.N+n
			return
		}
	}
	if len(l.Entries) >= 2*Exact {
		l.squeeze()
	}
	l.first = at
	l.Entries = append(l.Entries, Entry{at, n})
}

// squeeze makes room in a full log: units that were spent within an Exact-th part of the time
// that it covers share an entry. So a unit is dated later by no more than that, whatever gaps
// there are. A grain of Per/Exact keeps a log shorter than that, unless units were taken out of
// it or it is kept for longer than Per.
func (l *Log) squeeze() {
	if l.Entries = withoutNone(l.Entries); len(l.Entries) < 2*Exact {
		return
	}
	grain := (l.Entries[len(l.Entries)-1].At - l.Entries[0].At) / Exact
	kept, first := l.Entries[:0], longAgo
	for _, e := range l.Entries {
		if last := len(kept) - 1; last >= 0 && e.At-first <= grain {
			kept[last] = Entry{e.At, kept[last].N + e.N}
			continue
		}
		kept, first = append(kept, e), e.At
	}
	l.Entries = kept
}

// Forget drops all entries that are dated than or earlier.
func (l *Log) Forget(than Instant) {
	i := 0
	for i < len(l.Entries) && l.Entries[i].At <= than {
		l.Sum -= l.Entries[i].N
		i++
	}
	if i == 0 {
		return
	}
	if i == len(l.Entries) {
		l.Entries = l.Entries[:0]
		if cap(l.Entries) > 8 {
			l.Entries = nil // an idle key is small
		}
		return
	}
	l.Entries = l.Entries[:copy(l.Entries, l.Entries[i:])]
}

// remove takes out n units of date at, or as many as their entry has.
func (l *Log) remove(at Instant, n int64) {
	i := notBefore(l.Entries, at)
	if i == len(l.Entries) {
		return
	}
	n = min(n, l.Entries[i].N)
	l.Entries[i].N -= n
	l.Sum -= n
	for i := len(l.Entries) - 1; i >= 0 && l.Entries[i].N == 0; i-- {
		l.Entries = l.Entries[:i]
		l.first = longAgo // when the entry before began is not known: it takes no more units
	}
}

// notBefore is the index of the first entry of a log that is dated at or later.
func notBefore(log []Entry, at Instant) int {
	return sort.Search(len(log), func(i int) bool { return log[i].At >= at })
}

// withoutNone drops entries without units, in place.
func withoutNone(log []Entry) []Entry {
	return slices.DeleteFunc(log, func(t Entry) bool { return t.N == 0 })
}
