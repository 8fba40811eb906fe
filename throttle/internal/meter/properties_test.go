package meter

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestMemoryDoesNotDependOnLimit: however large the limit and the load.
func TestMemoryDoesNotDependOnLimit(t *testing.T) {
	for _, limit := range []int{5, 64, 65, 1000000} {
		s := NewRate(Spec{Limit: limit, Per: time.Hour, Burst: limit})
		m := NewRated(1, s, nil)
		now := Instant(1)
		for i := range Instant(200000) {
			now += Instant(time.Second) / 7
			if m.At(now, 1) > now {
				continue
			}
			k := m.Take(now, 1, false)
			if i%3 == 0 {
				m.Return(now, 1, k, now, now)
			}
			if len(m.window.sent.Entries) > 2*Exact {
				t.Fatalf("limit %d: %d entries", limit, len(m.window.sent.Entries))
			}
		}
	}
}

// TestUnitsAddUpAtAnyTime: what is granted, given back and settled adds up, to the
// unit, at any time.
func TestUnitsAddUpAtAnyTime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(100, 5000).Draw(rt, "limit")
		s := NewRate(Spec{Limit: limit, Per: time.Hour, Burst: limit})
		m := NewRated(1, s, nil)
		type part struct {
			n                 int64
			granted, answered Instant // answered is zero as long as it is held
		}
		var parts []part
		now, want := Instant(1), int64(0)
		for range rapid.IntRange(1, 200).Draw(rt, "steps") {
			now += Instant(rapid.Int64Range(0, int64(10*time.Second)).Draw(rt, "sleep"))
			op := rapid.IntRange(0, 4).Draw(rt, "op")
			if op < 2 || len(parts) == 0 {
				n := rapid.Int64Range(1, 20).Draw(rt, "n")
				if n <= m.State(now).Units() {
					p := part{n: n, granted: now}
					if m.Take(now, n, op == 0); op != 0 {
						p.answered = now
					}
					parts = append(parts, p)
					want += n
				}
				continue
			}
			i := rapid.IntRange(0, len(parts)-1).Draw(rt, "which")
			p := &parts[i]
			switch {
			case op == 2 && p.answered == 0:
				m.Answered(now, p.n, 0, p.granted)
				p.answered = now
			default:
				n := rapid.Int64Range(0, p.n).Draw(rt, "back")
				m.Return(now, n, 0, p.granted, p.answered)
				p.n -= n
				want -= n
			}
			if got := int64(limit) - m.State(now).Units(); got != want {
				rt.Fatalf("%d units in use, want %d", got, want)
			}
		}
	})
}

// TestLargeWindowsAreNearlyExact: units of a large limit are counted for Per at
// least and for a twentieth of it more at most.
func TestLargeWindowsAreNearlyExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := NewRate(Spec{Limit: 1 << 20, Per: time.Minute, Burst: 1 << 20})
		var w window
		var log []Entry
		now := Instant(1)
		for _, gap := range rapid.SliceOfN(rapid.Int64Range(0, int64(3*time.Second)), 1, 300).Draw(rt, "gaps") {
			now += Instant(gap)
			w.take(now, s, 3, false)
			log = append(log, Entry{now, 3})
			w.look(now, s)
			var least, most int64
			for _, a := range log {
				if age := time.Duration(now - a.At); age < s.Per {
					least += a.N
				} else if age < s.Per*21/20 {
					most += a.N
				}
			}
			if w.used() < least || w.used() > least+most {
				rt.Fatalf("%d counted, want %d to %d", w.used(), least, least+most)
			}
		}
	})
}

// A drifting sum of fractions does not lose or mint units in a long run.
func TestALongRunNeitherLosesNorMintsUnits(t *testing.T) {
	s := NewRate(Spec{Limit: 1, Per: 3 * time.Second, Burst: 1, Bucket: true})
	m := NewRated(1, s, nil)
	now, n := Instant(1), 0
	for range 100000 {
		now = m.At(now, 1)
		m.Take(now, 1, false)
		n++
	}
	if want := Instant(1) + Instant(n-1)*Instant(3*time.Second); now < want || now > want+Instant(n) {
		t.Errorf("%d units at %v, want %v", n, now, want)
	}
}

// Which counts go on under other terms: those of the same window and place, and
// the same kind of meter.
func TestCountsThatGoOn(t *testing.T) {
	same := []string{"5/m burst 1", "9/m burst 9"}
	for _, pair := range [][2]string{
		{"5/m", "5/h"}, {"5/m", "5/m bucket 3"}, {"5/m", "5/m warmup 10s"}, {"5/m", "5/m align UTC"}, {"5/m align Asia/Tokyo", "5/m align UTC"},
	} {
		a, b := rateOf(pair[0]), rateOf(pair[1])
		if a.Continues(b) || b.Continues(a) || !a.Continues(a) || !b.Continues(b) {
			t.Errorf("%v", pair)
		}
	}
	if !rateOf(same[0]).Continues(rateOf(same[1])) {
		t.Error("other figures of one window")
	}
}
