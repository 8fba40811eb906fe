package meter

import (
	"testing"
	"time"
)

// A log that is full makes room by entries that are close to one another, so that no unit
// is dated much later than it was spent.
func TestAFullLogKeepsItsDates(t *testing.T) {
	const late = 2 * time.Second / Exact
	for _, test := range []struct {
		name string
		at   func(i int) time.Duration
	}{
		{"evenly", func(i int) time.Duration { return time.Duration(i) * 10 * time.Millisecond }},
		{"two bursts", func(i int) time.Duration {
			return time.Duration(i/99)*2*time.Second + time.Duration(i)*time.Microsecond
		}},
		{"one by one after a burst", func(i int) time.Duration { return time.Duration(max(0, i-190)) * 200 * time.Millisecond }},
		{"one before a burst", func(i int) time.Duration { return time.Duration(min(1, i))*2*time.Second + time.Duration(i) }},
		{"at once", func(int) time.Duration { return 0 }},
	} {
		l := Log{first: longAgo}
		for i := range 200 {
			l.Add(Instant(test.at(i)), 1, 0)
			if len(l.Entries) > 2*Exact {
				t.Fatalf("%s: %d entries", test.name, len(l.Entries))
			}
		}
		i := 0
		for _, e := range l.Entries {
			for range e.N {
				if d := time.Duration(e.At) - test.at(i); d < 0 || d > 2*late { // it may be moved twice
					t.Fatalf("%s: unit %d of %v is dated %v", test.name, i, test.at(i), time.Duration(e.At))
				}
				i++
			}
		}
		if i != 200 || l.Sum != 200 {
			t.Errorf("%s: %d units, the sum is %d", test.name, i, l.Sum)
		}
	}
}
