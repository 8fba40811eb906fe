package store

import (
	"testing"
	"time"
)

// Units of an earlier booking that count from another time.
func TestLedgerMoves(t *testing.T) {
	const now = 100_000_000
	day := Limit{Kind: CalendarLimit, Size: 10, Per: 10 * time.Second} // began 6 s ago
	log := Limit{Kind: LogLimit, Size: 10, Per: 10 * time.Second}
	for name, test := range map[string]struct {
		p     Limit
		m     Moved
		known bool
		want  float64
	}{
		"within the day":         {day, Moved{From: now - 5_000_000, Age: time.Second, Units: []int64{2}}, true, 3},
		"from its start":         {day, Moved{From: now - 6_000_000, Age: time.Second, Units: []int64{2}}, true, 3},
		"from the day before":    {day, Moved{From: now - 6_000_001, Age: time.Second, Units: []int64{2}}, true, 5},
		"of another state":       {day, Moved{From: now - 5_000_000, Age: time.Second, Units: []int64{2}}, false, 5},
		"to the day's start":     {day, Moved{From: now - 9_000_000, Age: 6 * time.Second, Units: []int64{2}}, true, 5},
		"to the day before":      {day, Moved{From: now - 9_000_000, Age: 6*time.Second + time.Microsecond, Units: []int64{2}}, true, 3},
		"nothing":                {log, Moved{From: now - 5_000_000, Units: []int64{0}}, true, 3},
		"along a log":            {log, Moved{From: now - 5_000_000, Units: []int64{2}}, true, 3},
		"into a log":             {log, Moved{From: now - 5_000_000, Units: []int64{2}}, false, 5},
		"out of a log":           {log, Moved{From: now - 5_000_000, Age: 10 * time.Second, Units: []int64{2}}, true, 1},
		"hardly within a log":    {log, Moved{From: now - 5_000_000, Age: 10*time.Second - time.Microsecond, Units: []int64{2}}, true, 3},
		"what is not in a log":   {log, Moved{From: now - 5_000_001, Age: time.Second, Units: []int64{2}}, true, 5},
		"more than the log held": {log, Moved{From: now - 5_000_000, Age: 10 * time.Second, Units: []int64{4}}, true, 0},
	} {
		a := Account{Level: 3, Ends: now + 4_000_000, Entries: []Entry{{At: now - 5_000_000, Units: 3}}}
		a.move(test.p, test.m, now, test.known)
		got := a.Level
		if test.p.Kind == LogLimit {
			got = a.total()
		}
		if got != test.want {
			t.Errorf("%s: %v units, want %v", name, got, test.want)
		}
	}
}
