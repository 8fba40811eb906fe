package throttle

import (
	"slices"
	"sort"
)

// longAgo is before every date, and far from overflow.
const longAgo = instant(-1 << 62)

// stamp is units that have one date.
type stamp struct {
	at instant // of the last of them
	n  int64
}

// unitLog is units by a date of theirs, oldest first. Its length is bounded:
// units less than a grain apart share an entry, dated by its last. The zero
// value is empty.
type unitLog struct {
	sum   int64
	first instant // of the units in the last entry
	log   []stamp
}

// add appends n units. No date is older than the one before.
func (l *unitLog) add(at instant, n int64, grain instant) {
	l.sum += n
	if last := len(l.log) - 1; last >= 0 {
		if t := &l.log[last]; t.at == at || at-l.first < grain {
			t.at, t.n = at, t.n+n
			return
		}
	}
	if len(l.log) >= 2*exact {
		l.squeeze()
	}
	l.first = at
	l.log = append(l.log, stamp{at, n})
}

// squeeze makes room in a log that cancelled and settled units have filled up.
func (l *unitLog) squeeze() {
	if l.log = withoutNone(l.log); len(l.log) < 2*exact {
		return
	}
	for i := 0; i+1 < len(l.log); i += 2 {
		l.log[i/2] = stamp{l.log[i+1].at, l.log[i].n + l.log[i+1].n}
	}
	l.log = l.log[:len(l.log)/2]
}

// forget drops what is not younger than that.
func (l *unitLog) forget(than instant) {
	i := 0
	for i < len(l.log) && l.log[i].at <= than {
		l.sum -= l.log[i].n
		i++
	}
	if i == 0 {
		return
	}
	if i == len(l.log) {
		l.log = l.log[:0]
		if cap(l.log) > 8 {
			l.log = nil // an idle key is small
		}
		return
	}
	l.log = l.log[:copy(l.log, l.log[i:])]
}

// remove takes n units of that date out, which is not forgotten yet.
func (l *unitLog) remove(at instant, n int64) {
	i := notBefore(l.log, at)
	if i == len(l.log) {
		return
	}
	n = min(n, l.log[i].n)
	l.log[i].n -= n
	l.sum -= n
	for i := len(l.log) - 1; i >= 0 && l.log[i].n == 0; i-- {
		l.log = l.log[:i]
		l.first = longAgo // the entry before takes no more
	}
}

// notBefore is the index of the first entry of a log that is not older than at.
func notBefore(log []stamp, at instant) int {
	return sort.Search(len(log), func(i int) bool { return log[i].at >= at })
}

// withoutNone drops entries without units, in place.
func withoutNone(log []stamp) []stamp {
	return slices.DeleteFunc(log, func(t stamp) bool { return t.n == 0 })
}
