package learn

import (
	"testing"
	"time"
)

// BenchmarkHealthy is what a server that never refuses pays for a call.
func BenchmarkHealthy(b *testing.B) {
	var l Learner
	now := zero
	b.ReportAllocs()
	for b.Loop() {
		l.Next(now, 1)
		l.Sent(now)
		now += trip
		l.Accepted(now, now-trip)
	}
}

// after is a learner after so many calls to its server: 100 a second, bucket of 10. After
// thousands it knows it.
func after(calls int) (*Learner, Instant) {
	l, now, used, at := new(Learner), zero, 0.0, zero
	for range calls {
		if t := l.Next(now, 5).At; t > now && t != never {
			now = t
		}
		l.Sent(now)
		used, at = max(0, used-100*time.Duration(now-at).Seconds()), now
		if used+1 <= 10 {
			used++
			l.Accepted(now+trip, now)
		} else {
			l.Refused(now+trip, now, Refusal{})
		}
		now += trip / 16
	}
	return l, now
}

// BenchmarkSettled is a whole call at a server whose limit is known.
func BenchmarkSettled(b *testing.B) {
	l, now := after(3000)
	b.ReportAllocs()
	for b.Loop() {
		if t := l.Next(now, 1).At; t > now && t != never {
			now = t
		}
		l.Sent(now)
		now += trip
		l.Accepted(now, now-trip)
	}
}

// BenchmarkSearching is a call of the first 500 at a server whose limit is to be found.
func BenchmarkSearching(b *testing.B) {
	b.ReportAllocs()
	for n := 0; n < b.N; n += 500 {
		after(500)
	}
}

// BenchmarkRebuild is the longest single step: a search over a full log.
func BenchmarkRebuild(b *testing.B) {
	l, _ := after(3000)
	m := l.mind
	for i := range 400 {
		m.bank.sent(m.sentAt+Instant(i)*second, 1, 1, 0)
		m.bank.compact(m.sentAt + Instant(i)*second)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.bank.rebuild()
	}
}
