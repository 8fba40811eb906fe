package concurrency

import (
	"cmp"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhttp/weir/throttle/internal/meter"
)

// A loss leaves seven tenths of what was under way, once per round trip, when
// that has ended.
func TestSlowStartLoses(t *testing.T) {
	for _, test := range []struct {
		name  string
		f     Limit
		after time.Duration // of the last cut; zero: there was none
		quick bool
		want  float64
	}{
		{"the first", Limit{limit: 30, underway: underway{now: 10}}, 0, false, 7},
		{"more under way than allowed", Limit{limit: 20, underway: underway{now: 50}}, 0, false, 14},
		{"no limit", Limit{free: true, underway: underway{now: 50}}, 0, false, 35},
		{"one", Limit{limit: 20, underway: underway{now: 1}}, 0, false, 1},
		{"too soon", Limit{limit: 20, underway: underway{now: 20}}, leastTrip - 1, false, 20},
		{"a fifth of a second later", Limit{limit: 20, underway: underway{now: 20}}, leastTrip, false, 14},
		{"within a round trip", Limit{limit: 20, underway: underway{now: 20}, rtt: time.Second / 2}, time.Second/2 - 1, false, 20},
		{"after one", Limit{limit: 20, underway: underway{now: 20}, rtt: time.Second / 2}, time.Second / 2, false, 14},
		{"within a second of a long one", Limit{limit: 20, underway: underway{now: 20}, rtt: 5 * time.Second}, time.Second - 1, false, 20},
		{"after it", Limit{limit: 20, underway: underway{now: 20}, rtt: 5 * time.Second}, time.Second, false, 14},
		{"said at once", Limit{limit: 20, underway: underway{now: 20}}, leastTrip / 10, true, 14},
		{"said at once, too soon", Limit{limit: 20, underway: underway{now: 20}}, leastTrip/10 - 1, true, 20},
		{"said at once, within a round trip", Limit{limit: 20, underway: underway{now: 20}, rtt: 5 * time.Second}, 5*time.Second - 1, true, 20},
		{"said at once, after one", Limit{limit: 20, underway: underway{now: 20}, rtt: 5 * time.Second}, 5 * time.Second, true, 14},
	} {
		f := test.f
		f.full = true
		said := time.Duration(0)
		if test.quick {
			said = time.Minute
		}
		if test.after > 0 {
			f.losses = &losses{cut: hourIn.Add(-test.after)}
		}
		f.Lost(hourIn.Add(0), said)
		cut := test.after == 0 || f.cut == hourIn.Add(0)
		if !near(f.limit-f.drain, test.want) || f.full == cut || cut && (!near(f.ease, test.want) || f.free || f.cut != hourIn.Add(0)) {
			t.Errorf("%s: %+v", test.name, f)
		}
	}
}

// TestACutLeavesWhatIsUnderWay: a loss leaves room for what is under way and counts, if that
// many were allowed. Beside requests that were old, one more may soon go in any case, unless
// a crowd shows how many the host serves.
func TestACutLeavesWhatIsUnderWay(t *testing.T) {
	cuts, beside := 0, 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 17))
		f, now := Limit{underway: underway{host: r.IntN(4) == 0}, stated: r.IntN(3) == 0}, hourIn
		every, losses := r.ExpFloat64()*float64(300*time.Millisecond), r.Float64()
		type call struct {
			gen  uint32
			sent meter.Instant
		}
		var out []call
		for range 400 {
			now = now.Add(time.Duration(r.ExpFloat64() * every))
			for range r.IntN(6) {
				if f.Opens(now) <= now {
					out = append(out, call{f.Start(now), now})
				}
			}
			if len(out) == 0 || r.IntN(3) == 0 {
				continue
			}
			i := len(out) - 1 - r.IntN(min(len(out), 1+int(seed%16))) // so the first ones may be long polls
			c := out[i]
			out[i] = out[len(out)-1]
			out = out[:len(out)-1]
			switch x := r.Float64(); {
			case x < losses:
				counted := f.Counted(now)
				if f.ago(c.gen) < spans {
					counted--
				}
				before := f.Allowed()
				f.Lost(now, time.Duration(r.IntN(2))*now.Sub(c.sent))
				if n := f.Allowed(); n < min(cmp.Or(before, math.MaxInt), int(f.now)) {
					t.Fatalf("seed %d: %d were allowed and %d count, and a loss leaves %d", seed, before, f.now, n)
				}
				cuts++
				f.End(c.gen)
				if counted <= 0 && f.ceiling == 0 && len(out) > 0 {
					if beside++; !f.Roomy(max(now, f.ask)) {
						t.Fatalf("seed %d: no room beside %d that were old: %+v", seed, len(out), f)
					}
				}
			case x < losses+0.05:
				f.Crowded(now, c.sent)
				f.End(c.gen)
			default:
				f.End(c.gen)
				f.Answered(now, now.Sub(c.sent))
			}
			if f.UnderWay() != len(out) || f.now < 0 || f.old < 0 || f.gone < 0 {
				t.Fatalf("seed %d: %d are under way: %+v", seed, len(out), f)
			}
		}
	}
	if cuts < 1000 || beside < 100 {
		t.Errorf("%d cuts, %d beside old requests", cuts, beside)
	}
}

// A refusal because of others under way tells how many the host serves.
func TestCrowdedHosts(t *testing.T) {
	for _, test := range []struct {
		name  string
		f     Limit
		after time.Duration // the cut before, since the request was sent
		want  float64
	}{
		{"itself is one too many", Limit{limit: 20, underway: underway{now: 5}}, 0, 4},
		{"not more than allowed", Limit{limit: 3, underway: underway{now: 9}}, 0, 3},
		{"one is allowed", Limit{limit: 1, underway: underway{now: 9}}, 0, 1},
		{"no limit", Limit{free: true, underway: underway{now: 9}}, 0, 8},
		{"alone", Limit{limit: 20, underway: underway{now: 1}}, 0, 1},
		{"cut at that moment", Limit{limit: 20, underway: underway{now: 5}, losses: &losses{cut: hourIn.Add(-time.Second)}}, 0, 4},
		{"cut since", Limit{limit: 20, underway: underway{now: 5, heard: 1}, losses: &losses{cut: hourIn.Add(-time.Second + 1)}}, 0, 0},
	} {
		f := test.f
		f.Crowded(hourIn.Add(0), hourIn.Add(-time.Second))
		if test.want == 0 {
			if f.limit != 20 || f.ceiling != 0 {
				t.Errorf("%s: %+v", test.name, f)
			}
			continue
		}
		if f.limit != test.want || f.ceiling != test.want || f.crowd != hourIn.Add(0) || f.cut != hourIn.Add(0) || f.ease != test.want {
			t.Errorf("%s: %+v", test.name, f)
		}
		for now, tight := range map[int]bool{int(test.want) - 1: false, int(test.want): true} {
			if f.now = int32(now); f.Tight() != tight {
				t.Errorf("%s: %d of them: tight %t", test.name, now, !tight)
			}
		}
	}
	f := Limit{underway: underway{now: 3}}
	if f.Tight() {
		t.Error("nothing was refused")
	}
	if f.losses = new(losses); f.Tight() {
		t.Error("no ceiling")
	}
}

// Each refusal of those that were under way together tells that the host serves one less, until
// one of them is answered well. So a burst is refused once, and not each time by one less.
func TestABurstTellsHowManyAHostServes(t *testing.T) {
	for _, test := range []struct{ refused, want int }{{1, 39}, {2, 38}, {35, 5}, {39, 1}} {
		f := Limit{free: true, underway: underway{heard: 8}}
		sent, now := hourIn.Add(0), hourIn.Add(100*time.Millisecond)
		gens := make([]uint32, 40)
		for i := range gens {
			gens[i] = f.Start(sent)
		}
		for i := range test.refused {
			f.Crowded(now, sent)
			f.End(gens[i])
		}
		if f.Allowed() != test.want || f.ceiling != float64(test.want) {
			t.Errorf("%d of 40 were refused: %d allowed, ceiling %v, want %d", test.refused, f.Allowed(), f.ceiling, test.want)
		}
		f.Answered(now, 400*time.Millisecond)
		if f.Crowded(now, sent); f.Allowed() != test.want {
			t.Errorf("%d of 40 were refused, and one more after one was served: %d allowed, want %d", test.refused, f.Allowed(), test.want)
		}
	}
	cut := Limit{limit: 10, drain: 3, underway: underway{now: 10, heard: 8, ease: 7}, losses: &losses{cut: hourIn.Add(0), beside: 3}}
	if cut.Crowded(hourIn.Add(2), hourIn.Add(-1)); cut.limit != 2 || cut.drain != 0 || cut.ease != 2 {
		t.Errorf("below what it is to be cut to: %+v", cut)
	}
}

// If all that were under way when a host seemed to be crowded are refused, it served
// none of them, so it is not known how many it serves. If one is answered well, it is.
func TestAHostThatServesNoneIsNotCrowded(t *testing.T) {
	for _, test := range []struct {
		name    string
		refused int
		good    bool
		tight   bool
	}{
		{"none is answered yet", 0, false, true},
		{"one is still under way", 3, false, true},
		{"all are refused", 4, false, false},
		{"one is answered well", 3, true, true},
		{"and others refused", 4, true, true},
	} {
		f := Limit{limit: 20, underway: underway{heard: 8}}
		sent, now := hourIn.Add(0), hourIn.Add(time.Second)
		gen := f.Start(sent)
		for range 4 {
			f.Start(sent)
		}
		f.Crowded(now, sent)
		f.End(gen)
		if test.good {
			f.Answered(now, time.Second)
		}
		for range test.refused {
			f.Crowded(now, sent)
		}
		if f.now = 20; f.Tight() != test.tight {
			t.Errorf("%s: tight: %t", test.name, !test.tight)
		}
	}
}
